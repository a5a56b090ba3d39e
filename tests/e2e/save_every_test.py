"""checkpoint.every: Auto. Checkpoints that come by themselves, and how far apart they are."""

import json
import os
import re
import signal
import urllib.request

import pytest
import rig
from elastic_program_test import slow, squares_job, squares_program  # noqa: F401 (a fixture)

SLOW_SAVE_MS = 1500


def kill_all(run):
    """Whoever holds the state, at once."""
    formed = run.of("ringFormed")[-1]
    for member in formed["members"]:
        os.kill(member["agentPid"], signal.SIGKILL)


def read_on(run, seconds):
    """To a step that is so much later, by the clock of the coordinator: meanwhile it has told what a successor needs."""
    now = run.events[-1]["time"]
    run.read_until("step", time=lambda time: time > now + 1000 * seconds)


def lost(times):
    return lambda reason: f"all workers together were lost {times} in" in reason


@pytest.mark.slow
def test_checkpoints_come_by_themselves_and_each_loss_of_all_makes_them_closer(launch, tmp_path, squares):
    """A program whose image takes its time, so that the time between two lies between the bounds: first a minute, then what
    one save was seen to cost, then less for each loss of all. A coordinator that dies between two losses costs no knowledge."""
    run = launch(squares_job(tmp_path, squares, *slow(50000), "--save-ms", str(SLOW_SAVE_MS), steps=10 ** 6, workers=2, checkpoint__every="Auto",
                             checkpoint__maxLoss="1h", failurePolicy__maxRestarts=1000))
    first = run.read_until("checkpointInterval")
    assert first["everySeconds"] == 60 and "not known yet" in first["reason"], first
    saved = run.read_until("checkpointSaved")
    measured = run.read_until("checkpointInterval", reason=lost("0 times"))
    assert 60 < measured["everySeconds"] < 3600, measured
    stall = float(re.search(r"stalls training for ([0-9.]+) s", measured["reason"])[1])
    assert 0.5 * SLOW_SAVE_MS / 1000 < stall, measured
    run.read_until("step", step=lambda step: step > saved["step"] + 20)
    kill_all(run)
    once = run.read_until("checkpointInterval", reason=lost("once"))
    assert 60 <= once["everySeconds"] < 0.8 * measured["everySeconds"], (measured, once)
    read_on(run, 3)
    os.kill(run.the("started")["coordinatorPid"], signal.SIGKILL)
    run.read_until("recovered", cause="CoordinatorLost")
    read_on(run, 3)
    kill_all(run)
    twice = run.read_until("checkpointInterval", reason=lost("2 times"))
    assert 60 <= twice["everySeconds"] < 0.9 * once["everySeconds"], (once, twice)


def test_a_short_run_tells_the_time_and_where_it_comes_from_and_its_weights_are_any_others(launch, tmp_path, reference):
    """Under a minute nothing is due."""
    run = launch(rig.make_job(tmp_path, workers__target=2, checkpoint__every="Auto"))
    chosen = run.read_until("checkpointInterval")
    assert chosen["everySeconds"] == 60
    with urllib.request.urlopen(f"http://{run.the('started')['address']}/v1/status", timeout=rig.DEADLINE_S) as answer:
        told = json.load(answer)["checkpointInterval"]
    assert told["everySeconds"] == 60 and told["reason"] == chosen["reason"] and told["losses"] == 0 and told["safeMs"] == 0, told
    run.wait()
    assert rig.check_complete(run)["weightsSha256"] == reference()[0]
