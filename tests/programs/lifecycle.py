"""What the lifecycle test runs; it calls these functions one by one."""
import asyncio
import sys
import threading

M = sys.monitoring


def tools():
    return [M.get_tool(i) for i in range(6)]


def occupy_all():
    for i in range(6):
        M.use_tool_id(i, "occupant %d" % i)


def free(*ids):
    for i in ids:
        M.free_tool_id(i)


# Another tool beside ours.
other_calls = 0


def other_callback(code, offset):
    global other_calls
    other_calls += 1


def begin_other():
    M.use_tool_id(4, "other")
    M.register_callback(4, M.events.PY_START, other_callback)
    M.set_events(4, M.events.PY_START)


def end_other():
    M.set_events(4, 0)
    M.register_callback(4, M.events.PY_START, None)
    M.free_tool_id(4)
    assert other_calls > 0


def work():
    def inner(n):
        return n and inner(n - 1)

    for _ in range(20):
        inner(10)
    list(map(inner, range(5)))


# Names that no compiler would make.
def odd():
    def plain():
        return 1

    code = plain.__code__
    import types

    for name, file in [
        ("lone \ud800 surrogate", "odd \udcff file"),
        ("x" * 1_000_000, "/" + "y" * 1_000_000),
        ("line\nbreak\x00\x1b[31m\u202e", ""),
        ("", "<nowhere>"),
    ]:
        changed = code.replace(co_name=name, co_qualname=name, co_filename=file, co_firstlineno=7)
        types.FunctionType(changed, {})()
        types.FunctionType(changed, {"__name__": 5})()
        types.FunctionType(changed, {"__name__": name})()


# References to code objects before, in and after sessions.
def counted():
    return 1


def references():
    return sys.getrefcount(counted.__code__)


# Code that is made and dies all the time, so that its addresses are used again, by code of another name.
def made_anew(times, look):
    import weakref

    addresses, dead = set(), None
    for n in range(times):
        assert dead is None or dead() is None, "the session keeps dead code alive"
        name = "made_%d" % (n % 97)
        code = compile("def %s(n):\n    look()\n    return n and %s(n - 1)\n%s(2)" % (name, name, name), "<made>", "exec")
        addresses.add(id(code.co_consts[0]))
        space = {"look": look}
        exec(code, space)
        dead = weakref.ref(code)
        del code
        # The function and its globals refer to each other.
        space.clear()
    # How often depends on where the interpreter happens to find memory.
    assert len(addresses) < times, "no address was used again: this test shows nothing"


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


# Our callbacks in the hands of others.
kept = []


def steal():
    for event in (M.events.PY_START, M.events.PY_RETURN, M.events.PY_RESUME, M.events.PY_YIELD, M.events.PY_THROW, M.events.PY_UNWIND):
        callback = M.register_callback(2, event, None)
        M.register_callback(2, event, callback)
        kept.append(callback)


def misuse():
    for callback in kept:
        for arguments in ((), (1,), (1, 2), ("x", 1, 2, 3), (misuse.__code__, 0), (misuse.__code__,) * 9):
            assert callback(*arguments) is None, callback


# Leave events that are lost for a while: what ran then stays on the shadow stack.
def lost():
    return 1


def look():
    check()


def lose_leaves():
    callback = M.register_callback(2, M.events.PY_RETURN, None)
    for _ in range(3):
        lost()
    M.register_callback(2, M.events.PY_RETURN, callback)
    check_lost()
    look()
    look()


def lose_enters():
    def inner():
        M.register_callback(2, M.events.PY_START, callback)
        check_lost()
        look()

    callback = M.register_callback(2, M.events.PY_START, None)
    inner()
    look()


# An exception thrown through a generator that delegates: the interpreter lists that, and nothing runs it.
def delegate():
    def inner():
        while True:
            try:
                yield
            except KeyError:
                check_lost()
                lost()

    def outer():
        yield from inner()

    g = outer()
    next(g)
    g.throw(KeyError)
    look()


# A tracing function that raises when a function is called: the interpreter tells it first, and then nobody else of the call.
def raising_trace():
    def victim():
        assert False, "it never begins"

    def trace(frame, event, argument):
        raise ValueError

    for _ in range(100):
        sys.settrace(trace)
        try:
            victim()
        except ValueError:
            pass
        check_lost()
    look()


# Another interpreter's code, with a monitoring tool of its own.
def in_a_subinterpreter():
    try:
        import _interpreters as interpreters
    except ImportError:
        import _xxsubinterpreters as interpreters
    import textwrap

    def run(number, source):
        failed = interpreters.run_string(number, textwrap.dedent(source))
        assert failed is None, failed

    number = interpreters.create()
    run(number, '''
        import sys
        M = sys.monitoring
        assert [M.get_tool(i) for i in range(6)] == [None] * 6, "ours is not theirs"
        M.use_tool_id(2, "theirs")
        seen = []
        M.register_callback(2, M.events.PY_START, lambda code, offset: seen.append(code))
        M.set_events(2, M.events.PY_START)
        def count(n):
            return n and count(n - 1)
        for _ in range(1000):
            count(5)
        assert len(seen) >= 6000, len(seen)
    ''')
    look()
    return interpreters, number


def leave_the_subinterpreter(interpreters, number):
    interpreters.run_string(number, "for _ in range(100): count(5)\nassert len(seen) >= 6600")
    interpreters.destroy(number)


# What an audit costs: `ask` wants one at the next call.
def nanoseconds_of_an_audit(depth):
    import time

    def timed(wanted):
        best = 1 << 60
        for _ in range(20):
            begin = time.perf_counter_ns()
            for _ in range(200):
                wanted()
                leaf(1)
            best = min(best, time.perf_counter_ns() - begin)
        return best / 200

    if depth:
        return nanoseconds_of_an_audit(depth - 1)
    return timed(ask) - timed(ask_not)


# Eight busy threads.
running = True


def leaf(n):
    return n


def generator():
    yield from map(leaf, range(3))


def busy():
    while running:
        for n in range(50):
            leaf(n)
            list(generator())


def references_of_busy():
    return [sys.getrefcount(f.__code__) for f in (leaf, generator, busy, work, references_of_busy)]


def begin_threads():
    global threads, running
    running = True
    threads = [threading.Thread(target=busy) for _ in range(8)]
    for thread in threads:
        thread.start()


def end_threads():
    global running
    running = False
    for thread in threads:
        thread.join()


# Sessions that begin in the middle of things; `begin` and `end` are the test's, `check` compares.
def late_plain():
    def inside(n):
        if n:
            return inside(n - 1)
        begin()
        look()
        look()

    inside(5)
    look()
    end()


def late_in_a_thread():
    """From 3.14 on a thread has two eval frames before it does anything: the outer one never sends an event, and its functions have a place all the same."""
    thread = threading.Thread(target=late_plain)
    thread.start()
    thread.join()


def late_nested():
    def inside(n):
        if n:
            return max([n], key=lambda k: inside(k - 1) or 0)
        begin()
        check()
        after()
        check()

    def after():
        check()
        sorted([2, 1], key=lambda n: (check(), n)[1])

    inside(3)
    check()
    after()
    end()


def late_generator():
    def outer():
        for _ in inner():
            check()
            yield

    def inner():
        yield 1
        begin()
        check()
        yield 2
        check()

    for _ in outer():
        check()
    check()
    end()


def late_delegating():
    """The session begins while an exception is thrown through `outer`, which is on the interpreter's list and runs nothing; then it runs."""

    def inner():
        try:
            yield
        except ValueError:
            begin()
            look()
            look()

    def outer():
        yield from inner()
        look()
        look()

    generator = outer()
    next(generator)
    try:
        generator.throw(ValueError())
    except StopIteration:
        pass
    look()
    end()


def late_exception():
    def deep(n):
        if n == 0:
            begin()
            check()
            raise KeyError
        try:
            deep(n - 1)
        finally:
            check()

    try:
        deep(5)
    except KeyError:
        check()
    end()


def late_loop():
    async def child(n):
        check()
        await asyncio.sleep(0)
        check()
        if n:
            await child(n - 1)

    async def main():
        tasks = [asyncio.create_task(child(3)) for _ in range(3)]
        await asyncio.sleep(0)
        begin()
        check()
        await asyncio.gather(*tasks)
        check()

    asyncio.run(main())
    check()
    end()


# A plugin and a dependency as Endstone's loader installs them, and one that comes while a session runs.
def install(root, name, package, entry=None):
    import os

    site = os.path.join(root, "plugins", ".local", "lib", "python3", "site-packages")
    info = os.path.join(site, "%s-1.0.dist-info" % name.replace("-", "_"))
    os.makedirs(os.path.join(site, package))
    os.makedirs(info)
    with open(os.path.join(site, package, "__init__.py"), "w") as file:
        file.write("import dataclasses\n\n\ndef work():\n    return Made(1)\n\n\n@dataclasses.dataclass\nclass Made:\n    n: int\n")
    with open(os.path.join(info, "METADATA"), "w") as file:
        file.write("Metadata-Version: 2.1\nName: %s\nVersion: 1.0\n" % name)
    with open(os.path.join(info, "RECORD"), "w") as file:
        file.write("%s/__init__.py,,\n" % package)
    if entry:
        with open(os.path.join(info, "entry_points.txt"), "w") as file:
            file.write("[endstone]\n%s = %s:Plugin\n" % (entry, package))
    if site not in sys.path:
        sys.path.append(site)


def many_functions(count):
    for i in range(count):
        exec("def f%d():\n    pass\nf%d()" % (i, i), {})


def forked(count):
    """Forks children that run functions never seen before, one by one; how each ended, up to the first that does not end well."""
    import os
    import signal
    import time
    import warnings

    warnings.simplefilter("ignore", DeprecationWarning)
    ends = []
    while len(ends) < count and not any(ends):
        child = os.fork()
        if child == 0:
            try:
                many_functions(20)
                os._exit(0)
            finally:
                os._exit(1)
        limit = time.monotonic() + 20
        ended, status = os.waitpid(child, os.WNOHANG)
        while not ended:
            if time.monotonic() > limit:
                os.kill(child, signal.SIGKILL)
                ended, status = os.waitpid(child, 0)
            else:
                time.sleep(0.001)
                ended, status = os.waitpid(child, os.WNOHANG)
        ends.append(status)
    return ends


def work_in(package):
    import importlib

    importlib.invalidate_caches()
    importlib.import_module(package).work()
