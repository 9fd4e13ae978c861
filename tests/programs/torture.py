"""Work of every kind on threads of its own, until told to stop. Each function says whose call alone can bring it about, so that a profile can be judged: `PARENTS` has for each
the nearest functions of this file that may be its callers; "" is the thread's root, and "*" stands for whatever runs when garbage is collected."""
import asyncio
import contextlib
import ctypes
import functools
import gc
import importlib
import json
import os
import re
import signal
import struct
import subprocess
import sys
import threading
import time
import warnings

STOP = threading.Event()
DONE = {}
PARENTS = {}
THREADS = {}
FAILURES = []
RUNNING = []
M = sys.monitoring
libc = ctypes.CDLL(None)


def under(*parents):
    def noted(function):
        PARENTS[function.__name__] = parents
        return function

    return noted


PARENTS["under"] = PARENTS["noted"] = ("", "<module>")
PARENTS["<module>"] = ("", "made_main")
PARENTS["<genexpr>"] = ("mon_main",)


# Sorting, with Python functions that C calls.
class Number:
    __slots__ = ("value",)

    @under("sort_main")
    def number_init(self, value):
        self.value = value

    @under("sort_main")
    def number_lt(self, other):
        return self.value < other.value


Number.__init__ = Number.number_init
Number.__lt__ = Number.number_lt


@under("sort_main")
def sort_key(number):
    return -number


@under("sort_main")
def sort_compare(a, b):
    return sort_difference(a, b)


@under("sort_compare")
def sort_difference(a, b):
    return a - b


@under("")
def sort_main():
    sorted(range(50), key=sort_key)
    sorted(range(50), key=functools.cmp_to_key(sort_compare))
    sorted([Number(n * 7919 % 50) for n in range(50)])


# Callbacks of parsers.
@under("text_main")
def text_pairs(pairs):
    return dict(pairs)


@under("text_main")
def text_swap(match):
    return re.sub(r"\w", text_upper, match.group(2))


@under("text_swap")
def text_upper(match):
    return match.group().upper()


@under("")
def text_main():
    json.loads(json.dumps({"a": [1, {"b": 2}], "c": {"d": {}}}), object_pairs_hook=text_pairs)
    re.sub(r"(\w+) (\w+)", text_swap, "hello world foo bar " * 3)


# Generators: exhausted, sent to, thrown into, closed, dropped, and collected wherever garbage is collected.
@under("gen_main", "gen_delegate", "gen_sum")
def gen_count(n):
    for number in range(n):
        gen_step()
        yield number


@under("gen_count")
def gen_step():
    return 1


@under("gen_main", "gen_sum")
def gen_delegate(n):
    yield from gen_count(n)
    return n


@under("gen_main")
def gen_receive():
    while True:
        try:
            if (yield) == "stop":
                return
        except ValueError:
            gen_caught()
        finally:
            gen_finally()


@under("gen_receive")
def gen_caught():
    return 1


@under("gen_receive")
def gen_finally():
    return 1


@under("gen_main")
def gen_sum(numbers):
    return sum(numbers)


@under("*")
def gen_dropped():
    try:
        yield 1
    finally:
        gen_dropping()


@under("gen_dropped")
def gen_dropping():
    return sum(range(20))


class Dying:
    @under("gen_main")
    def dying_init(self):
        self.me = self

    @under("*")
    def dying_del(self):
        dying_last()


@under("dying_del")
def dying_last():
    return sum(range(20))


Dying.__init__ = Dying.dying_init
Dying.__del__ = Dying.dying_del


@under("")
def gen_main():
    gen_sum(gen_count(5))
    gen_sum(gen_delegate(5))
    list(zip(gen_count(3), gen_delegate(3)))
    for end in ("stop", ValueError, KeyError, None):
        received = gen_receive()
        next(received)
        received.throw(ValueError)
        with contextlib.suppress(StopIteration, KeyError):
            if end is None:
                received.close()
            elif end == "stop":
                received.send(end)
            else:
                received.throw(end)
                received.throw(KeyError)
    closed = gen_delegate(4)
    next(closed)
    closed.close()
    for _ in range(3):
        dropped = gen_dropped()
        next(dropped)
        cycle = [dropped]
        cycle.append(cycle)
        Dying()
        del dropped, cycle
    gc.collect(0)


# Exceptions.
@under("exc_main", "exc_deep", "exc_key")
def exc_deep(n):
    if not n:
        exc_raise()
    try:
        return exc_key(n) if n % 7 == 0 else exc_deep(n - 1)
    finally:
        if n % 5 == 0:
            exc_clean()


@under("exc_deep")
def exc_key(n):
    # The key function is called by sorted().
    return sorted([n - 1], key=exc_deep)


@under("exc_deep")
def exc_clean():
    return 1


@under("exc_deep")
def exc_raise():
    raise KeyError


@under("exc_main")
def exc_managed():
    try:
        yield exc_enter()
    finally:
        exc_leave()


@under("exc_managed")
def exc_enter():
    return 1


@under("exc_managed")
def exc_leave():
    return 1


exc_manager = contextlib.contextmanager(exc_managed)


@under("")
def exc_main():
    for depth in (1, 20, 60):
        with contextlib.suppress(KeyError):
            exc_deep(depth)
    with contextlib.suppress(ValueError), exc_manager():
        raise ValueError
    try:
        raise ExceptionGroup("both", [ValueError(), KeyError()])
    except* ValueError:
        pass
    except* KeyError:
        pass


# Python, C++ and back; C++ exceptions.
@under("cpp_main")
def cpp_called():
    return sorted([2, 1], key=cpp_inner)


@under("cpp_called")
def cpp_inner(n):
    return n


@under("cpp_main")
def cpp_raising():
    cpp_raise()


@under("cpp_raising")
def cpp_raise():
    raise KeyError


@under("")
def cpp_main():
    if NATIVE:
        through_cpp(cpp_called)
        with contextlib.suppress(KeyError):
            through_cpp(cpp_raising)
        assert throw_through(30) == 30


# asyncio.
@under("aio_main", "aio_nested")
async def aio_nested(n):
    if n:
        await aio_nested(n - 1)
    else:
        await asyncio.sleep(0)
    aio_step()


@under("aio_nested")
def aio_step():
    return 1


@under("aio_main")
async def aio_cancelled(event):
    try:
        await event.wait()
    finally:
        aio_clean()


@under("aio_cancelled")
def aio_clean():
    return 1


# One that is dropped may be closed wherever garbage is collected.
@under("*")
async def aio_numbers(n):
    try:
        for number in range(n):
            aio_number()
            yield number
            await asyncio.sleep(0)
    finally:
        aio_number()


@under("aio_numbers")
def aio_number():
    return 1


@under("aio_main")
async def aio_reading():
    async for _ in aio_numbers(3):
        pass
    early = aio_numbers(5)
    async for _ in early:
        break
    await early.aclose()
    dropped = aio_numbers(5)
    await anext(dropped)
    del dropped
    return [number async for number in aio_numbers(2)]


@under("aio_main")
async def aio_all():
    event = asyncio.Event()
    waiting = [asyncio.create_task(aio_cancelled(event)) for _ in range(20)]
    await asyncio.gather(*[aio_nested(5) for _ in range(10)], aio_reading())
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(0):
            await asyncio.sleep(10)
    async with asyncio.TaskGroup() as group:
        group.create_task(aio_nested(2))


@under("")
def aio_main():
    asyncio.run(aio_all())


# Threads that live for a moment.
@under("")
def churn_work(n):
    rename("tort-churned")
    sorted(range(n), key=churn_key)


@under("churn_work")
def churn_key(n):
    return -n


@under("")
def churn_main():
    made = [threading.Thread(target=churn_work, args=(500 * n,)) for n in range(4)]
    for thread in made:
        thread.start()
    for thread in made:
        thread.join()


# Libraries that come and go.
@under("")
def load_main():
    if NATIVE:
        for path in CHURNED:
            handle = libc.dlopen(path.encode(), 2)
            assert handle, path
            load_call(libc.dlsym(handle, b"churned_work"))
            assert libc.dlclose(handle) == 0


@under("load_main")
def load_call(address):
    ctypes.CFUNCTYPE(ctypes.c_ulong, ctypes.c_ulong)(address)(20_000)


# Children, forked and executed.
@under("")
def fork_main():
    assert subprocess.run(["/bin/true"], check=False).returncode == 0
    # In the child CPython ends the states of all other threads, and one that Python did not make wants this lock then: whoever held it is not there any more.
    with threading._active_limbo_lock:
        child = os.fork()
    if not child:
        fork_child()
    end = time.monotonic() + CHILD_SECONDS
    while not (ended := os.waitpid(child, os.WNOHANG))[0]:
        if time.monotonic() > end:
            give_up(child)
            return
        time.sleep(0.001)
    assert ended[1] == 0
    time.sleep(0.02)


@under("fork_main")
def fork_child():
    # What a child may do without whoever held locks in its parent.
    sum(n for n in range(100))
    os._exit(0)


# A child that has not ended by then waits for ever.
CHILD_SECONDS = 60
# Endstone's allocator lets a child wait for a thread that only its parent has, without a profiler too: how often, by where.
GIVEN_UP = {}
ALLOCATOR = "libmimalloc.so"


@under("give_up")
def waits_in(child):
    """The library that called the C library to wait."""
    for _ in range(1000):
        with open(f"/proc/{child}/syscall") as file:
            said = file.read().split()
        # Else it says "running", as what asks and sleeps in turn does now and then.
        if len(said) > 2:
            break
        time.sleep(0.001)
    else:
        return "none: it runs"
    code = []
    with open(f"/proc/{child}/maps") as file:
        for bounds, rights, *_, path in map(str.split, file):
            low, high = (int(bound, 16) for bound in bounds.split("-"))
            library = os.path.basename(path)
            if "x" in rights and not library.startswith(("libc.so", "ld-linux")):
                code.append((low, high, library))
    with open(f"/proc/{child}/mem", "rb", buffering=0) as memory:
        memory.seek(int(said[-2], 16))
        words = struct.unpack("128Q", memory.read(1024))
    for word in words:
        for low, high, library in code:
            if low <= word < high:
                return library
    return "unknown"


@under("fork_main")
def give_up(child):
    library = waits_in(child)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    GIVEN_UP[library] = GIVEN_UP.get(library, 0) + 1
    if library != ALLOCATOR:
        FAILURES.append(f"a forked child waited for ever in {library}")


# Other tools that look at Python code.
@under("mon_main")
def mon_target(n):
    return mon_leaf(n)


@under("mon_target")
def mon_leaf(n):
    return n + 1


# The callback of one function's own events.
@under("mon_target", "mon_leaf")
def mon_event(*_):
    return None


@under("")
def mon_main():
    tool = next((n for n in (0, 1, 3, 4, 5) if M.get_tool(n) is None), None)
    if tool is None:
        return
    M.use_tool_id(tool, "torture")
    try:
        # Of all functions, with a callback in C; and of one, in Python.
        M.register_callback(tool, M.events.PY_RETURN, "".format)
        M.set_events(tool, M.events.PY_RETURN)
        M.register_callback(tool, M.events.PY_START, mon_event)
        M.register_callback(tool, M.events.LINE, mon_event)
        M.set_local_events(tool, mon_target.__code__, M.events.PY_START | M.events.LINE)
        for n in range(20):
            mon_target(n)
        M.restart_events()
    finally:
        M.set_events(tool, 0)
        M.set_local_events(tool, mon_target.__code__, 0)
        for event in (M.events.PY_RETURN, M.events.PY_START, M.events.LINE):
            M.register_callback(tool, event, None)
        M.free_tool_id(tool)
    time.sleep(0.01)



@under("trace_main")
def trace_target(n):
    return trace_leaf(n)


@under("trace_target")
def trace_leaf(n):
    return n + 1


# A hook is called in what a garbage collection runs, too.
COLLECTED = ("gen_dropped", "gen_dropping", "dying_del", "dying_last", "aio_numbers", "aio_number")


@under("trace_target", "trace_leaf", *COLLECTED)
def trace_hook(frame, event, argument):
    return trace_hook


@under("trace_main", "trace_target", "trace_leaf", *COLLECTED)
def profile_hook(frame, event, argument):
    return None


@under("")
def trace_main():
    for n in range(10):
        sys.settrace(trace_hook)
        trace_target(n)
        sys.settrace(None)
        sys.setprofile(profile_hook)
        trace_target(n)
        sys.setprofile(None)


# Functions made at run time, whose code objects follow each other at the same addresses.
SOURCES = {name: f"def {name}(n):\n    return {name}_leaf(n)\ndef {name}_leaf(n):\n    return n + 1\n" for name in ("made_a", "made_b", "made_c")}
for made in SOURCES:
    PARENTS[made] = ("made_main",)
    PARENTS[f"{made}_leaf"] = (made,)


@under("")
def made_main():
    for name, source in SOURCES.items():
        space = {"__name__": "torture"}
        exec(source, space)
        for n in range(50):
            space[name](n)
    for name in ("colorsys", "wave", "textwrap"):
        sys.modules.pop(name, None)
        importlib.import_module(name)


# Depth.
@under("deep_main", "deep_inline")
def deep_inline(n):
    return deep_inline(n - 1) if n else deep_end()


@under("deep_inline")
def deep_end():
    return 1


@under("deep_main", "deep_through_c")
def deep_through_c(n):
    return max([n - 1], key=deep_through_c) if n else 0


@under("")
def deep_main():
    deep_inline(400)
    deep_through_c(60)


# Two chains that go over the same stack in turn.
@under("turn_main")
def turn_left(n):
    return turn_left_leaf(n)


@under("turn_left")
def turn_left_leaf(n):
    return sum(range(n))


@under("turn_main")
def turn_right(n):
    return turn_right_leaf(n)


@under("turn_right")
def turn_right_leaf(n):
    return sum(range(n))


@under("")
def turn_main():
    for n in range(100):
        turn_left(n)
        turn_right(n)


# Waiting.
@under("")
def idle_main():
    STOP.wait(0.05)


MAINS = [sort_main, text_main, gen_main, exc_main, cpp_main, aio_main, churn_main, load_main, fork_main, mon_main, trace_main, made_main, deep_main, turn_main, idle_main]
PARENTS.update({main.__name__: ("repeat",) for main in MAINS})


@under("repeat", "churn_work")
def rename(name):
    libc.prctl(15, name.encode(), 0, 0, 0)


@under("")
def repeat(main):
    name = "tort-" + main.__name__.removesuffix("_main")
    rename(name)
    try:
        while not STOP.is_set():
            main()
            DONE[main.__name__] = DONE.get(main.__name__, 0) + 1
    except BaseException as error:
        FAILURES.append(f"{main.__name__}: {error!r}")
        raise


@under("")
def prepare(native, churned):
    """`native` is the library of torture.cpp, through.cpp and throws.cpp, or empty; `churned` are libraries to load and unload."""
    global NATIVE, CHURNED, through_cpp, throw_through
    NATIVE, CHURNED = ctypes.PyDLL(native) if native else None, churned
    libc.dlopen.restype = libc.dlsym.restype = ctypes.c_void_p
    libc.dlopen.argtypes = [ctypes.c_char_p, ctypes.c_int]
    libc.dlsym.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    libc.dlclose.argtypes = [ctypes.c_void_p]
    if native:
        through = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.py_object)(("through_cpp", NATIVE))
        through_cpp = functools.partial(through, None)
        throw_through = ctypes.CDLL(native).throw_through
        throw_through.restype = ctypes.c_ulong
        assert NATIVE.foreign_begin(20_000) == 0
    # Forking with threads is what servers do.
    warnings.simplefilter("ignore", DeprecationWarning)
    sys.setswitchinterval(0.001)
    for main in MAINS:
        THREADS[main.__name__] = "tort-" + main.__name__.removesuffix("_main")
    with open("truth.json", "w", encoding="utf-8") as file:
        json.dump({"parents": PARENTS, "threads": THREADS}, file)
    return "prepared"


@under("")
def begin():
    for main in MAINS:
        RUNNING.append(threading.Thread(target=repeat, args=(main,)))
        RUNNING[-1].start()
    return "begun"


@under("")
def stop():
    """Ends everything; what went wrong, and what was never done."""
    STOP.set()
    for thread in RUNNING:
        thread.join()
    if NATIVE:
        ticks = NATIVE.foreign_ticks()
        if not ticks:
            FAILURES.append("the foreign timer never fired")
    gc.collect()
    undone = sorted({main.__name__ for main in MAINS} - set(DONE))
    return f"undone {undone} failures {FAILURES} children given up {GIVEN_UP}"
