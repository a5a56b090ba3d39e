"""Harm at random from a seed: whatever dies, whenever, the weights are those of the undisturbed run.

Unlike drills, which strike when a step is told, these strike at any event: while a ring forms, while a checkpoint is
written, while a newcomer receives the state. A run that ends on the way (Ctrl-C, its coordinator killed, itself
killed) is started again with another number of workers until one gets through."""

import os
import random
import signal

import pytest

import rig

FIELDS = {"trainer__steps": 200, "checkpoint__everySteps": 15, "checkpoint__keep": 2, "failurePolicy__maxRestarts": 1000}
HARM = [("kill agent", 5), ("kill trainer", 5), ("term agent", 4), ("stop run", 1), ("kill run", 1), ("kill coordinator", 1)]
ENDINGS = {0, 4, 6, 130, -signal.SIGKILL}
RUNS_MAX = 25


def strike(run, chance, what):
    """Does one harm to the run as its events show it; says what it did."""
    rings, started = run.of("ringFormed"), run.of("started")
    if what.endswith("agent") or what == "kill trainer":
        member = chance.choice(rings[-1]["members"]) if rings else None
        pid = member and member["trainerPid" if what == "kill trainer" else "agentPid"]
        sent = signal.SIGTERM if what == "term agent" else signal.SIGKILL
    elif what == "kill coordinator":
        pid, sent = started and started[0]["coordinatorPid"], signal.SIGKILL
    else:
        pid, sent = run.pid, signal.SIGINT if what == "stop run" else signal.SIGKILL
    if pid and pid in run.left_over():
        try:
            os.kill(pid, sent)
        except ProcessLookupError:  # it has just gone by itself
            pass
    return what


def disturbed_run(run, chance, rate):
    """Reads a run to its end, striking at a share of its steps and more often where something else happens.

    Returns what was done, and at which event."""
    done = []
    kinds, weights = zip(*HARM)
    event = run.next_event()
    while event is not None:
        if chance.random() < (rate if event["event"] == "step" else 8 * rate):
            done.append((event["event"], strike(run, chance, chance.choices(kinds, weights)[0])))
        event = run.next_event()
    run.wait()
    rig.until(lambda: not run.left_over(), "every process of the run is gone")
    return done


FIRST = int(os.environ.get("RINGMASTER_CHAOS_FROM", "0"))
SEEDS = range(FIRST, int(os.environ.get("RINGMASTER_CHAOS_TO", str(FIRST + 8))))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.slow
@pytest.mark.sanitized
def test_harm_at_any_moment_changes_no_bit(tmp_path, launch, reference, seed):
    chance = random.Random(seed)
    expected = reference(trainer__steps=200)
    losses = dict(enumerate(expected[1], 1))
    told = []
    for number in range(RUNS_MAX):
        run = launch(rig.make_job(tmp_path, workers__target=chance.randrange(1, 6), **FIELDS))
        told.append(disturbed_run(run, chance, 0.02 if number < RUNS_MAX // 2 else 0.0))
        story = f"seed {seed}, run {number + 1}: {told}\n{run.tail()}"
        assert run.code in ENDINGS, story
        steps = [e["step"] for e in run.of("step")]
        assert steps == list(range(steps[0], steps[0] + len(steps))) if steps else True, story
        for event in run.of("step"):
            assert event["loss"] == losses[event["step"]], f"step {event['step']} is another one: {story}"
        if run.code == 0:
            break
    assert run.code == 0, story
    complete = run.the("complete")
    assert complete["weightsSha256"] == expected[0], story
    assert rig.weights_sha256(rig.folder_of(complete["uri"])) == expected[0]
