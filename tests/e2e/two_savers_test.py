"""Two who save the same step of the same place: one valid checkpoint comes of it."""

import os
import signal
import subprocess
from pathlib import Path

import rig

FIELDS = {"workers__target": 2, "checkpoint__everySteps": 10, "checkpoint__keep": 100}


def check_all_valid(s3):
    """Every checkpoint that is listed verifies, byte by byte."""
    done = subprocess.run([str(rig.BIN / "ringmaster"), "checkpoint", "verify", s3.uri], env={**os.environ, **s3.env},
                          capture_output=True, text=True, timeout=rig.DEADLINE_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def signal_all(pids, signo):
    for pid in pids:
        try:
            os.kill(pid, signo)
        except ProcessLookupError:
            pass


def stopped(pids):
    return [pid for pid in pids if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T"]


def test_two_whole_runs_that_save_the_same_steps_end_with_one_valid_checkpoint_of_each(tmp_path, launch, s3, reference):
    """The first stands still until the other has taken the place over, and then goes on as if nothing had been: it saves nothing
    until the other has ended, takes the place again then, and finds the last checkpoint there."""
    first = launch(rig.make_job(tmp_path / "one", checkpoint__uri=s3.uri, trainer__steps=200, **FIELDS), env=s3.env)
    first.read_until("checkpointSaved", step=lambda step: step >= 20)
    zombies = rig.marked_processes(first.mark)
    signal_all(zombies, signal.SIGSTOP)
    second = launch(rig.make_job(tmp_path / "two", checkpoint__uri=s3.uri, trainer__steps=200, **FIELDS), env=s3.env)
    second.read_until("step")
    signal_all(zombies, signal.SIGCONT)
    second.wait()
    resumed = second.the("resumed")
    complete = rig.check_complete(second, last=200, first=resumed["step"] + 1)
    assert complete["weightsSha256"] == reference(trainer__steps=200)[0]
    assert first.wait() == 0, first.tail()
    assert first.the("complete")["weightsSha256"] == complete["weightsSha256"]
    assert "belongs to another run now" in first.stderr, first.stderr
    check_all_valid(s3)
    assert "final" in s3.checkpoints() and len(s3.checkpoints()) >= 15
    assert s3.uploads() == []


def test_a_coordinators_successor_that_has_a_step_published_again_ends_with_one_valid_checkpoint(tmp_path, launch, s3, reference):
    """The first publisher stands still before it writes the manifest; it goes on when another one has."""
    job = rig.make_job(tmp_path, checkpoint__uri=s3.uri, trainer__steps=400, **FIELDS)
    run = launch(job, "--drill", "coordinator@60", env={**s3.env, "RINGMASTER_FAULT": "before-manifest:2@0/stop"})
    rig.until(lambda: stopped(rig.marked_processes(run.mark)), "the publisher stands still", rig.DEADLINE_S)
    (agent,) = stopped(rig.marked_processes(run.mark))
    run.read_until("recovered", cause="CoordinatorLost")
    run.read_until("checkpointSaved", step=lambda step: step > 60)
    signal_all([agent], signal.SIGCONT)
    run.wait()
    complete = rig.check_complete(run, last=400)
    assert complete["weightsSha256"] == reference(trainer__steps=400)[0]
    saved = [event["step"] for event in run.of("checkpointSaved")]
    assert sorted(set(saved)) == saved, saved
    check_all_valid(s3)
