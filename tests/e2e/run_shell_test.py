"""`ringmaster run` by itself, around a stand-in agent: what it tells its children, and how it takes their ends."""

import json
import os
import shutil
import signal
from pathlib import Path

import pytest

import rig

STEPS = 60


@pytest.fixture(name="start")
def start_with_stand_ins(tmp_path, monkeypatch, launch):
    """start(*arguments, mood="", **fields): a run whose agents are tests/e2e/fake_agent.py; run.heard() is what the
    coordinator was told."""
    programs = tmp_path / "bin"
    programs.mkdir()
    shutil.copy2(rig.BIN / "ringmaster", programs / "ringmaster")
    shutil.copy2(Path(__file__).parent / "fake_agent.py", programs / "ringmaster-agent")
    (programs / "ringmaster-agent").chmod(0o755)
    monkeypatch.setattr(rig, "BIN", programs)
    log = tmp_path / "heard"

    def start(*arguments, mood="", **fields):
        job = rig.make_job(tmp_path, **{"workers__target": 3, "workers__max": 4, "trainer__steps": STEPS, **fields})
        run = launch(job, *arguments, env={"FAKE_MOOD": mood, "FAKE_HEARD": str(log)})
        run.heard = lambda: [json.loads(line) for line in log.read_text().splitlines()]
        return run

    return start


def test_the_coordinators_events_are_shown_and_the_internal_ones_are_not(start):
    run = start("--drill", "term:2@10")
    assert run.wait() == 0, run.tail()
    assert run.events[0]["event"] == "started" and run.events[0]["coordinatorPid"] > 0
    rig.check_steps(run, last=STEPS)
    assert not run.of("listening", "released")
    assert run.events[-1]["event"] == "complete"
    assert not run.left_over()


def test_a_drill_is_announced_before_it_is_done_and_the_death_is_told_after(start):
    run = start("--drill", "kill:1@10", "--drill", "join@20")
    assert run.wait() == 0, run.tail()
    heard = run.heard()
    acts = [i for i, c in enumerate(heard) if c.get("command") == "act"]
    assert [(heard[i]["cause"], heard[i]["worker"]) for i in acts] == [("WorkerLost", 1), ("WorkerJoined", 1)]
    assert all(heard[i]["at"] > 0 for i in acts)
    before = [c for c in heard[:acts[0]] if c.get("command") == "expect"][-1]
    after = [c for c in heard[acts[0]:] if c.get("command") == "expect"][0]
    assert [w["worker"] for w in before["workers"]] == [0, 1, 2]
    assert [w["worker"] for w in after["workers"]] == [0, 2]
    assert heard[acts[1] - 1]["workers"][1] == {"worker": 1, "attempt": 1}, "it is expected before it comes"
    assert [e["spec"] for e in run.of("drill")] == ["kill:1@10", "join@20"]
    assert [e["step"] for e in run.of("drill")] == [10, 20]


def test_a_worker_that_dies_undrilled_comes_again_as_the_next_attempt(start):
    run = start(trainer__steps=200)
    ring = run.read_until("ringFormed")
    os.kill(next(m["agentPid"] for m in ring["members"] if m["worker"] == 2), signal.SIGKILL)
    assert run.wait() == 0, run.tail()
    assert {"hello": 2, "attempt": 1} in run.heard()
    assert run.the("workerJoined")["worker"] == 2


def test_a_coordinator_that_dies_ends_the_run_with_a_word_about_the_checkpoint(start):
    run = start(mood="crash", failurePolicy__maxRestarts=0, elasticity__lostAfter="200ms", elasticity__heartbeat="50ms")
    assert run.wait() == 4, run.tail()
    assert run.events[-1]["event"] == "failed" and run.events[-1]["exitCode"] == 4
    assert "signal 9" in run.stderr and "checkpoint" in run.stderr
    assert not run.left_over()


def test_a_coordinator_that_never_listens_ends_the_run_with_its_code(start):
    run = start(mood="silent")
    assert run.wait() == 4, run.tail()
    assert "no room at the inn" in run.stderr and "did not start" in run.stderr
    assert [e["event"] for e in run.events] == ["failed"]


def test_workers_that_never_come_up_are_not_started_for_ever(start):
    run = start(mood="die:4", failurePolicy__maxRestarts=3)
    assert run.wait() == 5, run.tail()
    assert run.events[-1] == {**run.events[-1], "event": "failed", "exitCode": 5}
    assert "maxRestarts" in run.stderr
    assert not run.left_over()


@pytest.mark.parametrize("code", [2, 3])
def test_a_worker_that_finds_job_or_data_wrong_ends_the_run_with_its_code(start, code):
    run = start(mood=f"die:{code}")
    assert run.wait() == code, run.tail()
    assert run.events[-1]["event"] == "failed" and "a worker that can't go on" in run.stderr


def test_ctrl_c_asks_and_a_second_one_ends_at_once(start):
    polite = start(trainer__steps=100000)
    polite.read_until("step", step=5)
    polite.interrupt()
    assert polite.wait() == 130, polite.tail()
    assert polite.events[-1]["event"] == "interrupted"
    deaf = start("--overwrite", mood="deaf", trainer__steps=100000)
    deaf.read_until("step", step=5)
    deaf.interrupt()
    rig.until(lambda: any(c.get("command") == "interrupt" for c in deaf.heard()), "the interrupt is heard")

    def again():
        deaf.interrupt()
        return deaf.process.poll() is not None

    rig.until(again, "a later interrupt ends it")
    assert deaf.wait() == 130, deaf.tail()
    assert not deaf.left_over()


def test_one_wish_that_comes_as_two_signals_still_saves(start):
    run = start(trainer__steps=100000)
    run.read_until("step", step=5)
    run.interrupt()
    run.process.send_signal(signal.SIGTERM)
    assert run.wait() == 130, run.tail()
    assert run.events[-1]["event"] == "interrupted"


def test_sigkill_of_run_leaves_nobody(start):
    run = start(trainer__steps=100000)
    run.read_until("step", step=5)
    os.kill(run.pid, signal.SIGKILL)
    rig.until(lambda: not run.left_over(), "every process of the run is gone")


def test_what_is_no_event_is_said_and_passed_over(start):
    run = start(mood="rubbish")
    assert run.wait() == 0, run.tail()
    rig.check_steps(run, last=STEPS)
    assert "can't be read" in run.stderr
    assert not run.of("moonrise")


def test_nothing_of_the_job_is_written_to_a_disk(start, tmp_path):
    before = set(Path("/tmp").iterdir())
    run = start(trainer__steps=100000)
    run.read_until("step", step=5)
    paths = {word for pid in run.left_over() for word in Path(f"/proc/{pid}/cmdline").read_text().split("\0") if "/" in word}
    files = {p for p in paths if p.startswith("/proc/")}
    assert len(files) == 2, paths
    assert {p for p in set(Path("/tmp").iterdir()) - before if p.name.startswith("ringmaster")} == set()
    run.interrupt()
    assert run.wait() == 130
