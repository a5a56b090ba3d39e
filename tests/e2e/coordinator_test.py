"""Losing the coordinator: training goes on, a successor takes over, and nothing is told twice or not at all."""

import os
import signal

import pytest

import rig


def check_untouched(run):
    """One ring from the first step to the last: the loss cost the workers nothing."""
    assert len(run.of("ringFormed")) == 1, run.tail()
    assert not run.of("workerLost", "workerLeft"), run.tail()


def losses(run):
    return [e for e in run.of("recovered") if e["cause"] == "CoordinatorLost"]


@pytest.mark.sanitized
def test_training_goes_on_untouched_while_the_coordinator_is_replaced(tmp_path, finish, reference):
    fields = {"trainer__evaluation__everySteps": 10, "trainer__evaluation__holdOut": 0.1,
              "trainer__evaluation__sequences": 16}
    run = finish(rig.make_job(tmp_path, workers__target=3, checkpoint__everySteps=20, **fields),
                 "--drill", "coordinator@10")
    complete = rig.check_complete(run)
    check_untouched(run)
    (recovered,) = losses(run)
    assert [recovered[k] for k in ("ringMs", "stateMs", "stepsRedone")] == [0, 0, 0], recovered
    assert recovered["totalMs"] > 0
    assert [e["step"] for e in run.of("evaluated")] == list(range(10, rig.STEPS + 1, 10))
    saved = [e["uri"] for e in run.of("checkpointSaved")]
    assert len(saved) == len(set(saved)) and saved[-1].endswith("/final")
    assert all(e["loss"] is not None for e in run.of("step"))
    assert complete["weightsSha256"] == reference(**fields)[0]


def test_the_coordinator_can_be_lost_again_and_again(tmp_path, finish, reference):
    run = finish(rig.make_job(tmp_path, workers__target=2, trainer__steps=300),
                 *sum((["--drill", f"coordinator@{step}"] for step in (10, 100, 200)), []))
    complete = rig.check_complete(run, last=300)
    check_untouched(run)
    assert 1 <= len(losses(run)) <= 3
    assert complete["weightsSha256"] == reference(trainer__steps=300)[0]


@pytest.mark.parametrize("harm", ["kill:1", "trainer:1", "term:1", "join"])
def test_the_coordinator_and_a_worker_at_the_same_moment(tmp_path, finish, reference, harm):
    for order in (["coordinator@20", f"{harm}@20"], [f"{harm}@20", "coordinator@20"]):
        folder = tmp_path / order[0].split("@")[0].replace(":", "-")
        run = finish(rig.make_job(folder, workers__target=3, trainer__steps=300), *sum((["--drill", d] for d in order), []))
        complete = rig.check_complete(run, last=300, restarted=[1] if "trainer" in harm else [])
        assert len(losses(run)) == 1, run.tail()
        assert complete["weightsSha256"] == reference(trainer__steps=300)[0]


def test_one_that_dies_without_a_drill_is_replaced_too(tmp_path, launch, reference):
    run = launch(rig.make_job(tmp_path, workers__target=2))
    started = run.read_until("started")
    run.read_until("step", step=10)
    os.kill(started["coordinatorPid"], signal.SIGKILL)
    run.wait()
    complete = rig.check_complete(run)
    check_untouched(run)
    assert len(losses(run)) == 1
    assert complete["weightsSha256"] == reference()[0]


def test_one_that_stands_still_is_replaced_too(tmp_path, launch, reference):
    """Its connections and its process are there; that it says nothing gives it away."""
    run = launch(rig.make_job(tmp_path, workers__target=2))
    started = run.read_until("started")
    run.read_until("step", step=10)
    os.kill(started["coordinatorPid"], signal.SIGSTOP)
    run.wait()
    complete = rig.check_complete(run)
    check_untouched(run)
    assert len(losses(run)) == 1
    assert "said nothing" in run.stderr, run.stderr
    assert complete["weightsSha256"] == reference()[0]


def test_an_interrupt_outlives_the_coordinator_that_heard_it(tmp_path, launch, finish, reference):
    job = rig.make_job(tmp_path, workers__target=2)
    run = launch(job)
    started = run.read_until("started")
    run.read_until("step", step=10)
    run.interrupt()
    os.kill(started["coordinatorPid"], signal.SIGKILL)
    assert run.wait() == 130, run.tail()
    stopped = run.the("interrupted")["step"]
    assert stopped >= 10 and not run.left_over()
    again = finish(job)
    assert rig.check_complete(again, first=stopped + 1)["weightsSha256"] == reference()[0]


def test_below_the_minimum_the_successor_saves_and_says_so(tmp_path, finish):
    run = finish(rig.make_job(tmp_path, workers__target=2, workers__min=2),
                 "--drill", "coordinator@10", "--drill", "kill:1@10")
    assert run.code == 6, run.tail()
    assert run.the("failed")["exitCode"] == 6
    assert run.of("checkpointSaved")[-1]["step"] >= 10
    assert not run.left_over()
