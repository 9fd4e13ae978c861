"""How it is measured: the same work with nothing, with callbacks of each kind, and with cProfile."""
import cProfile
import ctypes
import statistics
import sys
import time

M = sys.monitoring
EVENTS = [M.events.PY_START, M.events.PY_RESUME, M.events.PY_THROW, M.events.PY_RETURN, M.events.PY_YIELD, M.events.PY_UNWIND]
ENTERS = EVENTS[:3]
TOOL = 4

# Nanoseconds of each run, by mode and work, in rounds.
times = {}
first = {}


def measure(mode):
    for name, work in WORK.items():
        # Once for what is done only once: a session names every function that it sees for the first time.
        begin = time.perf_counter_ns()
        work()
        first.setdefault((mode, name), []).append(time.perf_counter_ns() - begin)
        begin = time.perf_counter_ns()
        work()
        times.setdefault((mode, name), []).append(time.perf_counter_ns() - begin)


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


MODES = ["no-op C", "ours", "cProfile", "Python", "Python and ctypes"]


def added(mode, name, times=times):
    """What a mode adds to the run without anything of the same round: the machine's speed changes from round to round. The median of all rounds."""
    of_mode = times[mode, name]
    return statistics.median(run - base for run, base in zip(of_mode, times["base", name][-len(of_mode):]))


def report():
    """All figures: nanoseconds per call and return."""
    all_work = {}
    for name, work in WORK.items():
        number = calls(work)
        figures = {"calls": number, "alone": statistics.median(times["base", name]) / number}
        for mode in MODES:
            figures[mode] = added(mode, name) / number
        figures["first time, in all"] = added("ours", name, first) - added("ours", name)
        all_work[name] = figures
    return {"python": sys.version.split()[0], "work": all_work}


def show(result):
    print("\nCPython %s: nanoseconds per call and return" % result["python"])
    print("%-12s %8s %8s |%9s %9s %9s %9s %9s |%9s %9s %9s" % (
        "work", "calls", "alone", "no-op C", "ours", "cProfile", "Python", "ctypes", "to no-op", "cProfile", "slower"))
    for name, of in result["work"].items():
        print("%-12s %8d %8.1f |" % (name, of["calls"], of["alone"])
              + "".join(" %9.1f" % of[mode] for mode in MODES)
              + " |%9.2f %9.2f %8.1f%%" % (of["ours"] / of["no-op C"], of["ours"] / of["cProfile"], 100 * of["ours"] / of["alone"]))


def write(path):
    import json

    result = report()
    show(result)
    if path:
        with open(path, "w") as file:
            json.dump(result, file)
