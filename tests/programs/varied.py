"""Work of every kind on threads of its own, until told to stop: what a server full of plugins does, and what unwinders trip over."""
import asyncio
import ctypes
import glob
import importlib
import json
import os
import random
import re
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import zlib

STOP = threading.Event()
DONE = {}
libc = ctypes.CDLL(None)
COMPARE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))


def imports():
    for name in ("colorsys", "wave", "difflib", "csv", "textwrap", "html.parser", "_csv", "_elementtree", "xml.etree.ElementTree"):
        sys.modules.pop(name, None)
        importlib.import_module(name)


def texts():
    data = {"items": [{"id": n, "name": f"item {n}", "tags": ["a", "b"] * 5} for n in range(200)]}
    assert json.loads(json.dumps(data)) == data
    re.findall(r"(\w+)@(\w+)\.(com|org)", "someone@example.com nobody@example.org " * 100)
    zlib.decompress(zlib.compress(json.dumps(data).encode(), 9))


def tables():
    base = sqlite3.connect(":memory:")
    base.create_function("twice", 1, lambda value: value * 2)
    base.execute("create table t (a integer primary key, b text)")
    base.executemany("insert into t(b) values (?)", ((str(n),) for n in range(300)))
    base.execute("select twice(a), b from t where b like '%1%' order by b desc").fetchall()
    base.close()


def failures(depth=60):
    if not depth:
        raise KeyError("deep")
    try:
        failures(depth - 1)
    except KeyError as error:
        if depth % 20 == 0:
            raise KeyError("deeper") from error
        raise


def raised():
    for _ in range(20):
        try:
            failures()
        except KeyError:
            pass


def callbacks():
    values = (ctypes.c_int * 200)(*(random.randrange(1000) for _ in range(200)))
    libc.qsort(values, 200, 4, COMPARE(lambda a, b: a[0] - b[0]))


def children():
    assert subprocess.run(["/bin/true"], check=False).returncode == 0
    time.sleep(0.05)


def files():
    with tempfile.TemporaryDirectory() as folder:
        for number in range(20):
            with open(os.path.join(folder, str(number)), "w", encoding="utf-8") as file:
                file.writelines(f"{n}\n" for n in range(200))
        glob.glob(os.path.join(folder, "*"))


def threads():
    made = [threading.Thread(target=sorted, args=([random.random() for _ in range(2000)],)) for _ in range(4)]
    for thread in made:
        thread.start()
    for thread in made:
        thread.join()


def deep(level=200):
    """Few levels of C between many of Python."""
    if level % 8:
        return deep(level - 1)
    return max([level], key=lambda _: deep(level - 1) if level else 0)


async def wait(number):
    await asyncio.sleep(0)
    return sum(n for n in range(number))


async def gather():
    async with asyncio.timeout(10) if hasattr(asyncio, "timeout") else asyncio.Lock():
        await asyncio.gather(*(wait(n) for n in range(200)))


def loops():
    asyncio.run(gather())


def numbers():
    pow(3, 20_000), str(7**3_000), sum(x * x for x in range(20_000)), [[n] * 5 for n in range(5_000)]


WORK = [imports, texts, tables, raised, callbacks, children, files, threads, deep, loops, numbers]


def repeat(work):
    while not STOP.is_set():
        work()
        DONE[work.__name__] = DONE.get(work.__name__, 0) + 1


# Few at a time, so that each gets its turn with the interpreter's lock.
RUNNING = [threading.Thread(target=repeat, args=(work,), daemon=True) for work in WORK]
for running in RUNNING:
    running.start()


def stop():
    STOP.set()
    return sorted(set(work.__name__ for work in WORK) - set(DONE))
