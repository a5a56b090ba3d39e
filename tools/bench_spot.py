"""What a job makes of machines that come and go: traces on virtual time, and a stretch of one as real processes.

On virtual time ringmaster-replay plays a whole trace on the shipped cores of coordinator, agents and trainers (tests/sim/replay.h).
Beside it a torchrun that is made up of its measured times (docs/benchmarks.md), and a static job on machines that nobody takes
away. As real processes `ringmaster run` plays the same machines, fewer and quicker, by drills, and a real torchrun the same ones
(torch_trace.py). What pods of those machines cost: bench_meter.py. What notices take, and no notices: bench_notice.py."""

import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import bench_meter
import bench_notice
import spot_trace

ROOT = Path(__file__).resolve().parent.parent
TOOLS = Path(os.environ.get("RINGMASTER_TOOLS", ROOT / "build/test/tests"))
NOTICES = {"2 min": 120, "30 s": 30, "none": 0}
LANES, LANE_S = 64, 1.0
GOOD, TRAINED = 0.95, 0.8  # the goals: of what capacity allowed, and of a notice's time

# Of docs/benchmarks.md: quick timeouts, from a loss to the next step. Of that a dead one is missed for 6 s; who joins is not.
TORCHRUN_LOSS_S, TORCHRUN_JOIN_S, TORCHRUN_SAVES_S = 11.7, 5.7, 120
REAL_MOST, REAL_LEAST = 4, 2


def say(text):
    print(text, file=sys.stderr, flush=True)


def step_s(machines):
    """A worker computes its lanes one after the other, and all wait for the one with most of them."""
    return LANE_S * -(-LANES // machines)


def held(moments):
    """(seconds, machines now, machines before)"""
    before = moments[0][1]
    for (at, count), (after, _) in itertools.pairwise(moments):
        yield after - at, count, before
        before = count


def allowed(moments):
    return sum(length / step_s(count) for length, count, _ in held(moments) if count)


def torchrun(moments, every):
    """Steps that a job makes which starts all its processes anew at each change, from what it saved: each step where `every` is 0,
    at no cost, else each so many seconds. Between changes it trains as the machines allow."""
    steps = saved = since = at = back = 0.0  # back: when it trains again
    for length, count, before in held(moments):
        if count != before:
            steps, since = (steps, 0.0) if every == 0 else (saved, 0.0)
            back = max(back, at + (TORCHRUN_LOSS_S if count < before else TORCHRUN_JOIN_S))
        at += length
        length = min(length, at - back)
        if count == 0 or length <= 0:
            continue
        rate = 1 / step_s(count)
        if every and since + length >= every:
            behind = (since + length) % every
            saved, since = steps + (length - behind) * rate, behind
        else:
            since += length
        steps += length * rate
        saved = steps if every == 0 else saved
    return steps


def machine_hours(moments):
    return sum(length * count for length, count, _ in held(moments)) / 3600


def replay(moments, lead, seed):
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(spot_trace.text_of(moments))
        file.flush()
        done = subprocess.run([str(TOOLS / "ringmaster-replay"), "--trace", file.name, "--seed", str(seed), "--lead", str(lead)],
                              capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"ringmaster-replay: {done.stderr.strip()}")
    return json.loads(done.stdout)


def verdict(is_met):
    return "met" if is_met else "**missed**"


HEAD = ["| trace | notice | goodput | >= 95 % | steps lost | 0 | of the notice trained in | >= 80 % | torchrun that saves each step | every 2 min |",
        "|---|---|---|---|---|---|---|---|---|---|"]


def row(name, moments, notice, found):
    most = allowed(moments)
    good = found["steps"] / most
    share = found["trainedSeconds"] / found["noticeSeconds"] if found["noticeSeconds"] else None
    told = notice != "none"
    cells = [name, notice, f"{good:.1%}", verdict(good >= GOOD), str(found["back"]), verdict(found["back"] == 0) if told else "",
             f"{share:.1%}" if share is not None else "", verdict(share >= TRAINED) if share is not None else "",
             f"{torchrun(moments, 0) / most:.1%}", f"{torchrun(moments, TORCHRUN_SAVES_S) / most:.1%}"]
    return f"| {' | '.join(cells)} |"


def cost_row(name, moments, found, spot, on_demand):
    """Of a thousand steps, in units of an hour of a machine on demand."""
    most, hours = max(count for _, count in moments), moments[-1][0] / 3600
    static = most * hours * on_demand / (hours * 3600 / step_s(most)) * 1000
    ours = machine_hours(moments) * spot / found["steps"] * 1000
    peer = machine_hours(moments) * spot / max(1e-9, torchrun(moments, 0)) * 1000
    return f"| {name} | {ours:.1f} | {peer:.1f} | {static:.1f} | {ours / static:.2f} |"


def policy(traces, seed, spot, on_demand):
    lines, costs, rows = list(HEAD), [], []
    for name, moments in traces.items():
        for notice, lead in NOTICES.items():
            found = replay(moments, lead, seed)
            lines.append(row(name, moments, notice, found))
            if notice == "2 min":
                costs.append(cost_row(name, moments, found, spot, on_demand))
                most = allowed(moments)
                ours, peer = found["steps"] / most, torchrun(moments, TORCHRUN_SAVES_S) / most
                rows.append((f"spot trace {name}, notices of 2 min, virtual time", f"{ours:.1%} of what capacity allowed",
                             f"{peer:.1%} for a modelled torchrun that saves every 2 min", f"{ours / max(1e-9, peer):.2f} times as much"))
    lines += ["", f"A thousand steps in hours of a machine on demand, where one on spot costs {spot / on_demand:.2f} of it, notices of 2 min:", "",
              "| trace | Ringmaster on spot | torchrun on spot, saves each step | static job on demand | of its price |", "|---|---|---|---|---|",
              *costs]
    return lines, rows


# ---- as real processes ----

def drills(moments, kind, seed, spared=()):
    """Of a trace whose numbers are those of workers: who goes is the seed's chance, who comes takes the lowest free index."""
    chance, there, plan = random.Random(seed), set(range(moments[0][1])), []
    for (_, before), (at, count) in itertools.pairwise(moments[:-1]):
        for _ in range(before - count):
            worker = chance.choice(sorted(there - set(spared)))
            there.remove(worker)
            plan.append(f"{kind}:{worker}@{at:g}s")
        for _ in range(count - before):
            there.add(next(i for i in itertools.count() if i not in there))
            plan.append(f"join@{at:g}s")
    return plan


def scaled(moments, quicker):
    """A few workers instead of many machines, and a time that runs quicker."""
    most = max(count for _, count in moments)
    few = [(round(at / quicker, 1), max(REAL_LEAST, round(count * REAL_MOST / most))) for at, count in moments]
    return spot_trace.tidy([*dict(few[:-1]).items(), few[-1]])


def steps_of(run, seconds):
    """(steps committed within so many seconds of the first, steps redone)"""
    first, steps, redone = None, 0, 0
    while True:
        event = run.next_event(120)
        if event is None:
            raise RuntimeError(f"the run has ended: {run.tail()}")
        if event["event"] == "recovered":
            redone += event["stepsRedone"]
        if event["event"] != "step":
            continue
        first = event["time"] if first is None else first
        steps += 1
        if event["time"] - first >= seconds * 1000:
            return steps, redone


def real_run(rig, job_of, model, moments, plan):
    fields = {**model, "trainer__steps": 1000000, "workers__target": moments[0][1], "workers__min": 1, "workers__max": REAL_MOST}
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        words = list(itertools.chain.from_iterable(("--drill", drill) for drill in plan))
        run = rig.Run(job_of(folder, fields), *words)
        try:
            return steps_of(run, moments[-1][0])
        finally:
            run.interrupt()
            run.wait()
            run.clean_up()


class Played:
    """One run of the stretch: how many steps it kept and lost, and how many the same program keeps undisturbed."""

    def __init__(self, program, who, plan, steps, lost, still):
        self.program, self.who, self.plan, self.steps, self.lost, self.still = program, who, plan, steps, lost, still

    def share(self):
        return self.steps / self.still

    def row(self, moments, spot, on_demand):
        """The last cell: a step's price on spot machines, of what it is on as many as there are at most that nobody takes away."""
        gone = sum(not drill.startswith("join") for drill in self.plan)
        static = REAL_MOST * moments[-1][0] / 3600 * on_demand / self.still
        price = machine_hours(moments) * spot / max(1, self.steps) / static
        return (f"| {self.program} | {self.who} | {gone}, and {len(self.plan) - gone} come | {self.still} | {self.steps} | {self.share():.1%} "
                f"| {self.lost} | {price:.2f} |")


def torchrun_played(peer, python, moments, plan):
    """The same kills of real launchers; a sentence where that can't be had."""
    seconds = moments[-1][0]

    def trace(workers, words):
        return peer(python, "torch_trace.py", "--workers", str(workers), "--least", str(REAL_LEAST), "--most", str(REAL_MOST), "--seconds", str(seconds),
                    *(word for drill in words for word in ("--drill", drill)))
    still = trace(REAL_MOST, [])
    found = still and trace(moments[0][1], plan)
    if found:
        return Played(f"torchrun of PyTorch {found['torch']}", "is killed (SIGKILL)", plan, found["steps"], found["stepsRedone"], still["steps"])
    return "torchrun beside it: not measured, as " + ("it did not begin, or not go on." if {} in (still, found) else "this Python has no torch (`--python P`).")


def process_lines(name, moments, ours, theirs, spot, on_demand):
    seconds = moments[-1][0]
    lines = [f"{seconds:g} s of {name} as real processes, {REAL_LEAST} to {REAL_MOST} workers, the time 40 times quicker. All share this machine's processors, so what "
             "capacity allowed is what the same program makes undisturbed in that time, which is also the static job on demand:", "",
             "| program | who goes | how often | steps, undisturbed | steps | of the undisturbed | steps lost | of the static job's price a step |",
             "|---|---|---|---|---|---|---|---|"]
    lines += [one.row(moments, spot, on_demand) for one in (*ours, *([] if isinstance(theirs, str) else [theirs]))]
    if isinstance(theirs, str):
        return [*lines, "", theirs]
    ratios = [one.share() / theirs.share() if theirs.steps else float("inf") for one in ours]
    kept = ", ".join(f"{ratio:.2f} times where its workers are {'told' if 'SIGTERM' in one.who else 'killed'}" for one, ratio in zip(ours, ratios))
    return [*lines, "", f"Of the share of its undisturbed steps that torchrun, killed, keeps, Ringmaster keeps of its own {kept}."]


def real(rig, job_of, model, name, moments, peer, arguments):
    moments = scaled(moments, 40)
    still, _ = real_run(rig, job_of, model, [(0, REAL_MOST), moments[-1]], [])
    ours = []
    for who, kind in (("is told (SIGTERM)", "term"), ("is killed (SIGKILL)", "kill")):
        plan = drills(moments, kind, arguments.seed, spared={0})  # who serves torchrun's rendezvous
        steps, redone = real_run(rig, job_of, model, moments, plan)
        ours.append(Played("Ringmaster", who, plan, steps, redone, still))
        say(f"{who}: {steps} of {still} steps")
    theirs = torchrun_played(peer, arguments.python, moments, ours[-1].plan)
    return process_lines(name, moments, ours, theirs, arguments.spot_price, arguments.on_demand_price)


# ---- all of it ----

def traces_of(arguments):
    if arguments.trace:
        try:
            read = {Path(path).name: spot_trace.read(path) for path in arguments.trace}
            return {name: spot_trace.stretch(moments, 0, min(moments[-1][0], arguments.hours * 3600)) for name, moments in read.items()}
        except spot_trace.BadTrace as why:
            sys.exit(f"tools/bench: {why}")
    return {"p3": spot_trace.of_name("p3", arguments.seed),
            "zone": spot_trace.stretch(spot_trace.of_name("zone", arguments.seed), 0, arguments.hours * 3600),
            "kills": spot_trace.of_name("kills")}


PARTS = ("policy", "meter", "notices", "calm", "processes")
# Sections of the page that are of virtual time, and of which traces; the others say on which machine they were measured.
VIRTUAL = {"spot": "--only policy --hours {hours:g}", "spot-meter": "--only meter --hours {hours:g}",
           "spot-files": "--only policy --hours {hours:g} --trace FILE...", "spot-meter-files": "--only meter --hours {hours:g} --trace FILE..."}
NOTICE_JOB = {"workers__target": 3, "workers__min": 1, "workers__max": 4}  # rig's tiny model
CALM_JOB, CALM_S = {"workers__target": 2, "workers__min": 1, "workers__max": 4}, 6


def notices(count, seed):
    found = bench_notice.notices(NOTICE_JOB, count, seed, say)
    return [f"{count} notices of each cloud, each at a moment of chance, to workers of one job that trains; the load was {os.getloadavg()[1]:.0f} at the end:", "",
            *bench_notice.latency_lines(found)]


def calm(rounds):
    found = bench_notice.rounds_of(CALM_JOB, rounds, CALM_S, say)
    return [f"The same job of two workers, {CALM_S} s without, with, and without listening, one right behind the other; on AWS and Azure, of which nobody is told "
            f"anything. The load was {os.getloadavg()[1]:.0f} at the end:", "", *bench_notice.calm_lines(found)]


def heading(section, hours):
    """What a section of virtual time begins with; nothing of another one."""
    return section in VIRTUAL and f"`tools/bench spot {VIRTUAL[section].format(hours=hours)}` (virtual time, which is the same on each machine):"


def bench(rig, job_of, model, peer, arguments):
    """(lines of the policy, rows, {section of the page: lines} of the other parts)"""
    traces, only = traces_of(arguments), arguments.only or PARTS
    lines, rows, more = [], [], {}
    files = "-files" if arguments.trace else ""
    if "policy" in only:
        lines, rows = policy(traces, arguments.seed, arguments.spot_price, arguments.on_demand_price)
    if "meter" in only:
        more[f"spot-meter{files}"] = bench_meter.lines(traces, arguments.seed)
    if "notices" in only:
        more["spot-notices"] = notices(arguments.notices, arguments.seed)
    if "calm" in only:
        more["spot-calm"] = calm(arguments.calm)
    if "processes" in only:
        name = next(iter(traces))  # p3, where no other was given
        stretch = spot_trace.stretch(traces[name], 0, 3600)
        more["spot-processes"] = real(rig, job_of, model, name, stretch, peer, arguments)
    return ([], rows, {"spot-files": lines, **more}) if files else (lines, rows, more)
