"""Calls in which Python's memory runs out at one place or another."""
import sys

import _testcapi

M = sys.monitoring
EVENTS = [M.events.PY_START, M.events.PY_RETURN, M.events.PY_RESUME, M.events.PY_YIELD, M.events.PY_THROW, M.events.PY_UNWIND]


def begin_other():
    """A tool that does nothing, with the events that ours has: what runs out in the interpreter's own part of them."""
    M.use_tool_id(2, "other")
    for event in EVENTS:
        M.register_callback(2, event, nothing)
    M.set_events(2, sum(EVENTS))


def end_other():
    M.set_events(2, 0)
    for event in EVENTS:
        M.register_callback(2, event, None)
    M.free_tool_id(2)


SOURCE = """
def inner():
    return 1

def numbers():
    try:
        yield 1
    except KeyError:
        yield 2

def outer():
    inner()
    g = numbers()
    next(g)
    g.throw(KeyError)
    g.close()

def known():
    inner()
"""


def fresh():
    """Functions that no session has seen."""
    space = {"KeyError": KeyError, "next": next, "__name__": "fresh"}
    exec(compile(SOURCE, "<fresh>", "exec"), space)
    return space


# Allocations that fail, one in each attempt: the first, the second and so on.
PLACES = 120


def attempts(name, warm):
    """How often memory was said to have run out, in calls that are each the first, or not, of their functions."""
    failures = 0
    spaces = [fresh() for _ in range(PLACES)]
    for place, space in enumerate(spaces):
        function = space[name]
        if warm:
            function()
            function()
        ask()
        try:
            _testcapi.set_nomemory(place, place + 1)
            function()
        except (MemoryError, SystemError):
            # CPython itself forgets which of its errors it was, at some places.
            failures += 1
        finally:
            _testcapi.remove_mem_hooks()
        check()
    return failures


def look():
    check()
    max([1], key=lambda _: check())


def after():
    for _ in range(3):
        ask()
        look()
