"""Trainers that stand still: found, killed and restarted, or left out."""

import os
import signal

import pytest

import rig

# Who stands still is found by the hang check (1 s) before its silence is (2 s), where its trainer is at work.
QUICK = {"elasticity__heartbeat": "100ms", "elasticity__lostAfter": "2s", "elasticity__stepTimeout": "1s"}


def check_blamed(run, stopped):
    """Who was found hanging is who was stopped: nobody else's trainer was killed for it."""
    blamed = [e["worker"] for e in run.of("workerLost") if "hangs" in e["cause"]]
    assert set(blamed) <= set(stopped), f"stopped {stopped}, blamed {blamed}: {run.tail()}"
    return blamed


def targets(run, *kinds):
    """The workers of these kinds of drills."""
    return [int(e["spec"].split(":")[1].split("@")[0]) for e in run.of("drill") if e["spec"].split(":")[0] in kinds]


def test_a_hung_trainer_is_restarted_and_the_others_go_on_without_it(tmp_path, finish, reference):
    run = finish(rig.make_job(tmp_path, workers__target=3, trainer__steps=400, **QUICK), "--drill", "hang:1@10")
    complete = rig.check_complete(run, last=400, restarted=[1])
    first = run.of("recovered")[0]
    assert first["cause"] == "Hang" and first["stepsRedone"] <= 1, first
    lost = run.the("workerLost")
    assert lost["worker"] == 1 and check_blamed(run, [1]) == [1], lost
    assert [e["world"] for e in run.of("ringFormed")][:2] == [3, 2]
    assert complete["weightsSha256"] == reference(trainer__steps=400)[0]


def test_time_lost_to_a_hang_is_no_goodput_and_is_not_forgotten_with_the_coordinator(tmp_path, launch):
    run = launch(rig.make_job(tmp_path, workers__target=2, trainer__steps=400, **QUICK),
                 "--drill", "hang:1@10", "--drill", "coordinator@300")
    run.wait()
    complete = rig.check_complete(run, last=400, restarted=[1])
    lost = next(e["totalMs"] for e in run.of("recovered") if e["cause"] == "Hang")
    age = complete["time"] - run.the("started")["time"]
    assert complete["goodput"] <= 1 - 0.8 * lost / age, (complete, lost, age)


def test_a_stopped_worker_is_lost_and_not_replaced(tmp_path, finish, reference):
    run = finish(rig.make_job(tmp_path, workers__target=3, **dict(QUICK, elasticity__stepTimeout="60s")),
                 "--drill", "stop:2@10")
    complete = rig.check_complete(run)
    assert run.the("workerLost")["worker"] == 2
    assert check_blamed(run, []) == []
    assert [e["world"] for e in run.of("ringFormed")] == [3, 2]
    assert run.the("recovered")["cause"] == "WorkerLost"
    assert complete["weightsSha256"] == reference()[0]


def test_a_stopped_worker_that_goes_on_does_no_harm(tmp_path, launch, reference):
    fields = dict(QUICK, elasticity__stepTimeout="60s")
    run = launch(rig.make_job(tmp_path, workers__target=3, trainer__steps=600, **fields), "--drill", "stop:2@10")
    ring = run.read_until("ringFormed")
    zombie = next(m for m in ring["members"] if m["worker"] == 2)
    run.read_until("ringFormed", world=2)
    for name in ("trainerPid", "agentPid"):
        os.kill(zombie[name], signal.SIGCONT)
    run.wait()
    complete = rig.check_complete(run, last=600)
    assert run.of("ringFormed")[-1]["world"] == 2, run.tail()
    assert check_blamed(run, []) == []
    assert complete["weightsSha256"] == reference(trainer__steps=600)[0]


@pytest.mark.parametrize("worker", range(3))
def test_a_worker_that_is_stopped_while_it_waits_is_told_from_those_who_wait(tmp_path, finish, reference, worker):
    run = finish(rig.make_job(tmp_path, workers__target=3, **dict(QUICK, elasticity__lostAfter="20s")),
                 "--drill", f"stop:{worker}@40")
    complete = rig.check_complete(run)
    assert check_blamed(run, [worker]) == [worker], run.tail()
    assert complete["weightsSha256"] == reference()[0]


@pytest.mark.parametrize("seed", range(1, 4))
def test_a_history_drawn_from_a_seed_changes_no_bit(tmp_path, finish, reference, seed):
    run = finish(rig.make_job(tmp_path, workers__target=3, workers__min=2, workers__max=5, trainer__steps=300,
                              failurePolicy__maxRestarts=100, **QUICK), "--drill", f"random:{seed}")
    complete = rig.check_complete(run, last=300, restarted=targets(run, "hang"))
    check_blamed(run, targets(run, "hang", "stop"))
    assert len(run.of("drill")) >= 3
    assert complete["weightsSha256"] == reference(trainer__steps=300)[0]
