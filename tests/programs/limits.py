"""What the test of limits and rules runs."""
import sys
import threading

M = sys.monitoring
OURS = 2
SIX = ("PY_START", "PY_RESUME", "PY_THROW", "PY_RETURN", "PY_YIELD", "PY_UNWIND")
# Those that are groups of others, or no events.
GROUPS = ("NO_EVENTS", "BRANCH")


def assert_six_events():
    assert M.get_tool(OURS) == "spark", M.get_tool(OURS)
    assert M.get_events(OURS) == sum(getattr(M.events, name) for name in SIX), M.get_events(OURS)
    for name in dir(M.events):
        if name.startswith("_") or name in GROUPS:
            continue
        event = getattr(M.events, name)
        before = M.register_callback(OURS, event, None)
        M.register_callback(OURS, event, before)
        assert (before is not None) == (name in SIX), (name, before)
    assert M.get_local_events(OURS, down.__code__) == 0
    assert sys.getprofile() is None and sys.gettrace() is None


def assert_untouched():
    assert [M.get_tool(i) for i in range(6)] == [None] * 6
    assert sys.getprofile() is None and sys.gettrace() is None
    M.use_tool_id(OURS, "look")
    assert M.get_events(OURS) == 0
    for name in SIX:
        assert M.register_callback(OURS, getattr(M.events, name), None) is None, name
    M.free_tool_id(OURS)


sys.setrecursionlimit(3000)


def down(n):
    if n:
        down(n - 1)
    else:
        look()


def one_after_the_other(number):
    for _ in range(number):
        thread = threading.Thread(target=down, args=(1,))
        thread.start()
        thread.join()


def generator():
    try:
        yield 1
        yield 2
    except KeyError:
        yield 3


def failing():
    raise ValueError


def one_of_each():
    # Started, resumed, thrown into, and resumed to its end.
    one = generator()
    next(one)
    next(one)
    one.throw(KeyError)
    next(one, None)
    try:
        failing()
    except ValueError:
        pass
    down_to_nothing()


def down_to_nothing():
    return 1
