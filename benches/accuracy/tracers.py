"""Profilers that are called for every call: begun and ended on the server thread. What they say is seconds of each function itself."""
import cProfile
import sys


def of_the_mill(code):
    return not isinstance(code, str) and code.co_filename.endswith("endstone_mill/work.py")


def cprofile_begin():
    global profile
    profile = cProfile.Profile()
    profile.enable()
    return "tracer begun"


def cprofile_end():
    profile.disable()
    return "tracer " + " ".join(f"{entry.code.co_name}={entry.inlinetime}" for entry in profile.getstats() if of_the_mill(entry.code))


def viztracer_begin(folder):
    global tracer
    sys.path.append(folder)
    from viztracer import VizTracer

    # Each look at the clock would be a call, and fill its memory in seconds.
    tracer = VizTracer(verbose=0, ignore_c_function=True, tracer_entries=1_000_000)
    tracer.start()
    return "tracer begun"


def viztracer_end():
    tracer.stop()
    tracer.parse()
    events = [event for event in tracer.data["traceEvents"] if event["ph"] == "X" and "endstone_mill/work.py" in event["name"]]
    own, open_events = {}, []
    for event in sorted(events, key=lambda event: (event["ts"], -event["dur"])):
        while open_events and open_events[-1]["ts"] + open_events[-1]["dur"] <= event["ts"]:
            open_events.pop()
        name = event["name"].split(" ")[0]
        own[name] = own.get(name, 0) + event["dur"]
        if open_events:
            outer = open_events[-1]["name"].split(" ")[0]
            own[outer] -= event["dur"]
        open_events.append(event)
    return "tracer " + " ".join(f"{name}={micros / 1e6}" for name, micros in own.items())
