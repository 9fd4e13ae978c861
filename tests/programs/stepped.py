"""Little of everything that an interpreter and its extensions do, to be stepped through instruction by instruction."""
import asyncio
import collections
import ctypes
import datetime
import decimal
import functools
import gc
import hashlib
import io
import itertools
import json
import pickle
import re
import sqlite3
import struct
import zlib

libc = ctypes.CDLL(None)
COMPARE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))


class Base:
    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value

    def __lt__(self, other):
        return self.value < other.value

    def __getattr__(self, name):
        return name

    def __del__(self):
        pass


class Item(Base):
    @property
    def double(self):
        return super().value * 2

    @functools.lru_cache(maxsize=4)
    def cached(self, number):
        return number + 1


def numbers(count):
    try:
        received = yield from range(count)
        yield received
    finally:
        pass


def fails(depth):
    if not depth:
        raise KeyError("deep")
    try:
        fails(depth - 1)
    except KeyError as error:
        raise ValueError("deeper") from error
    finally:
        gc.isenabled()


async def wait(number):
    await asyncio.sleep(0)
    return number


async def gather():
    async with asyncio.Lock():
        return await asyncio.gather(*(wait(n) for n in range(2)))


@functools.singledispatch
def dispatch(value):
    return str(value)


@dispatch.register
def _(value: int):
    return value


def objects():
    items = sorted((Item(n * 7 % 5) for n in range(5)), key=None)
    items[0].cached(1), items[1].double, items[2].nothing
    dispatch(1), dispatch("")
    try:
        fails(2)
    except ValueError as error:
        str(error.__cause__)
    generator = numbers(2)
    list(itertools.islice(generator, 1)), generator.close()
    {**{"a": 1}, "b": [*range(3)]}, {n % 3 for n in range(5)}
    match {"kind": "x", "of": [1, 2]}:
        case {"kind": str(kind), "of": [first, *rest]}:
            f"{kind!r:>10} {first:05.2f} {rest}"


def libraries():
    json.loads(json.dumps({"a": [1, 2.5, None, "\u00e4"], "b": {"c": True}}, indent=1))
    re.sub(r"(\w+)-(\d*)\b", lambda found: found[1], "ab-12 cd-x")
    pickle.loads(pickle.dumps([Item, (1, "x"), {2: b"y"}]))
    zlib.decompress(zlib.compress(b"some bytes" * 9)), hashlib.sha256(b"x").hexdigest()
    struct.unpack("<iqd", struct.pack("<iqd", 1, 2, 3.0)), decimal.Decimal("1.1") / 3
    datetime.datetime(2020, 1, 2).strftime("%Y %B"), collections.Counter("abcab").most_common(1)
    io.TextIOWrapper(io.BytesIO(b"line\nline\n")).readlines()
    7**90 // 3**40, divmod(-7, 3), "%s %d" % ("a", 1), "a,b".split(","), "x".join("abc").encode("utf-16")


def natives():
    values = (ctypes.c_int * 4)(3, 1, 2, 0)
    libc.qsort(values, 4, 4, COMPARE(lambda a, b: a[0] - b[0]))
    base = sqlite3.connect(":memory:")
    base.create_function("twice", 1, lambda value: value * 2)
    base.execute("create table t (a integer primary key, b text)")
    base.executemany("insert into t(b) values (?)", [("x",), ("y",)])
    base.execute("select twice(a), b from t where b > 'w' order by b desc").fetchall()
    base.close()


def machinery():
    exec(compile("def f(a, *, b=1):\n    return [a for a in (b,)]\nf(1)", "made", "exec"))
    loop.run_until_complete(gather())
    gc.collect(0)


loop = asyncio.new_event_loop()
PARTS = [objects, libraries, natives, machinery]


def everything():
    for part in PARTS:
        part()


# Twice, so that imports are done and code is specialised.
everything()
everything()
