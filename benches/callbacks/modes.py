"""How it is measured: the same work with nothing, with callbacks of each kind, and with cProfile."""
import cProfile
import ctypes
import sys
import time

M = sys.monitoring
EVENTS = [M.events.PY_START, M.events.PY_RESUME, M.events.PY_THROW, M.events.PY_RETURN, M.events.PY_YIELD, M.events.PY_UNWIND]
ENTERS = EVENTS[:3]
TOOL = 4

# How often each piece of work runs in a round: the shortest counts, as what else the machine does only ever adds.
RUNS = 3

# Nanoseconds of each round, by mode and work.
times = {}


def measure(mode):
    for name, work in WORK.items():
        # Once for what is done only once: a session names every function that it sees for the first time.
        work()
        runs = []
        for _ in range(RUNS):
            begin = time.perf_counter_ns()
            work()
            runs.append(time.perf_counter_ns() - begin)
        times.setdefault(mode, {}).setdefault(name, []).append(min(runs))


def begin(callback):
    M.use_tool_id(TOOL, "bench")
    for event in EVENTS:
        M.register_callback(TOOL, event, callback)
    M.set_events(TOOL, sum(EVENTS))


def end():
    M.set_events(TOOL, 0)
    for event in EVENTS:
        M.register_callback(TOOL, event, None)
    M.free_tool_id(TOOL)


def with_callbacks(mode, callback):
    begin(callback)
    measure(mode)
    end()


def with_cprofile():
    profile = cProfile.Profile()
    profile.enable()
    measure("cProfile")
    profile.disable()


def with_viztracer():
    """With its usual settings; its folder is in the environment where there is one for this Python."""
    import os

    folder = os.environ.get("SPARK_BENCH_VIZTRACER")
    if not folder:
        return
    if folder not in sys.path:
        sys.path.append(folder)
    from viztracer import VizTracer

    tracer = VizTracer(verbose=0)
    tracer.start()
    measure("viztracer")
    tracer.stop()
    tracer.clear()


# A C function that does next to nothing: what it costs to reach it.
through_ctypes = ctypes.CDLL(None).labs
through_ctypes.argtypes = [ctypes.c_long]
through_ctypes.restype = ctypes.c_long


def in_python(code, *_):
    return None


def in_python_with_ctypes(code, *_):
    through_ctypes(id(code))


def slow_ones():
    """Those that differ so much that fewer rounds tell."""
    with_cprofile()
    with_viztracer()
    with_callbacks("Python", in_python)
    with_callbacks("Python and ctypes", in_python_with_ctypes)


def calls(work):
    """How often functions are entered in this work: started, resumed or thrown into."""
    number = 0

    def count(*_):
        nonlocal number
        number += 1

    M.use_tool_id(TOOL, "bench")
    for event in ENTERS:
        M.register_callback(TOOL, event, count)
    M.set_events(TOOL, sum(ENTERS))
    work()
    M.set_events(TOOL, 0)
    for event in ENTERS:
        M.register_callback(TOOL, event, None)
    M.free_tool_id(TOOL)
    return number


def write(path):
    """What was measured, for the program that puts it together."""
    import json

    if path:
        with open(path, "w") as file:
            json.dump({"python": sys.version.split()[0], "calls": {name: calls(work) for name, work in WORK.items()}, "times": times}, file)
