"""The trainer's threads under ThreadSanitizer: one computes, one connects and exchanges, and others serve, read and load.

The trainer alone is of the preset `tsan`, so that the other programs keep their speed; Criterion's tests can't begin under it."""

import os
import subprocess

import pytest

import rig

TRAINER = rig.BIN.parents[1] / "tsan/bin/ringmaster-trainer"
pytestmark = [pytest.mark.turns("all"), pytest.mark.slow, pytest.mark.skipif(not TRAINER.exists(), reason="the preset tsan is not built (tools/check --all builds it)")]

FIELDS = {"trainer__steps": 60, "trainer__evaluation__everySteps": 20, "trainer__evaluation__sequences": 8, "trainer__evaluation__holdOut": 0.1}
FEW = {"trainer__model__layers": 1, "trainer__model__width": 16, "trainer__model__context": 16}  # one thread makes lanes and exchange


def watched(folder):
    """Environment of a run whose trainers write each race into a file of its own; no trainer is ended for one."""
    return {"RINGMASTER_TRAINER": str(TRAINER), "TSAN_OPTIONS": f"halt_on_error=0 exitcode=0 log_path={folder}/race"}


def expect_no_race(folder):
    told = "\n".join(path.read_text() for path in sorted(folder.glob("race.*")))
    assert not told, told[:6000]


def test_the_trainer_is_one_that_tells_of_races():
    said = subprocess.run([TRAINER, "--help"], env={**os.environ, "TSAN_OPTIONS": "help=1"}, check=True, capture_output=True, text=True)
    assert "ThreadSanitizer" in said.stdout + said.stderr


@pytest.mark.parametrize("drills, few", [(["kill:1@12", "join@25", "term:0@40"], {}), (["trainer:0@15", "kill:2@30", "join@31"], {}),
                                         (["trainer:0@15", "kill:2@30", "join@31"], FEW)])
def test_losses_leaves_joins_and_checkpoints_race_with_nothing(tmp_path, finish, reference, drills, few):
    fields = {**FIELDS, **few}
    job = rig.make_job(tmp_path, workers__target=3, trainer__threads=2, checkpoint__everySteps=10, failurePolicy__maxRestarts=20, **fields)
    run = finish(job, *[word for drill in drills for word in ("--drill", drill)], env=watched(tmp_path))
    assert run.code == 0 and run.the("complete")["weightsSha256"] == reference(**fields)[0], run.tail()
    expect_no_race(tmp_path)


def test_a_resume_with_shares_races_with_nothing(tmp_path, launch, finish, reference):
    job = rig.make_job(tmp_path, workers__target=2, checkpoint__everySteps=10, **FIELDS)
    run = launch(job, env=watched(tmp_path))
    run.read_until("checkpointSaved")
    run.interrupt()
    assert run.wait() == 130, run.tail()
    again = finish(job, env=watched(tmp_path))
    assert again.the("complete")["weightsSha256"] == reference(**FIELDS)[0], again.tail()
    expect_no_race(tmp_path)
