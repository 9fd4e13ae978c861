"""The server's folder: what is put there, and what is left as it was."""

import hashlib
import os
import shutil
from pathlib import Path

from .failure import CannotBegin

PLUGIN = "endstone_spark.so"

# A plugin that was there before, under a name that Endstone does not load.
BEFORE = PLUGIN + ".before-check"


class Folder:
    """A server's folder."""

    def __init__(self, path):
        self.path = Path(path).resolve()
        self.plugins = self.path / "plugins"
        self.data = self.plugins / "spark"
        self.profiles = self.data / "profiles"
        # What the end takes away again.
        self.installed = False
        self.had_data = self.data.exists()
        # Endstone runs a copy of its own.
        self.copies_before = set(self._copies())

    def _copies(self):
        return (self.plugins / ".local").glob("endstone_spark-*.so")

    def worlds(self):
        """Worlds that are there already."""
        folder = self.path / "worlds"
        return sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []

    def running(self):
        """Process ids of servers that run in this folder: two of them destroy a world."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if (process / "exe").resolve().name == "bedrock_server" and (process / "cwd").resolve() == self.path:
                    found.append(int(process.name))
            except OSError:
                continue  # It has ended, or is another user's.
        return found

    def install(self, file, replace):
        """Puts the plugin file there. Says what it did."""
        target = self.plugins / PLUGIN
        if target.exists():
            if digest(target) == digest(file):
                return f"{target} is this file already; it is left there"
            if not replace:
                raise CannotBegin(
                    f"{target} is another file. Move it away, or say --replace: it is then kept as {BEFORE} and put back at the end"
                )
            before = self.plugins / BEFORE
            if before.exists():
                raise CannotBegin(f"{before} is there, perhaps from a check that was cut short. Put it back or move it away first")
            os.rename(target, before)
        self.plugins.mkdir(parents=True, exist_ok=True)
        partial = self.plugins / ("." + PLUGIN + ".partial")
        shutil.copyfile(file, partial)
        os.rename(partial, target)
        self.installed = True
        return f"{file} is installed as {target}"

    def clean_up(self, remove):
        """Puts a plugin back that was there before; takes away what was brought, if asked. Gives lines that say so."""
        target, before = self.plugins / PLUGIN, self.plugins / BEFORE
        if self.installed and before.exists():
            os.rename(before, target)
            yield f"the plugin that was there before is back as {target}"
        elif self.installed and remove:
            for file in [target, *(set(self._copies()) - self.copies_before)]:
                file.unlink()
                yield f"{file} is removed"
        if remove and not self.had_data and self.data.exists():
            shutil.rmtree(self.data)
            yield f"{self.data}, which this check made, is removed with its profiles"
        elif self.data.exists():
            yield f"profiles and settings are in {self.data}"


def digest(file):
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()


def build_id(file):
    """The build id of a shared library in hexadecimal digits, from its ELF note."""
    data = Path(file).read_bytes()
    if data[:6] != b"\x7fELF\x02\x01":
        raise CannotBegin(f"{file} is no plugin for 64-bit Linux")

    def number(at, size):
        return int.from_bytes(data[at : at + size], "little")

    headers, size, count = number(32, 8), number(54, 2), number(56, 2)
    for header in (headers + index * size for index in range(count)):
        if number(header, 4) != 4:
            continue
        at, end = number(header + 8, 8), number(header + 8, 8) + number(header + 32, 8)
        while at + 12 <= end:
            names, length, kind = number(at, 4), number(at + 4, 4), number(at + 8, 4)
            content = at + 12 + (names + 3) // 4 * 4
            if kind == 3 and data[at + 12 : at + 16] == b"GNU\0":
                return data[content : content + length].hex()
            at = content + (length + 3) // 4 * 4
    raise CannotBegin(f"{file} has no build id")
