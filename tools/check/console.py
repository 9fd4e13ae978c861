"""A server's console: types lines, waits for what it prints."""

import os
import re
import subprocess
import threading
import time

from .failure import Failure

# Lines of the server that a failure shows.
SHOWN_LINES = 30

# Colours and cursor movements of terminals, and Minecraft's own colour codes.
COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\u00a7[0-9a-z]")


class Console:
    """A server that was started here. It is never killed: a world that is being saved stays whole."""

    def __init__(self, command, folder, log):
        self.lines = []
        self.ended = False
        self.changed = threading.Condition()
        self.log = log
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            # Ctrl-C here is for us, and we stop the server as its owner would.
            start_new_session=True,
        )
        # Ends with the server's output, and must not keep us if something holds that open.
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for raw in self.process.stdout:
            line = COLOURS.sub("", raw.decode("utf-8", "replace")).rstrip()
            self.log.write(line + "\n")
            with self.changed:
                self.lines.append(line)
                self.changed.notify_all()
        with self.changed:
            self.ended = True
            self.changed.notify_all()

    def type(self, line):
        """Types a line. Returns the place from which on its answer stands."""
        with self.changed:
            place = len(self.lines)
        try:
            os.write(self.process.stdin.fileno(), (line + "\n").encode())
        except (OSError, ValueError) as error:
            raise self.failure(f"cannot type '{line}' into the server's console ({error})") from error
        return place

    def wait(self, pattern, place, seconds):
        """The first line from a place on in which a regular expression is found."""
        wanted = re.compile(pattern)
        deadline = time.monotonic() + seconds
        with self.changed:
            while True:
                for line in self.lines[place:]:
                    if wanted.search(line):
                        return line
                place = len(self.lines)
                if self.ended:
                    raise self.failure(f"the server ended before it printed '{pattern}'")
                left = deadline - time.monotonic()
                if left <= 0:
                    raise self.failure(f"waited {seconds} s for '{pattern}'")
                self.changed.wait(left)

    def ask(self, line, pattern, seconds=60):
        """Types a line and waits for its answer."""
        return self.wait(pattern, self.type(line), seconds)

    def ask_all(self, line):
        """Types a line and gives all that is printed until the answer to a next one comes: the console's lines are executed in their order."""
        place = self.type(line)
        self.ask("spark version", r"spark \d+\.\d+\.\d+, ")
        with self.changed:
            return self.lines[place:]

    def run_for(self, seconds):
        """Lets the server run for so long."""
        deadline = time.monotonic() + seconds
        with self.changed:
            while not self.ended:
                left = deadline - time.monotonic()
                if left <= 0:
                    return
                self.changed.wait(left)
        raise self.failure("the server ended by itself")

    def stop(self, seconds):
        """Types `stop` and waits. Returns the exit code, or None if the server still runs."""
        try:
            self.type("stop")
            self.process.stdin.close()
        except (Failure, OSError):
            pass  # It has ended already, and its exit code says how.
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def failure(self, what):
        # Whoever asks may hold the condition already.
        last = list(self.lines)[-SHOWN_LINES:]
        return Failure(what + "; the server's last lines:\n" + "\n".join("  | " + line for line in last))
