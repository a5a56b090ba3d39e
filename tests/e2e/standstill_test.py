"""A process stands still (SIGSTOP) at a place where somebody waits for it: it is found, and no bit is lost.

hang_test.py stops workers in a step. Here it is everything else: evaluation, a ring that forms, a state on its way, a
checkpoint, the start, the end, and the coordinator between any two words. A fault point with "/stop" says where."""

import pytest

import rig
from hang_test import QUICK

PATIENCE = {**QUICK, "elasticity__formTimeout": "2s"}  # one who says nothing while a ring forms has four of these

STEPS = 160
FIELDS = {"trainer__steps": STEPS, "trainer__evaluation__everySteps": 40, "trainer__evaluation__sequences": 16,
          "trainer__evaluation__holdOut": 0.1}
DRILLS = ["--drill", "trainer:2@12", "--drill", "kill:1@30", "--drill", "join@45", "--drill", "join@60"]

TRAINER = [
    "sequence-evaluated:1@0", "sequence-evaluated:8@0", "sequence-evaluated:1@3",  # evaluation
    "ring-joined:1@2", "ring-joined:2@0",  # a ring forms, the first and a later one
    "trainer-setup@0", "state-made@1", "receive-chunk:1@3", "transfer-chunk:1@0",  # start, and a state on its way
    "snapshot-taken:2@0", "digest-made@0",  # saving, and the end
]
WHILE_ALL_WAIT = ("receive-chunk", "transfer-chunk")
AGENT = ["slice-asked:1@2", "slice-written:2@0", "publish-asked:1@0", "before-manifest:1@0", "listed@0", "agent-send:5@2"]
COORDINATOR = ["coordinator-heard:4", "coordinator-send:5", "coordinator-send:14", "coordinator-told:3", "coordinator-told:60"]


def stand_still(folder, finish, reference, setting):
    """A busy run in which one process stops itself there; returns it once it has ended as if nothing had been."""
    job = rig.make_job(folder, workers__target=3, checkpoint__everySteps=25, checkpoint__keep=2,
                       failurePolicy__maxRestarts=20, **PATIENCE, **FIELDS)
    point = setting.split(":")[0].split("@")[0]
    waits = {"RINGMASTER_LISTEN": "0"} if point in WHILE_ALL_WAIT else {}
    run = finish(job, *DRILLS, env={"RINGMASTER_FAULT": f"{setting}/stop", **waits})
    assert f"fault point {point}\n" in run.stderr, f"nobody stood still at {setting}: {run.tail()}"
    assert run.code == 0, run.tail()
    rig.check_steps(run, last=STEPS)
    complete = run.the("complete")
    assert complete["weightsSha256"] == reference(**FIELDS)[0], run.tail()
    assert rig.weights_sha256(rig.folder_of(complete["uri"])) == complete["weightsSha256"]
    rig.until(lambda: not run.left_over(), "every process of the run is gone", rig.DEADLINE_S)
    return run


@pytest.mark.slow
@pytest.mark.parametrize("setting", TRAINER)
def test_a_trainer_that_stands_still_anywhere_is_found_and_nobody_else_is_blamed(tmp_path, finish, reference, setting):
    run = stand_still(tmp_path, finish, reference, setting)
    blamed = {e["worker"] for e in run.of("workerLost") if "hangs" in e["cause"]}
    assert blamed <= {int(setting.split("@")[1])}, run.tail()


@pytest.mark.slow
@pytest.mark.parametrize("setting", AGENT)
def test_an_agent_that_stands_still_while_it_saves_or_starts_is_given_up(tmp_path, finish, reference, setting):
    stand_still(tmp_path, finish, reference, setting)


@pytest.mark.slow
@pytest.mark.parametrize("setting", COORDINATOR)
def test_a_coordinator_that_stands_still_between_two_words_is_replaced(tmp_path, finish, reference, setting):
    run = stand_still(tmp_path, finish, reference, setting)
    assert "said nothing" in run.stderr, run.stderr
