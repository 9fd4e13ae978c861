import json
import sys
import time


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


class Cell:
    __slots__ = ("x",)

    def __init__(self, x):
        self.x = x

    def get(self):
        return self.x

    def add(self, other):
        return Cell(self.get() + other.get())


def methods():
    a, b = Cell(1), Cell(2)
    for _ in range(10_000):
        a.add(b)


def count(n):
    for i in range(n):
        yield i


DOCUMENT = {"a": list(range(50)), "b": {"c": "x" * 100}}


def documents():
    for _ in range(500):
        json.loads(json.dumps(DOCUMENT))


# Name, what runs, and how often it calls and returns.
WORK = [
    ("fib", lambda: fib(20), 21_891),
    ("methods", methods, 40_000),
    ("generators", lambda: sum(count(50_000)), 50_000),
    ("json", documents, 500 * 8),
]
best = {}


def measure(mode):
    for name, work, _ in WORK:
        for _ in range(3):
            begin = time.perf_counter_ns()
            work()
            took = time.perf_counter_ns() - begin
            best[mode, name] = min(best.get((mode, name), took), took)


def with_callbacks(mode, callback):
    monitoring = sys.monitoring
    events = monitoring.events
    ours = [events.PY_START, events.PY_RESUME, events.PY_THROW, events.PY_RETURN, events.PY_YIELD, events.PY_UNWIND]
    monitoring.use_tool_id(4, "bench")
    for event in ours:
        monitoring.register_callback(4, event, callback)
    monitoring.set_events(4, sum(ours))
    measure(mode)
    monitoring.set_events(4, 0)
    for event in ours:
        monitoring.register_callback(4, event, None)
    monitoring.free_tool_id(4)


def others():
    import cProfile

    with_callbacks("Python", lambda *arguments: None)
    profile = cProfile.Profile()
    profile.enable()
    measure("cProfile")
    profile.disable()


def report():
    print(sys.version.split()[0])
    for name, _, calls in WORK:
        base = best["base", name]
        added = {mode: (best[mode, name] - base) / calls for mode in ("no-op C", "ours", "cProfile", "Python")}
        floor = added["no-op C"]
        print(
            f"  {name:10} {base / calls:6.1f} ns per call;  added:",
            ", ".join(f"{mode} {value:.1f}" for mode, value in added.items()),
            f"  ours/no-op {added['ours'] / floor:.2f}",
            flush=True,
        )
