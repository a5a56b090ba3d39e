"""How tools/check runs a command: in a session of its own, until it ends or the check has to; and what took how long.

A check that is over its time, or that is told to stop, interrupts what is under way and starts nothing more, so that
what was found until then is counted and said.
"""

import itertools
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMIT_S = 80 * 60
LOOK_S = 1  # between two looks whether it is over
GRACE_S = 40  # for what is interrupted: pytest tears its fixtures down and writes its report
SLOW_S = 600  # how often it is said of a command that it runs still: a log that ends early shows who was waited for
COMMAND_MOST = 200  # letters of it then
OVER = 124
MARK = "RINGMASTER_CHECK_RUN"  # in the environment of all that a command starts
NUMBERS = itertools.count(1)


class Watch:
    """When the check has to be over, why it was stopped (None: it was not), and what took how long."""

    def __init__(self, limit_s=LIMIT_S):
        self.limit_s = limit_s
        self.begun = time.monotonic()
        self.stopped = None
        self.took = []

    def began_earlier(self, seconds):
        self.begun -= max(0, seconds)

    def over(self):
        if not self.stopped and time.monotonic() - self.begun > self.limit_s:
            self.stopped = f"the check took more than {self.limit_s / 60:.0f} minutes"
        return self.stopped is not None

    def note(self, name, seconds):
        self.took.append((seconds, name))

    def slowest(self, count=10):
        return [f"{seconds:6.0f} s  {name}" for seconds, name in sorted(self.took, reverse=True)[:count]]

    def table(self):
        """All that was noted, the slowest first, a line each: seconds, a tab, the name."""
        return "".join(f"{seconds:.1f}\t{name}\n" for seconds, name in sorted(self.took, reverse=True))

    def stop(self, why):
        """Called from a signal's handler, too: nothing more starts, and what runs is interrupted within a moment."""
        self.stopped = self.stopped or why

    def run(self, command, env=None, timeout=None, cwd=ROOT):
        """Runs to the end; returns (exit code, everything it printed). What it leaves behind is not waited for, though it may hold
        the same output open (hence a file and no pipe), but killed, and said."""
        if self.over():
            return OVER, f"not started: {self.stopped}\n"
        mark = f"{os.getpid()}-{next(NUMBERS)}"
        env = {**(os.environ if env is None else env), MARK: mark}
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
            process = subprocess.Popen(command, cwd=cwd, env=env, start_new_session=True, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
            code, why = self._end_of(process, timeout)
            for left in kill_marked(mark):
                print(f"left behind by {words(command)}: {left}", flush=True)
            output.seek(0)
            return code, output.read() + why

    def _end_of(self, process, timeout):
        """(its exit code, "") or, of what had to be ended, (OVER, why)."""
        begun = time.monotonic()
        slow = begun + SLOW_S
        while True:
            try:
                return process.wait(timeout=LOOK_S), ""
            except subprocess.TimeoutExpired:
                now = time.monotonic()
            if now > slow:
                print(f"under way since {now - begun:.0f} s: {words(process.args)}", flush=True)
                slow += SLOW_S
            late = timeout and now > begun + timeout
            if self.over() or late:
                end(process)
                return OVER, f"\nstopped after {timeout} s\n" if late else f"\nended, because {self.stopped}\n"


def words(command):
    return " ".join(map(str, command))[:COMMAND_MOST]


def kill_marked(mark):
    """Kills what a command has started and left, in whatever session; returns its words. What runs with another environment, or is
    somebody else's by now, is not found."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={mark}".encode() in (place / "environ").read_bytes().split(b"\0"):
                what = (place / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
                os.kill(int(place.name), signal.SIGKILL)
                found.append(f"{place.name} {what[:COMMAND_MOST]}")
        except OSError:
            continue
    return found


def end(process):
    """Lets it say what it still has to say; whatever of it is left after that is killed."""
    kill_session(process, signal.SIGINT)
    try:
        process.wait(timeout=GRACE_S)
    except subprocess.TimeoutExpired:
        pass
    kill_session(process, signal.SIGKILL)
    process.wait()


def kill_session(process, how):
    try:
        os.killpg(process.pid, how)
    except ProcessLookupError:
        pass
