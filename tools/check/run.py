"""The check itself: what is typed, what is expected, what is measured."""

import re
import stat

from .failure import Failure
from .profile import Profile
from .ticks import Ticks

# Enough for a slow machine to name the functions of a large server.
SAVE_SECONDS = 300

# A profile is a little longer than the phase, by the time that commands take, and not shorter by more than the first and last interval.
SHORTER_SECONDS = 1.0

# Of a hundred samples, so many may be lost before it is said.
LOST_PERCENT = 1.0


class Run:
    """One server under check."""

    def __init__(self, console, folder, options, say):
        self.console, self.folder, self.options, self.say = console, folder, options, say
        self.passed, self.notes, self.problems = 0, [], []

    def check(self, is_so, what):
        """One thing that must be so."""
        if is_so:
            self.passed += 1
        else:
            self.problems.append(what)
            self.say(f"  WRONG: {what}")

    def note(self, what):
        """Something that the reader should know and that fails nothing."""
        if what not in self.notes:
            self.notes.append(what)
            self.say(f"  note: {what}")

    def begin(self, build_id):
        """The server runs and has the plugin."""
        options = self.options
        self.say(f"waiting for the server (a line like '{options.ready}')")
        self.console.wait(options.ready, 0, options.start_seconds)
        version = self.console.ask("spark version", r"spark \d+\.\d+\.\d+, |Unknown command")
        if "Unknown command" in version:
            raise self.console.failure("the server has not loaded the plugin")
        self.say(version.split("[⚡]")[-1].strip())
        self.check(version.endswith(build_id), f"the build that answers is not the file's ({build_id}): {version}")
        info = "\n".join(self.console.ask_all("spark profiler info"))
        if "The profiler is not running" not in info:
            raise Failure("somebody's session runs already")
        if "In the background:" in info:
            self.note("the background profiler is on: 'without a session' means with it (backgroundProfiler = false in plugins/spark/config.toml switches it off)")

    def phase(self, name, with_session):
        """So many seconds of the server, with a session or without. Gives what its ticks took."""
        self.say(f"{name}, {'with' if with_session else 'without'} a session: {self.options.seconds} s")
        if with_session:
            started = self.console.ask("spark profiler start", r"The profiler is running: |could not start|running already")
            if "The profiler is running: " not in started:
                raise self.console.failure("no session could be started")
            if "native frames only" in started:
                self.note(started.split("[⚡]")[-1].strip())
        self.console.run_for(self.options.seconds)
        ticks = Ticks(self.console.ask_all("spark tps"), self.options.seconds)
        if with_session:
            self._end(name, "with Python functions" in started)
        return ticks

    def _end(self, name, has_python):
        info = "\n".join(self.console.ask_all("spark profiler info"))
        samples = re.search(r"([\d,]+) samples? of", info)
        self.check(samples and int(samples[1].replace(",", "")) > 0, f"{name}: no samples: {info}")
        saved = self.console.ask(
            "spark profiler stop --save-to-file", r"\[⚡\] (Saved |The profile could not be saved)", SAVE_SECONDS
        )
        found = re.search(r"Saved (\S+\.sparkprofile) \(([\d,]+) samples?", saved)
        if not found:
            raise self.console.failure(f"{name}: no profile was saved")
        self._look_at(name, self.folder.path / found[1], has_python)

    def _look_at(self, name, file, has_python):
        self.check(file.is_file(), f"{name}: {file} is not there")
        self.check(stat.S_IMODE(file.stat().st_mode) == 0o600, f"{name}: {file} can be read by others")
        profile = Profile(file)
        problems = list(profile.problems())
        self.check(not problems, f"{name}: {file.name}: " + "; ".join(problems[:5]))
        seconds = self.options.seconds
        self.check(
            profile.seconds >= seconds - SHORTER_SECONDS,
            f"{name}: the profile covers {profile.seconds:.1f} s of {seconds} s",
        )
        self.check(profile.ticks > 0, f"{name}: no ticks were counted")
        self.check(profile.count(lambda frame: frame == "bedrock_server") > 0, f"{name}: no frame of the server itself")
        python = profile.count(lambda frame: frame.startswith("[Python] "))
        if has_python and python == 0:
            self.note(f"{name}: no Python function ran; that is right if no Python plugin works")
        sampling = profile.extra.get("Sampling", {})
        taken, lost = sampling.get("samples", 0), sampling.get("samples lost", 0)
        self.check(taken > 0, f"{name}: the profile counts no samples")
        if taken and 100 * lost / (taken + lost) > LOST_PERCENT:
            self.note(f"{name}: {lost} of {taken + lost} samples were lost: {sampling['samples lost by reason']}")
        ends = sampling.get("native stacks by how they end", {})
        rooted = 100 * ends.get("root", 0) / max(1, sum(ends.values()))
        frames = sum(len(thread.frames) for thread in profile.threads)
        self.say(f"  {file.name}: {taken} samples, {frames} frames, {python} of them Python, {rooted:.2f} % of the stacks whole")

    def upload(self):
        """One session whose profile is uploaded, because that was asked for."""
        self.say("a profile is uploaded, as you asked")
        self.console.ask("spark profiler start", r"The profiler is running: ")
        self.console.run_for(10)
        answer = self.console.ask("spark profiler upload", r"The profile is here: |was not uploaded", SAVE_SECONDS)
        self.check("The profile is here: " in answer, answer)
        self.say("  " + answer.split("[⚡]")[-1].strip())

    def end(self):
        """The server is stopped and leaves nothing behind."""
        self.say("stopping the server")
        code = self.console.stop(self.options.stop_seconds)
        if code is None:
            raise Failure(
                f"the server did not stop within {self.options.stop_seconds} s. It is left alone: process group {self.console.process.pid}"
            )
        self.check(code == 0, f"the server ended with exit code {code}")
        self.check(
            not any("an internal error of the profiler" in line for line in self.console.lines),
            "the server's log has an internal error of the profiler",
        )
        recovery = self.folder.data / "recovery"
        left = [file.name for file in recovery.glob("*.journal")] if recovery.is_dir() else []
        self.check(not left, f"journals were left behind: {left}")
