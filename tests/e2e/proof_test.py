"""Bits that flip on the way of a step's sum: seen before anybody commits it, told by worker and step, and the run ends as an undisturbed one."""

import pytest

import rig
from fault_points import FLIPS

STEPS = 60
CASES = [(point, setting) for point, settings in FLIPS.items() for setting in settings]


def struck(run, point):
    return run.stderr.count(f"fault point {point}\n")


@pytest.mark.parametrize("point, setting", CASES)
def test_a_bit_that_flips_in_a_sum_is_never_committed(finish, tmp_path, reference, point, setting):
    expected_hash, losses = reference(trainer__steps=STEPS)
    job = rig.make_job(tmp_path, workers__target=3, trainer__steps=STEPS, failurePolicy__maxRestarts=0)
    run = finish(job, env={"RINGMASTER_FAULT": f"{point}{setting}/flips"})
    assert struck(run, point) == 1, run.tail()
    assert run.code == 0, run.tail()
    told = run.of("proofFailed")
    assert told, run.tail()
    for event in told:
        assert event["cause"].startswith(("the words of step ", "the header of step ")), event
        assert f"of step {event['step'] + 1} " in event["cause"], event
    assert not run.of("workerLost") and not run.of("workerFailed"), "nobody is to blame, as far as can be seen"
    assert [event["loss"] for event in run.of("step")] == losses, run.tail()
    assert run.the("complete")["weightsSha256"] == expected_hash and run.the("complete")["exact"], run.tail()
