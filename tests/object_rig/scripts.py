"""One seeded script of faults against saves and loads of checkpoints, and what has to hold whatever happens.

A seed gives the number of writers, the size of the state, the faults of the proxy and, for some, a point at which
the saving program is killed. Three checkpoints are saved through the proxy and loaded through it after each; at the
end, one is loaded with nothing in the way:

* what was told to be saved is there, and nothing older is taken for the newest;
* what is loaded is, bit for bit, what was saved;
* a failure is one sentence with a documented exit code, within bounded memory, and never a crash.
"""

import os
import random
import signal
import subprocess
import tempfile
import threading
from dataclasses import dataclass, field

import faults
import proxy

DEADLINE_S = 240
STEPS = (10, 20, 30)
POINTS = ["slice-written", "config-written", "model-whole", "piece-settled", "before-manifest", "after-manifest",
          "before-delete"]
MORE_MEMORY_KIB = 48 << 10
SENTENCES_MOST = 12


@dataclass
class Plan:
    """What a seed stands for."""

    seed: int
    writers: int
    width: int
    script: faults.Seeded
    crash: dict = field(default_factory=dict)  # step: fault point

    @classmethod
    def of(cls, seed, prefix=""):
        chance = random.Random(f"plan {seed}")
        plan = cls(seed, chance.choice([1, 2, 3, 5]), 512 if chance.random() < 0.12 else 64,
                   faults.Seeded(seed, prefix, silence_s=chance.choice([0.2, 1.0])))
        if chance.random() < 0.3:
            plan.crash[chance.choice(STEPS)] = f"{chance.choice(POINTS)}:{chance.randint(1, 2)}"
        return plan


@dataclass
class Ended:
    """A program's end: its exit code, what it printed, the most memory it had."""

    code: int
    out: str
    err: str
    peak_kib: int


def run(tool, arguments, environment, fault=""):
    env = {"PATH": os.environ["PATH"], "ASAN_OPTIONS": "detect_leaks=1", "UBSAN_OPTIONS": "print_stacktrace=1",
           "LC_ALL": "C.UTF-8", **environment, **({"RINGMASTER_FAULT": fault} if fault else {})}
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen([str(tool), *map(str, arguments)], env=env, stdin=subprocess.DEVNULL, stdout=out,
                                   stderr=err)
        timer = threading.Timer(DEADLINE_S, process.kill)
        timer.start()
        _, status, usage = os.wait4(process.pid, 0)
        late = not timer.is_alive()
        timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        ended = Ended(process.returncode, out.read(), err.read(), usage.ru_maxrss)
    assert not late, f"{arguments} took longer than {DEADLINE_S} s: {ended.err[-2000:]}"
    return ended


class Script:
    """A plan under way against a server."""

    def __init__(self, server, bucket, tool, seed):
        self.prefix = f"seed-{seed}"
        self.uri = f"s3://{bucket}/{self.prefix}"
        self.plan, self.tool, self.server = Plan.of(seed, self.prefix), tool, server
        self.between = proxy.Proxy(server, self.plan.script)
        self.story, self.acknowledged, self.sanitized = [], 0, "asan" in str(tool)

    def told(self):
        kinds = [seen.fault for seen in self.between.seen if seen.fault]
        return f"seed {self.plan.seed}: {self.plan}\n" + "\n".join(self.story) + f"\n{len(self.between.seen)} requests, faults {kinds}"

    def check(self, truth, why):
        assert truth, f"{why}\n{self.told()}"

    def note(self, what, ended, allowed):
        self.story.append(f"{what}: {ended.code} {ended.out.strip()} {ended.err.strip()[-1500:]}")
        self.check(ended.code in allowed, f"{what} ended with {ended.code}")
        self.check("Sanitizer" not in ended.err and "runtime error" not in ended.err, f"{what}: the sanitizers found something")
        secret = self.server.secret
        self.check(secret not in ended.out + ended.err, f"{what} told the secret key")
        if ended.code > 0:
            self.check(1 <= len(ended.err.strip().splitlines()) <= SENTENCES_MOST, f"{what} ended without a sentence")

    def save(self, step):
        crash = self.plan.crash.get(step, "")
        ended = run(self.tool, ["save", self.uri, self.plan.seed, step, self.plan.writers, self.plan.width],
                    self.between.environment, crash)
        self.note(f"save {step} {crash}".strip(), ended, {0, 4} | ({-signal.SIGKILL} if crash else set()))
        if ended.code == 0:
            self.acknowledged = step
        return ended

    def load(self, environment, what, allowed):
        ended = run(self.tool, ["load", self.uri, self.plan.seed, self.plan.width], environment)
        self.note(what, ended, allowed)
        if ended.code == 0:
            self.check(int(ended.out) >= self.acknowledged, f"{what} took {ended.out.strip()} for the newest, {self.acknowledged} was saved")
        return ended

    def run(self):
        """Returns (requests, faults, saves that were told to have failed)."""
        failed, peak = 0, 0
        for step in STEPS:
            saved = self.save(step)
            failed += saved.code != 0
            peak = max(peak, saved.peak_kib, self.load(self.between.environment, f"load after {step}", {0, 4}).peak_kib)
        quiet = self.load(self.server.environment, "load with nothing in the way", {0})
        if not self.sanitized:
            self.check(peak <= 4 * quiet.peak_kib + MORE_MEMORY_KIB, f"{peak} KiB at most, {quiet.peak_kib} without faults")
        return len(self.between.seen), sum(bool(seen.fault) for seen in self.between.seen), failed


def run_seed(server, bucket, tool, seed):
    script = Script(server, bucket, tool, seed)
    try:
        return script.run()
    finally:
        script.between.stop()
