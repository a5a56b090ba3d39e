"""A newcomer gets the state while the others train on: they make steps whatever it does, and the run ends as an undisturbed one."""

import json
import os
import signal
import urllib.request
from pathlib import Path

import pytest

import rig

STEPS = 200
# 1.6 million parameters: dozens of blocks, and steps of some milliseconds.
FIELDS = {"trainer__steps": STEPS, "trainer__batch__lanes": 8, "trainer__batch__laneSequences": 1, "trainer__model__width": 128, "trainer__model__layers": 8,
          "trainer__model__context": 16}
FEW = 15
FEWER = 80
SHORT = {**FIELDS, "trainer__steps": FEWER}


# 16 million parameters, of which a newcomer gets 190 MB.
LARGE = {"trainer__steps": 16, "trainer__batch__lanes": 8, "trainer__batch__laneSequences": 1, "trainer__model__width": 512, "trainer__model__heads": 8,
         "trainer__model__layers": 5, "trainer__model__context": 16}
PACED = 50_000_000  # bytes a second of each connection


def stands_still(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0] == "T"
    except OSError:
        return False


def status_of(run):
    with urllib.request.urlopen(f"http://{run.the('started')['address']}/v1/status", timeout=rig.DEADLINE_S) as answer:
        return json.load(answer)


def who_stands_still(run):
    found = []
    rig.until(lambda: found.extend(pid for pid in run.left_over() if stands_still(pid)) or found, "the newcomer stands still", rig.DEADLINE_S)
    return found[0]


@pytest.mark.parametrize("block", [2, 11])
@pytest.mark.parametrize("workers, drills", [(2, []), (3, ["--drill", "kill:1@40"])])
def test_the_others_make_their_steps_while_a_newcomer_gets_the_state(tmp_path, launch, reference, workers, drills, block):
    """It stands still in the midst of what it pulls, and is let go when the others have made many steps, and lost one of them."""
    job = rig.make_job(tmp_path, workers__target=workers, workers__min=1, **FIELDS)
    run = launch(job, "--drill", "join@5", *drills, env={"RINGMASTER_LISTEN": "1", "RINGMASTER_FAULT": f"listen-block:{block}@{workers}/stop"})
    run.read_until("ringFormed")
    newcomer = who_stands_still(run)
    run.read_until("step", step=max(status_of(run)["progress"]["step"], 45 if drills else 0) + FEW)
    assert stands_still(newcomer) and not run.of("workerJoined"), run.tail()
    os.kill(newcomer, signal.SIGCONT)
    run.read_until("workerJoined")
    run.wait()
    complete = rig.check_complete(run, last=STEPS)
    assert complete["weightsSha256"] == reference(**FIELDS)[0], run.tail()
    assert run.the("workerJoined")["worker"] == workers
    joined = run.of("recovered")[-1]
    assert joined["cause"] == "WorkerJoined" and joined["stepsRedone"] == 0, run.tail()
    assert run.of("ringFormed")[-1]["world"] == (3 if drills else workers + 1)


@pytest.fixture(name="paced", scope="module")
def connections_of_a_slow_network(tmp_path_factory):
    return {"LD_PRELOAD": str(rig.preloadable("paced", tmp_path_factory.mktemp("paced"))), "PACED_BYTES": str(PACED)}


@pytest.mark.slow
@pytest.mark.parametrize("drills", [[], ["--drill", "kill:1@9"]])
def test_over_a_slow_network_a_large_state_comes_while_the_others_make_their_steps(tmp_path, finish, reference, paced, drills):
    """190 MB over two connections of 50 MB/s, beside a ring that goes over such, too: it takes some steps, and at the end of them nobody waits."""
    job = rig.make_job(tmp_path, workers__target=2, workers__min=1, trainer__ringStreams=1, **LARGE)
    run = finish(job, "--drill", "join@2", *drills, env={"RINGMASTER_LISTEN": "1", **paced})
    assert rig.check_complete(run, last=LARGE["trainer__steps"])["weightsSha256"] == reference(**LARGE)[0], run.tail()
    joined = next(event for event in run.of("recovered") if event["cause"] == "WorkerJoined")
    assert joined["stateMs"] == 0 and joined["stepsRedone"] == 0, run.tail()
    assert "has heard all" in run.stderr and run.the("workerJoined")["step"] > 3, run.tail()


def test_the_run_ends_though_a_newcomer_stands_still(tmp_path, launch, reference):
    """Nobody waits for it, neither for a step nor at the end."""
    job = rig.make_job(tmp_path, workers__target=2, workers__min=1, **SHORT)
    run = launch(job, "--drill", "join@5", env={"RINGMASTER_LISTEN": "1", "RINGMASTER_FAULT": "listen-block:2@2/stop"})
    run.read_until("ringFormed")
    who_stands_still(run)
    assert run.wait() == 0, run.tail()
    assert rig.check_complete(run, last=FEWER)["weightsSha256"] == reference(**SHORT)[0], run.tail()
    assert not run.of("workerJoined") and run.of("ringFormed")[-1]["world"] == 2, run.tail()
    rig.until(lambda: not run.left_over(), "every process of the run is gone", rig.DEADLINE_S)


def test_all_wait_for_a_newcomer_where_they_are_told_to(tmp_path, finish, reference):
    run = finish(rig.make_job(tmp_path, workers__target=2, **SHORT), "--drill", "join@5", env={"RINGMASTER_LISTEN": "0"})
    assert rig.check_complete(run, last=FEWER)["weightsSha256"] == reference(**SHORT)[0], run.tail()
    assert "has heard all" not in run.stderr and run.the("workerJoined")["worker"] == 2, run.tail()


def test_where_too_few_are_left_a_newcomer_gets_the_state_while_all_wait(tmp_path, launch, reference):
    job = rig.make_job(tmp_path, workers__target=2, workers__min=2, **SHORT)
    run = launch(job, "--drill", "join@5", "--drill", "kill:1@40", env={"RINGMASTER_LISTEN": "1", "RINGMASTER_FAULT": "listen-block:2@2/stop"})
    newcomer = who_stands_still(run)
    run.read_until("workerLost", worker=1)
    run.read_until("waiting")
    assert stands_still(newcomer), run.tail()
    os.kill(newcomer, signal.SIGCONT)
    run.wait()
    assert rig.check_complete(run, last=FEWER)["weightsSha256"] == reference(**SHORT)[0], run.tail()
    assert run.of("ringFormed")[-1]["world"] == 2 and run.the("workerJoined")["worker"] == 2, run.tail()
