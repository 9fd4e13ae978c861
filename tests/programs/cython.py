"""Python functions that call, and are called by, functions that Cython compiled with profiling on. `check` compares."""
import sys
import threading

import profiled


def leaf(n):
    check()
    return n


def through_cython(n):
    check()
    return profiled.calling(leaf, n)


def every_way():
    assert profiled.calling(leaf, 1) == 1
    check()
    assert profiled.calling(through_cython, 2) == 2
    check()
    assert list(profiled.numbers(through_cython, 3)) == [0, 1, 2]
    check()
    suspended = profiled.numbers(leaf, 3)
    next(suspended)
    check()
    suspended.close()
    check()
    try:
        profiled.raising(through_cython)
    except KeyError:
        check()
    counter = profiled.Counter()
    assert counter.add(lambda n: counter.add(leaf, n), 4) == 4
    check()
    assert max([1, 2], key=lambda n: profiled.calling(through_cython, n)) == 2
    check()


def in_threads(act):
    threads = [threading.Thread(target=act) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def events_of_cython():
    """How many events other tools get of the compiled functions: without them this test shows nothing."""
    M = sys.monitoring
    seen = []
    M.use_tool_id(3, "other")
    M.register_callback(3, M.events.PY_START, lambda code, offset: seen.append(code.co_filename))
    M.set_events(3, M.events.PY_START)
    every_way()
    M.set_events(3, 0)
    M.register_callback(3, M.events.PY_START, None)
    M.free_tool_id(3)
    return sum(name.endswith(".pyx") for name in seen)


def spins():
    """Until told otherwise: half of the time in compiled code, half in Python's."""
    while goes_on():
        profiled.spinning(20_000)
        spins_itself()


def spins_itself():
    value = 0
    for n in range(400):
        value += n ^ (n >> 3)
    return value
