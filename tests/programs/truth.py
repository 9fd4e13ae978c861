"""Runs code of every kind; `check()` compares the profiler's view of this thread with the interpreter's own, wherever it is called."""
import asyncio
import contextlib
import functools
import gc
import json
import re
import threading


class Number:
    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value

    def __lt__(self, other):
        if self.value % 7 == 0:
            check()
        return self.value < other.value

    def __getattr__(self, name):
        check()
        return len(name)

    @property
    def double(self):
        check()
        return self.value * 2

    def __eq__(self, other):
        check()
        return True

    def __hash__(self):
        return 1


class Descriptor:
    def __get__(self, instance, owner):
        check()
        return 1

    def __set__(self, instance, value):
        check()

    def __set_name__(self, owner, name):
        check()


class Dying:
    def __init__(self):
        self.me = self

    def __del__(self):
        check()


def sorting():
    sorted((Number(i * 7919 % 50) for i in range(50)))
    sorted(range(20), key=lambda n: (check(), -n)[1])
    min(range(5), key=functools.cmp_to_key(lambda a, b: (check(), a - b)[1]))


def parsing():
    def hook(pairs):
        check()
        return dict(pairs)

    text = json.dumps({"a": [1, {"b": Number(2)}], "c": {"d": {}}}, default=lambda o: (check(), o.value)[1])
    json.loads(text, object_pairs_hook=hook)
    json.loads(text, object_hook=lambda d: (check(), d)[1], parse_int=lambda s: (check(), int(s))[1])


def substituting():
    def swap(match):
        check()
        return re.sub(r"\w", lambda m: (check(), m.group().upper())[1], match.group(2))

    re.sub(r"(\w+) (\w+)", swap, "hello world foo bar " * 3)


def generators():
    def count(n):
        for i in range(n):
            check()
            yield i

    def delegating(n):
        yield from count(n)
        check()
        return n

    def receiving():
        while True:
            try:
                got = yield
                check()
                if got == "stop":
                    return
            except ValueError:
                check()
            finally:
                check()

    sum(x * 2 for x in delegating(5))
    list(zip(count(3), delegating(3)))
    [x for x in count(3) for y in delegating(2) if not check()]
    g = receiving()
    next(g)
    g.send(1)
    for _ in range(3):
        g.throw(ValueError)
        check()
    with contextlib.suppress(StopIteration):
        g.send("stop")
    check()
    g = receiving()
    next(g)
    with contextlib.suppress(KeyError):
        g.throw(KeyError)
    check()
    g = receiving()
    next(g)
    g.close()
    check()
    g = delegating(4)
    next(g)
    g.close()
    check()
    g = delegating(4)
    next(g)
    with contextlib.suppress(KeyError):
        g.throw(KeyError)
    check()


def collected():
    def suspended():
        try:
            yield 1
        finally:
            check()

    def plain():
        yield 1
        yield 2

    def outer():
        yield from suspended()

    for make in (suspended, plain, outer):
        g = make()
        next(g)
        del g
        check()
        g = make()
        next(g)
        cycle = [g]
        cycle.append(cycle)
        del g, cycle
        gc.collect()
        check()
        g = make()
        del g
        check()
        g = make()
        next(g)
        g.close()
        check()
        sorted([2, 1], key=lambda n: (check(), n)[1])
    Dying()
    gc.collect()
    check()


def exceptions():
    def deep(n):
        if n == 0:
            check()
            raise KeyError
        try:
            return deep(n - 1)
        finally:
            if n % 5 == 0:
                check()

    for depth in (1, 20, 60):
        try:
            deep(depth)
        except KeyError:
            check()

    def through_c(n):
        if n == 0:
            raise KeyError
        return sorted([1], key=lambda _: through_c(n - 1))

    try:
        through_c(10)
    except KeyError:
        check()

    @contextlib.contextmanager
    def managed():
        try:
            yield check()
        finally:
            check()

    try:
        with managed():
            raise ValueError
    except ValueError:
        check()
    try:
        raise ExceptionGroup("both", [ValueError(), KeyError()])
    except* ValueError:
        check()
    except* KeyError:
        check()


def objects():
    number = Number(1)
    number.missing
    number.double
    {number: 1}[Number(2)]

    class Holder:
        place = Descriptor()
        check()

    holder = Holder()
    holder.place
    holder.place = 1

    @functools.wraps(objects)
    def decorated(*args, **kwargs):
        return check()

    functools.partial(decorated, 1)()
    functools.lru_cache(decorated)(2)
    functools.reduce(lambda a, b: (check(), a + b)[1], range(4))
    list(map(decorated, range(3)))
    list(filter(lambda n: check(), range(3)))
    {k: v for k, v in [(1, 2)] if not check()}
    {k for k in [1] if not check()}

    class Meta(type):
        def __call__(cls, *args):
            check()
            return super().__call__(*args)

    class Made(metaclass=Meta):
        def __new__(cls, *args):
            check()
            return super().__new__(cls)

        def __init__(self, *args):
            check()

    Made(1)


def dynamic():
    exec("check()\ndef made(n):\n    check()\n    return n and made(n - 1)\nmade(3)", {"check": check})
    eval("[check() for _ in range(2)]", {"check": check})
    eval(compile("sorted([1], key=lambda _: check())", "<odd\n\ud800name>", "eval"), {"check": check})


def recursion():
    def inline(n):
        return check() if n == 0 else inline(n - 1)

    def through_c(n):
        return check() if n == 0 else max([n], key=lambda k: through_c(k - 1) or 0)

    inline(400)
    through_c(60)
    inline(100)
    check()


def asynchronous():
    async def nested(n):
        check()
        if n:
            await nested(n - 1)
        else:
            await asyncio.sleep(0)
        check()

    async def cancelled(event):
        try:
            await event.wait()
        except asyncio.CancelledError:
            check()
            raise
        finally:
            check()

    async def numbers(n):
        try:
            for i in range(n):
                check()
                yield i
                await asyncio.sleep(0)
        finally:
            check()

    async def reading():
        async for i in numbers(3):
            check()
        early = numbers(5)
        async for i in early:
            check()
            break
        await early.aclose()
        check()
        dropped = numbers(5)
        await anext(dropped)
        del dropped
        check()
        return [i async for i in numbers(2) if not check()]

    class Manager:
        async def __aenter__(self):
            check()

        async def __aexit__(self, *exception):
            check()
            return True

    async def managing():
        async with Manager():
            check()
            raise ValueError

    async def main():
        loop = asyncio.get_running_loop()
        loop.call_soon(check)
        loop.call_soon(lambda: check())
        event = asyncio.Event()
        waiting = [asyncio.create_task(cancelled(event)) for _ in range(100)]
        await asyncio.gather(*[nested(5) for _ in range(10)], reading(), managing())
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        try:
            async with asyncio.timeout(0):
                await asyncio.sleep(10)
        except TimeoutError:
            check()
        async with asyncio.TaskGroup() as group:
            group.create_task(nested(2))
            group.create_task(nested(3))

    asyncio.run(main())
    check()


def languages():
    def innermost():
        check()

    def from_cpp():
        check()
        sorted([2, 1], key=lambda n: (innermost(), n)[1])

    def from_c(n):
        check()
        if n:
            through_cpp(from_cpp)
        else:
            through_cpp(lambda: from_c(1))
        return n

    max([1, 0], key=from_c)

    def raising():
        check()
        raise KeyError

    try:
        through_cpp(lambda: max([1], key=lambda n: through_cpp(raising)))
    except KeyError:
        check()


def decorators():
    def counting(function):
        check()

        @functools.wraps(function)
        def counted(*arguments):
            check()
            return function(*arguments)

        return counted

    class Memory:
        def __init__(self, function):
            check()
            self.function = function

        def __call__(self, *arguments):
            check()
            return self.function(*arguments)

        def __get__(self, instance, owner):
            check()
            return functools.partial(self, instance)

    class Decorated:
        @counting
        @Memory
        def method(self, n):
            check()
            return n and self.again(n - 1)

        @Memory
        @counting
        def again(self, n):
            return self.method(n)

        @classmethod
        @counting
        def made(cls):
            check()
            return cls()

        @staticmethod
        @counting
        def apart(n):
            return [check() for _ in range(n)]

        @functools.cached_property
        def once(self):
            check()
            return 1

    decorated = Decorated.made()
    decorated.method(5)
    decorated.apart(2)
    decorated.once
    decorated.once


KINDS = [languages, decorators, sorting, parsing, substituting, generators, collected, exceptions, objects, dynamic, recursion, asynchronous]


def learning():
    # Its name and its qualified name differ.
    def inner():
        learn(inner.__code__)

    inner()


def everything():
    for kind in KINDS:
        kind()
        check()


def on_threads():
    threads = [threading.Thread(target=everything) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def unchecked(seconds):
    """The same as fast as it goes, on three threads, for a sampler to look at."""
    import time

    global check
    checking, check = check, lambda: None
    end = time.monotonic() + seconds

    def until_the_end():
        watch_me(True)
        while time.monotonic() < end:
            everything()
        watch_me(False)

    threads = [threading.Thread(target=until_the_end) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        until_the_end()
    finally:
        check = checking
        for thread in threads:
            thread.join()
