"""Twelve functions, six of them native (mill.c), that call each other and compute for a known time each. Each writes down how long it really computed.

    day --+-- smelt --+-- stoke -- blow -- gauge
          |           +-- pour
          +-- trade -- weigh -- haggle -- count
          +-- sow -- reap

smelt, blow, pour, weigh, count and sow are native.
"""

import ctypes
import os
from time import monotonic_ns as now

# Percent of a tick of 50 ms that each takes itself; the rest is idle.
SHARES = {
    "day": 6, "smelt": 10, "stoke": 8, "blow": 5, "gauge": 4, "pour": 9,
    "trade": 7, "weigh": 6, "haggle": 5, "count": 3, "sow": 8, "reap": 9,
}
NATIVE = ("smelt", "blow", "pour", "weigh", "count", "sow")
TICK = 50_000_000

half = {name: TICK * share // 200 for name, share in SHARES.items()}
took = dict.fromkeys(SHARES, 0)

library = ctypes.PyDLL(os.path.join(os.getcwd(), "mill.so"))
for place, name in enumerate(NATIVE):
    (ctypes.c_uint64 * 6).in_dll(library, "mill_half")[place] = half[name]
native_spent = (ctypes.c_uint64 * 6).in_dll(library, "mill_spent")


def native(name, *kinds):
    function = library["mill_" + name]
    function.argtypes = kinds
    function.restype = None
    return function


smelt = native("smelt", ctypes.py_object)
blow = native("blow", ctypes.py_object)
weigh = native("weigh", ctypes.py_object)
count = native("count")
sow = native("sow", ctypes.py_object)


def spent():
    """Nanoseconds that each has computed so far."""
    numbers = took | dict(zip(NATIVE, native_spent))
    return " ".join(f"{name}={number}" for name, number in numbers.items())


# What each computes stands in itself: a helper would be a function more.


def day():
    begun = now()
    while now() < begun + half["day"]:
        pass
    took["day"] += now() - begun
    smelt(stoke)
    trade()
    sow(reap)
    begun = now()
    while now() < begun + half["day"]:
        pass
    took["day"] += now() - begun


def stoke():
    begun = now()
    while now() < begun + half["stoke"]:
        pass
    took["stoke"] += now() - begun
    blow(gauge)
    begun = now()
    while now() < begun + half["stoke"]:
        pass
    took["stoke"] += now() - begun


def gauge():
    begun = now()
    while now() < begun + 2 * half["gauge"]:
        pass
    took["gauge"] += now() - begun


def trade():
    begun = now()
    while now() < begun + half["trade"]:
        pass
    took["trade"] += now() - begun
    weigh(haggle)
    begun = now()
    while now() < begun + half["trade"]:
        pass
    took["trade"] += now() - begun


def haggle():
    begun = now()
    while now() < begun + half["haggle"]:
        pass
    took["haggle"] += now() - begun
    count()
    begun = now()
    while now() < begun + half["haggle"]:
        pass
    took["haggle"] += now() - begun


def reap():
    begun = now()
    while now() < begun + 2 * half["reap"]:
        pass
    took["reap"] += now() - begun
