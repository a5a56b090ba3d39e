"""Histories drawn from a seed: whole runs of real processes with harm on the way, judged by the bits that come out.

Three ways: `drills`, where `run` itself does what random:SEED draws (every kind of drill); `crashes`, the same with a
crash at any fault point, at any time that it is reached; and `chaos`, which strikes from outside at any event: while a
ring forms, while a checkpoint is written, while a newcomer receives the state; runs that end on the way (Ctrl-C, killed)
are started again with another number of workers until one gets through.

A seed fixes what is done at which event, not the microsecond: run a failing one several times. Used by
campaign_test.py, chaos_test.py and tools/campaign."""

import os
import random
import signal
import threading
from collections import Counter
from dataclasses import dataclass, field

import fault_points
import rig

STEPS = 200
JOB = {"trainer__steps": STEPS, "workers__max": 6, "checkpoint__everySteps": 15, "checkpoint__keep": 2,
       "failurePolicy__maxRestarts": 1000, "elasticity__heartbeat": "100ms", "elasticity__lostAfter": "3s",
       "elasticity__stepTimeout": "2s"}
HARM = [("kill agent", 5), ("kill trainer", 5), ("term agent", 4), ("pause agent", 2), ("pause trainer", 2),
        ("pause coordinator", 1), ("hang trainer", 1), ("stop run", 1), ("kill run", 1), ("kill coordinator", 2)]
ENDINGS = {0, 4, 6, 130, -signal.SIGKILL}
RUNS_MAX = 25
PAUSES_S = (0.01, 0.1, 1.0, 4.0)  # below and above what is waited for


@dataclass
class Expected:
    """The undisturbed run: its weights, and the loss of each step."""

    weights_sha256: str
    losses: list


@dataclass
class History:
    """What happened in one history, added up over its runs."""

    kind: str
    seed: int
    runs: int = 0
    harm: Counter = field(default_factory=Counter)
    recoveries: Counter = field(default_factory=Counter)
    redone: int = 0
    told: list = field(default_factory=list)  # the harm in order, for the story of a failure

    def take(self, run):
        self.runs += 1
        self.harm.update(e["spec"].split(":")[0].split("@")[0] for e in run.of("drill"))
        self.recoveries.update(e["cause"] for e in run.of("recovered"))
        self.redone += sum(e["stepsRedone"] for e in run.of("recovered"))


def expect(launch, folder):
    """Runs the job of all histories once with nothing in its way."""
    run = launch(rig.make_job(folder, **{**JOB, "workers__target": 1}))
    run.wait()
    complete = rig.check_complete(run, last=STEPS)
    return Expected(complete["weightsSha256"], [e["loss"] for e in run.of("step")])


def check_told(run, expected, story):
    """Each step once, in order, with the loss of the undisturbed run; whatever the run ended with."""
    steps = [e["step"] for e in run.of("step")]
    assert steps == list(range(steps[0], steps[0] + len(steps))) if steps else True, story
    for event in run.of("step"):
        assert event["loss"] == expected.losses[event["step"] - 1], f"step {event['step']} is another one: {story}"


def check_end(run, expected, story):
    assert run.code == 0, story
    complete = run.the("complete")
    assert complete["step"] == STEPS and complete["exact"] is True, story
    assert complete["weightsSha256"] == expected.weights_sha256, f"other weights: {story}"
    assert rig.weights_sha256(rig.folder_of(complete["uri"])) == expected.weights_sha256, story


def gone(run):
    rig.until(lambda: not run.left_over(), "every process of the run is gone", rig.DEADLINE_S)


def drills(seed, folder, launch, expected):
    """`run --drill random:SEED`; the number of workers goes with the seed."""
    history = History("drills", seed)
    run = launch(rig.make_job(folder, workers__target=1 + seed % 5, **JOB), "--drill", f"random:{seed}")
    run.wait()
    history.take(run)
    history.told = [e["spec"] for e in run.of("drill")]
    story = f"drills, seed {seed}: {history.told}\n{run.tail()}"
    check_told(run, expected, story)
    assert len(run.of("step")) == STEPS, story
    assert len(history.told) >= 3, story
    check_end(run, expected, story)
    gone(run)
    return history


def draw_fault(chance):
    """A fault point of the programs, the time that it is reached (the first ones more often), and in whom."""
    point = chance.choice(sorted(name for name, cases in fault_points.POINTS.items() if cases))
    settings = [case.setting for case in fault_points.POINTS[point]]
    who = chance.choice(sorted({setting.partition("@")[1] + setting.partition("@")[2] for setting in settings}))
    return f"{point}:{int(2 ** chance.uniform(0, 6))}{who}"


def crashes(seed, folder, launch, expected):
    """Drills as above and a crash; where that ended the run, another run goes on to the end."""
    history, fault = History("crashes", seed), draw_fault(random.Random(seed))
    job = rig.make_job(folder, workers__target=1 + seed % 5, **JOB)
    run = launch(job, "--drill", f"random:{seed}", env={"RINGMASTER_FAULT": fault})
    run.wait()
    history.take(run)
    story = f"crashes, seed {seed}: {fault}\n{run.tail()}"
    check_told(run, expected, story)
    history.harm["crash" if "fault point " in run.stderr else "crash not reached"] += 1
    gone(run)
    if run.code == -signal.SIGKILL:
        run = launch(job)
        run.wait()
        history.take(run)
        story += f"\nafter that: {run.tail()}"
        check_told(run, expected, story)
    check_end(run, expected, story)
    gone(run)
    return history


def send(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:  # it has just gone by itself
        pass


def victim(run, chance, who):
    """The pid of one, or None where nobody of that kind is known yet."""
    if who == "run":
        return run.pid
    if who == "coordinator":
        return next((e["coordinatorPid"] for e in reversed(run.of("started"))), None)
    rings = run.of("ringFormed")
    return chance.choice(rings[-1]["members"])[f"{who}Pid"] if rings else None


def strike(run, chance, what):
    deed, who = what.split()
    pid, pause = victim(run, chance, who), chance.choice(PAUSES_S)
    if not pid or pid not in run.left_over():
        return
    if deed == "pause":
        send(pid, signal.SIGSTOP)
        timer = threading.Timer(pause, send, (pid, signal.SIGCONT))
        timer.daemon = True
        timer.start()
    else:
        send(pid, {"kill": signal.SIGKILL, "term": signal.SIGTERM, "hang": signal.SIGSTOP, "stop": signal.SIGINT}[deed])


def disturb(run, chance, rate, history):
    """Reads a run to its end, striking at a share of its steps and more often where something else happens."""
    kinds, weights = zip(*HARM)
    event = run.next_event()
    while event is not None:
        if chance.random() < (rate if event["event"] == "step" else 8 * rate):
            what = chance.choices(kinds, weights)[0]
            strike(run, chance, what)
            history.harm[what] += 1
            history.told.append(f"{what} at {event['event']} {event.get('step', '')}".strip())
        event = run.next_event()
    run.wait()
    gone(run)


def chaos(seed, folder, launch, expected):
    """Harm at random from outside, then, in the second half of the runs, none."""
    chance, history = random.Random(seed), History("chaos", seed)
    for number in range(RUNS_MAX):
        run = launch(rig.make_job(folder, workers__target=chance.randrange(1, 6), **JOB))
        disturb(run, chance, 0.02 if number < RUNS_MAX // 2 else 0.0, history)
        history.told.append(f"exit {run.code}")
        history.take(run)
        story = f"chaos, seed {seed}, run {number + 1}: {history.told}\n{run.tail()}"
        assert run.code in ENDINGS, story
        check_told(run, expected, story)
        if run.code == 0:
            break
    check_end(run, expected, story)
    return history


KINDS = {"drills": drills, "crashes": crashes, "chaos": chaos}
