"""tools/bench compare --with FOLDER: two builds of Ringmaster against each other, in pairs.

Each pair runs the same job with both builds, one right after the other, and the one that is first in a pair is second
in the next: what else the machine does meets both. Of each pair there is a ratio, and the page gets their median and
how far their middle half reaches. A ratio above 1 means that this tree takes longer.
"""

import os
import re
import resource
import statistics
import subprocess
import tempfile
from pathlib import Path

SMALL = {"workers__max": 4, "trainer__threads": 1}
TINY = {**SMALL, "workers__target": 2, "workers__max": 2, "trainer__model__layers": 1, "trainer__model__width": 16,
        "trainer__model__context": 16, "trainer__batch__lanes": 2, "trainer__batch__laneSequences": 1, "trainer__steps": 3000,
        "checkpoint__everySteps": 0}
EIGHTHS = 8  # of a run of tiny steps: an event's time is in whole ms, and events come in bursts
LOSS = {**SMALL, "workers__target": 4, "trainer__model__layers": 2, "trainer__model__heads": 2, "trainer__model__width": 64,
        "trainer__model__context": 32, "trainer__batch__lanes": 12, "trainer__batch__laneSequences": 1, "trainer__steps": 70}
# A lane of this takes half a second and more on one core.
LONG = {**SMALL, "workers__target": 3, "workers__max": 3, "trainer__model__layers": 4, "trainer__model__heads": 4,
        "trainer__model__width": 256, "trainer__model__context": 256, "trainer__batch__lanes": 3,
        "trainer__batch__laneSequences": 4, "trainer__steps": 7}
LARGE = {"workers__target": 1, "workers__max": 1, "trainer__model__layers": 6, "trainer__model__heads": 8, "trainer__model__width": 512,
         "trainer__model__context": 64, "trainer__threads": "Auto", "trainer__batch__lanes": 2, "trainer__batch__laneSequences": 2,
         "trainer__steps": 16}  # 19 million parameters
SAVES = {**LARGE, "trainer__batch__laneSequences": 1, "trainer__steps": 30, "checkpoint__everySteps": 12, "checkpoint__keep": 1}


class Bench:
    """Runs jobs of both builds; a measurement is a function of this and gives {what: ms}."""

    def __init__(self, rig, run_job, job_of):
        self.rig, self.run_job, self.job_of = rig, run_job, job_of

    def run(self, fields, *arguments):
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            return self.run_job(self.job_of(folder, fields), *arguments)


def gaps(run, first=2):
    times = [e["time"] for e in run.of("step")]
    return [b - a for a, b in zip(times[first:], times[first + 1:])]


def cpu_ms():
    """Of all processes that ended so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) * 1000


def tiny_step(bench):
    """Eighths of the run, of which the quickest met the least of whatever else the machine did."""
    before = cpu_ms()
    times = [e["time"] for e in bench.run(TINY).of("step")]
    used = cpu_ms() - before
    marks = times[::(len(times) - 1) // EIGHTHS]
    parts = [(b - a) * EIGHTHS / (len(times) - 1) for a, b in zip(marks, marks[1:])]
    return {"tiny model, 2 workers: a step": statistics.median(parts), "the same, the run's quickest eighth": min(parts),
            "the same, processor time of all programs": used / len(times)}


def recovery(bench):
    run = bench.run(LOSS, "--drill", "kill:1@20", "--drill", "kill:2@40")
    lost = [e for e in run.of("recovered") if e["cause"] == "WorkerLost"]
    return {"loss of one of 4: until the next step": statistics.mean(e["totalMs"] for e in lost),
            "loss of one of 4: until the ring goes on": statistics.mean(e["totalMs"] - e["firstStepMs"] for e in lost)}


def recovery_long_lanes(bench):
    run = bench.run(LONG, "--drill", "kill:1@3")
    lost = [e for e in run.of("recovered") if e["cause"] == "WorkerLost"]
    return {"lanes of half a second, one of 3 lost: until the next step": lost[0]["totalMs"],
            "the same: until the ring goes on": lost[0]["totalMs"] - lost[0]["firstStepMs"],
            "the same: a step with all three": statistics.median(gaps(run, 0)[:2])}


def train(precision, reduction):
    def measure(bench):
        run = bench.run({**LARGE, "trainer__precision": precision, "trainer__reduction": reduction, "checkpoint__everySteps": 0})
        return {f"19 million parameters, {precision}, {reduction}: a step": statistics.median(gaps(run))}
    return measure


def checkpoint(bench):
    """What is beside the two steps that a snapshot touches, and until it is published."""
    run = bench.run(SAVES)
    at = {e["step"]: e["time"] for e in run.of("step")}
    saved = {e["step"]: e["time"] for e in run.of("checkpointSaved")}
    return {"19 million parameters, fp32, exact, half the sequences, saved: the step of the snapshot and the next": at[13] - at[11],
            "the same: from that step until it is published": saved[12] - at[12]}


def sums(bench):
    """exact_bench with 14 million parameters, of the build for tests beside the programs, where there is one."""
    program = bench.rig.BIN.parent.parent / "test/tests/exact_bench"
    if not program.exists():
        return {}
    text = subprocess.run([program, "14"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"^exact.*later lanes ([\d.]+) .*undo ([\d.]+) .*spare ([\d.]+), home ([\d.]+)", text, re.M)
    lane, update, spare, home = found.groups()
    return {"exact_bench, ns a parameter: a lane's pass": float(lane), "norm and AdamW": float(update),
            "the same to the spare and home": float(spare) + float(home)}


MEASURES = {"tiny": (tiny_step, 15), "sums": (sums, 5), "recovery": (recovery, 10), "long": (recovery_long_lanes, 5),
            "fp32": (train("fp32", "exact"), 5), "bf16": (train("bf16", "exact"), 5), "fast": (train("fp32", "fast"), 5),
            "checkpoint": (checkpoint, 5)}


def quarters(values):
    if len(values) < 2:
        return values[0], values[0]
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, high


def pairs_of(bench, measure, builds, pairs, say):
    """{what: [(theirs, ours)]}"""
    found = {}
    for number in range(pairs):
        taken = {}
        for which in ((0, 1) if number % 2 == 0 else (1, 0)):
            bench.rig.BIN = builds[which]
            taken[which] = measure(bench)
        for what in taken[0]:
            found.setdefault(what, []).append((taken[0][what], taken[1][what]))
        say(f"pair {number + 1} of {pairs}: " + "; ".join(f"{w} {p[-1][0]:.2f} {p[-1][1]:.2f}" for w, p in found.items()))
    return found


def row(what, pairs):
    ratios = [ours / theirs for theirs, ours in pairs]
    low, high = quarters(ratios)
    before, now = (statistics.median(v) for v in zip(*pairs))
    more = statistics.median(ours - theirs for theirs, ours in pairs)
    return (f"| {what} | {before:.2f} | {now:.2f} | {more:+.2f} | {statistics.median(ratios):.3f} | {low:.3f} to {high:.3f} | "
            f"{len(pairs)} |")


def commit_of(build):
    """The commit of the tree in which that build lies."""
    done = subprocess.run(["git", "-C", build, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return done.stdout.strip() or str(build)


def bench(rig, run_job, job_of, other, names, pairs, say):
    builds = [Path(other), rig.BIN]
    rows = []
    for name in names or MEASURES:
        measure, count = MEASURES[name]
        found = pairs_of(Bench(rig, run_job, job_of), measure, builds, pairs or count, say)
        rows += [row(what, values) for what, values in found.items()]
    load = os.getloadavg()
    return [f"Before: {commit_of(builds[0])}. Now: {commit_of(builds[1])}. Load at the end {load[2]:.1f} (15 minutes).",
            "Milliseconds where nothing else is said, medians; the ratio is the median of the pairs' ratios, and the middle half of these",
            "lies between the two numbers behind it:", "",
            "| | before | now | difference | now / before | middle half | pairs |", "|---|---|---|---|---|---|---|", *rows]
