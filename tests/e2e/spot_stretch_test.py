"""The busiest hour of a trace of spot machines as real processes, a minute of the trace in a second: one hash whatever goes and comes.

The trace's clock is the job's step, as the time that a machine takes for one is nobody's to promise: STEPS_A_SECOND make about a
minute of it where two processors do nothing else. tools/bench spot plays such a stretch by time, and measures."""

import sys
from pathlib import Path

import pytest

import rig

sys.path.append(str(Path(__file__).resolve().parents[2] / "tools"))

import bench_spot as bench  # noqa: E402  (its folder is on the path only now)
import spot_trace  # noqa: E402

pytestmark = pytest.mark.turns("all")

HOUR, SECONDS, STEPS_A_SECOND = 3600, 60, 50
STEPS = SECONDS * STEPS_A_SECOND
JOB = {"trainer__steps": STEPS, "workers__max": bench.REAL_MOST, "checkpoint__everySteps": 500}


def busiest_hour():
    moments = spot_trace.of_name("p3")
    hours = [spot_trace.stretch(moments, begin, HOUR) for begin in range(0, int(moments[-1][0]) - HOUR, HOUR)]
    return bench.scaled(max(hours, key=lambda hour: len(bench.drills(bench.scaled(hour, HOUR / SECONDS), "term", 1))), HOUR / SECONDS)


def by_step(drill):
    what, second = drill.removesuffix("s").split("@")
    return f"{what}@{max(1, int(float(second) * STEPS_A_SECOND))}"


@pytest.mark.parametrize("kind, redone", [("term", 0), ("kill", 1)], ids=["told", "untold"])
def test_a_busy_hour_of_spot_machines_changes_no_bit_and_who_is_told_loses_no_step(tmp_path, finish, reference, kind, redone):
    moments = busiest_hour()
    plan = [by_step(drill) for drill in bench.drills(moments, kind, 1)]
    go, come = ([drill for drill in plan if drill.startswith(what)] for what in (kind, "join"))
    assert len(go) >= 4 and len(come) >= 4, plan
    run = finish(rig.make_job(tmp_path, workers__target=moments[0][1], **JOB), *(word for drill in plan for word in ("--drill", drill)))
    complete = rig.check_complete(run, last=STEPS)
    weights, losses = reference(**JOB)
    assert complete["weightsSha256"] == weights, run.tail()
    assert [event["loss"] for event in run.of("step")] == losses, run.tail()
    assert [event["spec"] for event in run.of("drill")] == plan, run.tail()
    assert len(run.of("workerLeft" if kind == "term" else "workerLost")) == len(go), run.tail()
    assert all(event["stepsRedone"] <= redone for event in run.of("recovered")), run.tail()
    assert not (run.of("workerLost") if kind == "term" else []), run.tail()
