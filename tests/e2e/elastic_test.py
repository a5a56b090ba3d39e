"""What losing, leaving and joining cost, and how a run ends when too few are left."""

import os
import signal
import subprocess

import pytest

import rig

PHASES = ["detectMs", "agreeMs", "ringMs", "stateMs", "firstStepMs", "totalMs"]


def check_recovered(event, cause, redone_max):
    assert event["cause"] == cause, event
    assert 0 <= event["stepsRedone"] <= redone_max, event
    for name in PHASES:
        assert event[name] >= 0, event
    assert event["totalMs"] >= max(event[name] for name in PHASES[:-1]) - 1, event


@pytest.mark.parametrize("worker", [0, 1, 2])
def test_an_announced_leave_redoes_no_step(tmp_path, finish, worker):
    run = finish(rig.make_job(tmp_path, workers__target=3), "--drill", f"term:{worker}@10")
    rig.check_complete(run)
    check_recovered(run.the("recovered"), "WorkerLeft", 0)
    assert run.the("workerLeft")["worker"] == worker
    assert not run.of("workerLost")
    assert [e["world"] for e in run.of("ringFormed")] == [3, 2]


@pytest.mark.parametrize("worker", [0, 1, 2])
@pytest.mark.sanitized
def test_a_sudden_loss_redoes_at_most_the_step_in_flight(tmp_path, finish, worker):
    run = finish(rig.make_job(tmp_path, workers__target=3), "--drill", f"kill:{worker}@10")
    rig.check_complete(run)
    check_recovered(run.the("recovered"), "WorkerLost", 1)
    assert run.the("workerLost")["worker"] == worker
    assert not run.of("workerJoined"), "a worker taken by kill is not replaced"
    assert [e["world"] for e in run.of("ringFormed")] == [3, 2]


def test_a_dead_trainer_is_restarted_and_rejoins_under_its_index(tmp_path, finish):
    run = finish(rig.make_job(tmp_path, workers__target=3, trainer__steps=200), "--drill", "trainer:1@10")
    rig.check_complete(run, last=200)
    rings = run.of("ringFormed")
    first, last = ({m["worker"]: m for m in ring["members"]} for ring in (rings[0], rings[-1]))
    assert set(last) == {0, 1, 2}, run.tail()
    assert first[1]["agentPid"] == last[1]["agentPid"] and first[1]["trainerPid"] != last[1]["trainerPid"]
    for worker in (0, 2):
        assert first[worker] == last[worker]
    check_recovered(run.of("recovered")[0], "TrainerExit", 1)


def test_a_join_takes_the_lowest_free_index_and_redoes_nothing(tmp_path, finish):
    run = finish(rig.make_job(tmp_path, workers__target=2, trainer__steps=300), "--drill", "kill:0@10", "--drill", "join@40")
    rig.check_complete(run, last=300)
    assert run.the("workerJoined")["worker"] == 0
    joined = run.of("recovered")[-1]
    check_recovered(joined, "WorkerJoined", 0)
    assert run.of("ringFormed")[-1]["world"] == 2


def test_a_worker_that_dies_undrilled_is_replaced(tmp_path, launch, reference):
    run = launch(rig.make_job(tmp_path, workers__target=3, trainer__steps=300))
    ring = run.read_until("ringFormed")
    run.read_until("step", step=10)
    os.kill(next(m["agentPid"] for m in ring["members"] if m["worker"] == 1), signal.SIGKILL)
    run.wait()
    complete = rig.check_complete(run, last=300)
    assert complete["weightsSha256"] == reference(trainer__steps=300)[0]
    assert run.the("workerLost")["worker"] == 1
    assert run.the("workerJoined")["worker"] == 1
    last = {m["worker"]: m for m in run.of("ringFormed")[-1]["members"]}
    assert set(last) == {0, 1, 2} and last[1]["agentPid"] not in [m["agentPid"] for m in ring["members"]]


def test_below_the_minimum_it_saves_and_says_so(tmp_path, finish, reference):
    job = rig.make_job(tmp_path, workers__target=2, workers__min=2)
    run = finish(job, "--drill", "kill:1@10")
    assert run.code == 6, run.tail()
    failed = run.the("failed")
    assert failed["exitCode"] == 6 and failed["reason"]
    saved = run.of("checkpointSaved")[-1]
    last = run.of("step")[-1]["step"]
    assert saved["step"] == last, "the newest committed step is in the checkpoint"
    assert "min" in run.stderr and str(saved["step"]) in run.stderr, run.stderr
    assert not run.left_over()

    again = finish(rig.make_job(tmp_path, workers__target=2, workers__min=2))
    assert again.the("resumed")["step"] == last
    assert rig.check_complete(again, first=last + 1)["weightsSha256"] == reference()[0]


def test_restarts_of_several_workers_over_the_budget_end_the_job(tmp_path, launch):
    run = launch(rig.make_job(tmp_path, workers__target=2, trainer__steps=100000, failurePolicy__maxRestarts=2))
    killed = set()
    for victim in (0, 1, 0):
        ring = run.read_until("ringFormed", members=lambda members, victim=victim: any(
            m["worker"] == victim and m["trainerPid"] not in killed for m in members))
        pid = next(m["trainerPid"] for m in ring["members"] if m["worker"] == victim)
        killed.add(pid)
        os.kill(pid, signal.SIGKILL)
    assert run.wait() == 5, run.tail()
    assert run.the("failed")["exitCode"] == 5
    assert "maxRestarts" in run.stderr, run.stderr
    assert not run.left_over()


def test_a_killed_run_leaves_no_process_behind(tmp_path, launch, finish, reference):
    job = rig.make_job(tmp_path, workers__target=3, checkpoint__everySteps=10)
    run = launch(job)
    run.read_until("checkpointSaved", step=lambda step: step >= 20)
    assert len(run.left_over()) >= 8  # run, coordinator, 3 agents, 3 trainers
    os.kill(run.pid, signal.SIGKILL)
    rig.until(lambda: not run.left_over(), "every process of the run is gone")

    again = finish(job)
    resumed = again.the("resumed")["step"]
    assert resumed >= 20
    assert rig.check_complete(again, first=resumed + 1)["weightsSha256"] == reference()[0]


def test_a_second_interrupt_ends_at_once(tmp_path, launch):
    run = launch(rig.make_job(tmp_path, workers__target=2, trainer__steps=100000))
    run.read_until("step", step=5)
    run.interrupt()
    run.interrupt()
    assert run.wait() == 130, run.tail()
    rig.until(lambda: not run.left_over(), "every process of the run is gone")


def test_a_coordinator_lost_once_too_often_ends_the_run_and_names_the_checkpoint(tmp_path, launch):
    run = launch(rig.make_job(tmp_path, workers__target=2, trainer__steps=100000, checkpoint__everySteps=10, failurePolicy__maxRestarts=0))
    started = run.read_until("started")
    run.read_until("checkpointSaved")
    os.kill(started["coordinatorPid"], signal.SIGKILL)
    assert run.wait() == 4, run.tail()
    assert "step-" in run.stderr, run.stderr
    rig.until(lambda: not run.left_over(), "every process of the run is gone")


def test_losses_cost_once_per_ring_and_show_up_in_goodput(tmp_path, finish):
    run = finish(rig.make_job(tmp_path, workers__target=3), "--drill", "kill:2@10", "--drill", "kill:1@30")
    rig.check_complete(run)
    assert [e["world"] for e in run.of("ringFormed")] == [3, 2, 1]
    assert len(run.of("recovered")) == 2
    worlds = [e["world"] for e in run.of("step")]
    assert worlds == sorted(worlds, reverse=True) and set(worlds) == {1, 2, 3}


@pytest.mark.parametrize("harm", ["kill", "term"])
def test_a_joiner_has_the_index_of_one_taken_away_at_the_same_step(tmp_path, finish, reference, harm):
    """All indices are taken but for that one, whose process has hardly ended when the join is due."""
    fields = {"workers__target": 3, "workers__max": 3, "workers__min": 3 if harm == "kill" else 2, "trainer__steps": 300}
    run = finish(rig.make_job(tmp_path, **fields), "--drill", f"{harm}:1@40", "--drill", "join@40")
    complete = rig.check_complete(run, last=300, restarted=[1])
    assert complete["weightsSha256"] == reference(trainer__steps=300)[0]
    assert run.the("workerJoined")["worker"] == 1
    assert run.of("ringFormed")[-1]["world"] == 3


def test_a_leave_that_ends_the_run_is_told_before_the_last_word(tmp_path, finish):
    run = finish(rig.make_job(tmp_path, workers__target=2, workers__min=2), "--drill", "term:1@10")
    assert run.code == 6, run.tail()
    assert run.the("workerLeft")["worker"] == 1
    assert run.events[-1]["event"] == "failed", run.tail()


def test_a_run_without_standard_files_trains_all_the_same(tmp_path):
    """As a scheduler may start it: the files that it opens must not be taken for its standard output."""
    job = rig.make_job(tmp_path)
    done = subprocess.run(["sh", "-c", f"exec '{rig.BIN / 'ringmaster'}' run '{job}' <&- >&- 2>&-"], timeout=rig.DEADLINE_S, check=False)
    assert done.returncode == 0
    assert (tmp_path / "checkpoints" / "final" / "manifest.json").exists()


def test_with_min_workers_one_may_leave_when_another_one_is_ordered(tmp_path, finish, reference):
    run = finish(rig.make_job(tmp_path, workers__target=2, workers__min=2, trainer__steps=300),
                 "--drill", "term:1@20", "--drill", "join@20")
    complete = rig.check_complete(run, last=300)
    assert [e["worker"] for e in run.of("workerLeft")] == [1] and run.the("workerJoined")["worker"] == 1, run.tail()
    assert complete["weightsSha256"] == reference(trainer__steps=300)[0]
