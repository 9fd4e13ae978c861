"""Other tools that look at Python code while a session runs."""
import bdb
import cProfile
import sys
import threading

M = sys.monitoring


def leaf(n):
    return n + 1


def work():
    total = 0
    for n in range(10):
        total += leaf(n)
    return total


EXPECTED = 55


# sys.setprofile, of one thread and of new ones.
def profiled():
    seen = []

    def hook(frame, event, argument):
        if frame.f_code is leaf.__code__:
            seen.append(event)

    sys.setprofile(hook)
    try:
        assert work() == EXPECTED
    finally:
        sys.setprofile(None)
    assert seen == ["call", "return"] * 10, seen


# sys.settrace, with lines.
def traced():
    seen = []

    def hook(frame, event, argument):
        if frame.f_code is leaf.__code__:
            seen.append(event)
            return hook
        return hook if frame.f_code is work.__code__ else None

    before = sys.gettrace()
    sys.settrace(hook)
    try:
        assert work() == EXPECTED
    finally:
        sys.settrace(before)
    assert seen == ["call", "line", "return"] * 10, seen


# What coverage.py does with its core for sys.monitoring: lines once each, by events of its own in the code objects that it wants.
class Coverage:
    def __enter__(self):
        self.lines = set()
        self.starts = 0
        M.use_tool_id(M.COVERAGE_ID, "coverage")
        M.register_callback(M.COVERAGE_ID, M.events.PY_START, self.on_start)
        M.register_callback(M.COVERAGE_ID, M.events.LINE, self.on_line)
        M.set_events(M.COVERAGE_ID, M.events.PY_START)
        M.restart_events()
        return self

    def on_start(self, code, offset):
        self.starts += 1
        if code in (leaf.__code__, work.__code__):
            M.set_local_events(M.COVERAGE_ID, code, M.events.LINE | M.events.PY_RETURN)
        return M.DISABLE

    def on_line(self, code, line):
        self.lines.add((code.co_name, line - code.co_firstlineno))
        return M.DISABLE

    def __exit__(self, *error):
        M.set_events(M.COVERAGE_ID, 0)
        for code in (leaf.__code__, work.__code__):
            M.set_local_events(M.COVERAGE_ID, code, 0)
        for event in (M.events.PY_START, M.events.LINE):
            M.register_callback(M.COVERAGE_ID, event, None)
        M.free_tool_id(M.COVERAGE_ID)


def covered():
    with Coverage() as coverage:
        assert work() == EXPECTED
        assert work() == EXPECTED
        M.restart_events()
        assert work() == EXPECTED
    assert coverage.lines == {("leaf", 1), ("work", 1), ("work", 2), ("work", 3), ("work", 4)}, coverage.lines
    assert coverage.starts >= 4, coverage.starts


# A debugger with the id that is meant for it: it stops at calls, lines, raises and returns.
def debugged():
    seen = []
    M.use_tool_id(M.DEBUGGER_ID, "debugger")
    events = (M.events.PY_START, M.events.LINE, M.events.RAISE, M.events.PY_RETURN, M.events.CALL)
    for event in events:
        M.register_callback(M.DEBUGGER_ID, event, lambda *_, event=event: seen.append(event))
    M.set_events(M.DEBUGGER_ID, sum(events))
    try:
        work()
        try:
            {}["x"]
        except KeyError:
            pass
    finally:
        M.set_events(M.DEBUGGER_ID, 0)
        for event in events:
            M.register_callback(M.DEBUGGER_ID, event, None)
        M.free_tool_id(M.DEBUGGER_ID)
    assert seen.count(M.events.PY_START) == 11, seen
    assert seen.count(M.events.RAISE) == 1 and seen.count(M.events.LINE) > 30, seen


# The debugger of the standard library, which uses sys.settrace, or sys.monitoring from 3.14 on.
def stepped():
    class Steps(bdb.Bdb):
        calls = 0

        def user_call(self, frame, arguments):
            if frame.f_code is leaf.__code__:
                Steps.calls += 1

    trace, kinds = sys.gettrace(), [{}]
    if sys.version_info >= (3, 14):
        kinds.append({"backend": "monitoring"})
    for kind in kinds:
        Steps.calls = 0
        debugger = Steps(**kind)
        debugger.runcall(work)
        assert Steps.calls == 10, (kind, Steps.calls)
    sys.settrace(trace)


def profile():
    """What cProfile counted of `leaf`."""
    profile = cProfile.Profile()
    profile.enable()
    try:
        work()
    finally:
        profile.disable()
    return [entry.callcount for entry in profile.getstats() if entry.code is leaf.__code__]


def profile_beside():
    """With our session on the id for profilers."""
    try:
        profile()
    except ValueError as error:
        return str(error)
    return None


running_profile = cProfile.Profile()


def in_threads(act):
    errors = []

    def run():
        try:
            act()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors


def all_of_them():
    for act in (profiled, traced, debugged, stepped, covered):
        act()
    in_threads(profiled)
    in_threads(traced)
