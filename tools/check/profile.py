"""Reads a .sparkprofile, as far as it takes to tell whether it is one that the viewer can show."""

import json
import struct

from .failure import Failure

# Figures of a profile are rounded one by one.
CLOSE_MILLIS = 1.0


def fields(data):
    """The fields of a protobuf message: number and value, an integer or bytes."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
            value, at = data[at : at + size], at + size
        elif kind == 2:
            size, at = varint(data, at)
            value, at = data[at : at + size], at + size
        else:
            raise Failure(f"not a profile: a field of kind {kind}")
        if at > len(data):
            raise Failure("not a profile: it ends in the middle of a field")
        yield number, value


def varint(data, at):
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise Failure("not a profile: a number does not end")
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def doubles(data):
    return struct.unpack(f"<{len(data) // 8}d", data)


def integers(data):
    found, at = [], 0
    while at < len(data):
        value, at = varint(data, at)
        found.append(value)
    return found


class Node:
    """A frame, or a thread as the root of its frames."""

    def __init__(self, data, is_thread):
        self.name = self.method = ""
        self.times, self.below, self.frames = (), [], []
        for number, value in fields(data):
            if is_thread and number == 1 or not is_thread and number == 3:
                self.name = value.decode("utf-8")
            elif is_thread and number == 3:
                self.frames.append(Node(value, False))
            elif not is_thread and number == 4:
                self.method = value.decode("utf-8")
            elif number == (4 if is_thread else 8):
                self.times = doubles(value)
            elif number == (5 if is_thread else 9):
                self.below = integers(value)

    @property
    def millis(self):
        return sum(self.times)


class Profile:
    """A profile from a file."""

    def __init__(self, path):
        self.threads, self.windows, self.extra = [], [], {}
        self.began = self.ended = self.ticks = 0
        for number, value in fields(path.read_bytes()):
            if number == 1:
                self._read_metadata(value)
            elif number == 2:
                self.threads.append(Node(value, True))
            elif number == 6:
                self.windows = integers(value)

    def _read_metadata(self, data):
        for number, value in fields(data):
            if number == 2:
                self.began = value
            elif number == 11:
                self.ended = value
            elif number == 12:
                self.ticks = value
            elif number == 14:
                entry = dict(fields(value))
                self.extra[entry[1].decode("utf-8")] = json.loads(entry.get(2, b"null"))

    @property
    def seconds(self):
        return (self.ended - self.began) / 1000

    def problems(self):
        """What the viewer would stumble over, or what cannot be true."""
        if not self.threads:
            yield "it has no thread"
        if not self.windows:
            yield "it has no minutes"
        for thread in self.threads:
            for node in [thread, *thread.frames]:
                if len(node.times) != len(self.windows):
                    yield f"{thread.name}: {node.name}.{node.method} has {len(node.times)} times for {len(self.windows)} minutes"
                    break
            yield from tree_problems(thread)

    def count(self, accept):
        """Frames whose class is accepted."""
        return sum(1 for thread in self.threads for frame in thread.frames if accept(frame.name))


def tree_problems(thread):
    """Each frame stands in the tree once, and what is below another takes no longer than it."""
    seen = [False] * len(thread.frames)
    waiting = [thread]
    while waiting:
        node = waiting.pop()
        below = 0.0
        for index in node.below:
            if index >= len(seen) or seen[index]:
                yield f"{thread.name}: the tree is broken at {node.name}.{node.method}"
                return
            seen[index] = True
            waiting.append(thread.frames[index])
            below += thread.frames[index].millis
        if below > node.millis + CLOSE_MILLIS:
            yield f"{thread.name}: below {node.name}.{node.method} are {below:.1f} ms, more than its {node.millis:.1f} ms"
    if not all(seen):
        yield f"{thread.name}: {seen.count(False)} frames are in no tree"
