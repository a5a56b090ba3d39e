"""The steps that elastic_worker.py writes down, as they come."""

import json
import statistics
import time

PACE_STEPS = 20


def now():
    """By the clock of the steps."""
    return time.monotonic()


class Steps:
    """Reads FOLDER/steps on and on; a list of dicts in `all`."""

    def __init__(self, folder):
        self.path, self.read, self.all = folder / "steps", 0, []

    def look(self):
        if not self.path.exists():
            return
        with open(self.path, "rb") as lines:
            lines.seek(self.read)
            new = lines.read()
        whole = new[:new.rfind(b"\n") + 1]
        self.read += len(whole)
        self.all += [json.loads(line) for line in whole.splitlines()]

    def wait(self, wanted, patience_s, given_up=lambda: False):
        """The first step for which that holds; None where there was none in that time, or none is to be had."""
        end = time.monotonic() + patience_s
        while True:
            self.look()
            found = next((step for step in self.all if wanted(step)), None)
            if found or time.monotonic() > end or given_up():
                return found
            time.sleep(0.005)

    def after(self, began, patience_s, world=None):
        """The first step of anybody who began to work after that moment, and ended it; `world` processes where that is said.

        A survivor of torchrun's or of ours is a new process, so a step of an old one that was on its way does not count."""
        old = {step["pid"] for step in self.all if step["time"] <= began}
        return self.wait(lambda s: s["time"] > began and s["pid"] not in old and world in (None, s["world"]), patience_s)

    def stood_still(self, first):
        """Seconds without a step of anybody before that one: who is told to go, or waits for a newcomer, trains on for a while."""
        before = [step["time"] for step in self.all if step["pid"] != first["pid"] and step["time"] < first["time"]
                  and step["world"] != first["world"]]
        return first["time"] - max(before)

    def gap_before(self, first):
        """Seconds without a step of anybody before that one, where processes stay."""
        return first["time"] - max(step["time"] for step in self.all if step["step"] < first["step"])

    def pace_ms(self):
        """Milliseconds between two steps, the median of the newest."""
        self.look()
        done = {}
        for step in self.all:
            done.setdefault(step["step"], step["time"])
        times = [done[number] for number in sorted(done)][-PACE_STEPS:]
        return 1000 * statistics.median(later - sooner for sooner, later in zip(times, times[1:]))

    def redone(self, began, first):
        """How many steps that had been made before that moment were made again."""
        reached = max((step["step"] for step in self.all if step["time"] <= began), default=0)
        return max(0, reached - first["step"] + 1)
