"""What a worker had computed of a step when its ring broke is not computed again: the next ring goes on with it."""

import json
import os
import signal
import urllib.request
from pathlib import Path

import pytest

import rig

FIELDS = {"trainer__steps": 40, "trainer__batch__lanes": 12}  # of which each of three workers has four
LONG = {"trainer__steps": 14, "trainer__batch__lanes": 12, "trainer__batch__laneSequences": 16, "trainer__model__width": 64,
        "trainer__model__layers": 4}  # lanes of some tens of milliseconds


def status_of(run):
    with urllib.request.urlopen(f"http://{run.the('started')['address']}/v1/status", timeout=rig.DEADLINE_S) as answer:
        return json.load(answer)


def stands_still(pid):
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0] == "T"


def check_same(run, reference, fields, least):
    run.read_until("recovered")
    dealt = status_of(run)["lanesDealt"]
    run.wait()
    assert run.code == 0, run.tail()
    rig.check_steps(run, last=fields["trainer__steps"])
    assert run.the("complete")["weightsSha256"] == reference(**fields)[0], run.tail()
    assert [event["stepsRedone"] for event in run.of("recovered")][0] == 0, run.tail()
    assert least <= dealt < fields["trainer__batch__lanes"], dealt


@pytest.mark.parametrize("workers, whom", [(3, "trainerPid"), (3, "agentPid"), (2, "agentPid"), (5, "agentPid")])
def test_lanes_of_one_that_dies_are_computed_by_others_and_theirs_are_not_again(tmp_path, launch, reference, workers, whom):
    stands = f"lane-done:{10 * (12 // workers) + 2}@1/stop"  # its second lane of a step behind the first ones, which may be rescaled
    run = launch(rig.make_job(tmp_path, workers__target=workers, **FIELDS), env={"RINGMASTER_FAULT": stands})
    run.read_until("ringFormed")
    member = next(m for m in run.the("ringFormed")["members"] if m["worker"] == 1)
    rig.until(lambda: stands_still(member["trainerPid"]), "worker 1 stands still", rig.DEADLINE_S)
    os.kill(member[whom], signal.SIGKILL)
    check_same(run, reference, FIELDS, 12 // workers)


def test_a_worker_that_dies_while_the_others_are_in_a_lane_costs_them_none(tmp_path, launch, reference):
    run = launch(rig.make_job(tmp_path, workers__target=3, **LONG), env={"RINGMASTER_FAULT": "lane-done:42@2"})
    check_same(run, reference, LONG, 4)
