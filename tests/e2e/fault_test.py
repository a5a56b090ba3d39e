"""A crash at every fault point: the run goes on, or the next one goes on where it ended, to the same weights."""

import os
import signal
import subprocess

import pytest

import rig
from fault_points import CASES

STEPS = 160
FIELDS = {"trainer__steps": STEPS, "trainer__evaluation__everySteps": 40, "trainer__evaluation__sequences": 16,
          "trainer__evaluation__holdOut": 0.1}
SAVING = {"checkpoint__everySteps": 25, "checkpoint__keep": 2, "failurePolicy__maxRestarts": 20}
DRILLS = ["--drill", "trainer:2@12", "--drill", "kill:1@30", "--drill", "join@45", "--drill", "join@60"]


def job_in(folder, **fields):
    return rig.make_job(folder, **{"workers__target": 3, **FIELDS, **SAVING, **fields})


def check_struck(run, fault):
    point = fault.split(":")[0].split("@")[0]
    assert f"fault point {point}\n" in run.stderr, f"nobody died at {fault}: {run.tail()}"


def check_told(run, losses):
    """What was told before an end of any kind is what the undisturbed run tells."""
    steps = [event["step"] for event in run.of("step")]
    assert steps == list(range(steps[0], steps[0] + len(steps))) if steps else True, run.tail()
    for event in run.of("step"):
        assert event["loss"] == losses[event["step"] - 1], f"step {event['step']} is another one: {run.tail()}"


def check_same_end(run, job, finish, reference):
    """Code 0, or killed: then one more run, with nothing in its way, gets to the end."""
    expected_hash, losses = reference(**FIELDS)
    check_told(run, losses)
    if run.code == -signal.SIGKILL:
        rig.until(lambda: not run.left_over(), "every process of the run is gone", rig.DEADLINE_S)
        run = finish(job)
        check_told(run, losses)
    assert run.code == 0, run.tail()
    complete = run.the("complete")
    assert complete["step"] == STEPS and complete["weightsSha256"] == expected_hash, run.tail()
    assert rig.weights_sha256(rig.folder_of(complete["uri"])) == expected_hash
    rig.until(lambda: not run.left_over(), "every process of the run is gone", rig.DEADLINE_S)


def busy(tmp_path, finish, launch, reference, fault, more=None):
    """Three workers that save and evaluate; one of their trainers dies, one worker is lost, two come."""
    job = job_in(tmp_path)
    run = finish(job, *DRILLS, env={"RINGMASTER_FAULT": fault, **(more or {})})
    check_struck(run, fault)
    assert run.code == 0, run.tail()
    rig.check_steps(run, last=STEPS)
    check_same_end(run, job, finish, reference)


def waiting(tmp_path, finish, launch, reference, fault):
    """As busy, but newcomers get the state while all wait."""
    busy(tmp_path, finish, launch, reference, fault, {"RINGMASTER_LISTEN": "0"})


def heard(tmp_path, finish, launch, reference, fault):
    """Two that train, and one that comes and dies while it gets their state."""
    job = job_in(tmp_path, workers__target=2)
    run = finish(job, "--drill", "join@5", env={"RINGMASTER_FAULT": fault, "RINGMASTER_LISTEN": "1"})
    check_struck(run, fault)
    assert run.code == 0, run.tail()
    rig.check_steps(run, last=STEPS)
    check_same_end(run, job, finish, reference)


def pair(tmp_path, finish, launch, reference, fault):
    """Two workers, of whom one dies in the middle of an exchange; nobody else could have what it lacks."""
    job = job_in(tmp_path, workers__target=2)
    run = finish(job, env={"RINGMASTER_FAULT": fault})
    check_struck(run, fault)
    assert run.code == 0, run.tail()
    rig.check_steps(run, last=STEPS)
    check_same_end(run, job, finish, reference)


def alone(tmp_path, finish, launch, reference, fault):
    """The same, but `run` itself is what dies."""
    job = job_in(tmp_path)
    run = finish(job, *DRILLS, env={"RINGMASTER_FAULT": fault})
    check_struck(run, fault)
    assert run.code == -signal.SIGKILL, run.tail()
    check_same_end(run, job, finish, reference)


def saved(launch, job, env=None):
    """A run that was interrupted once it had saved three times."""
    run = launch(job, env=env)
    for _ in range(3):
        run.read_until("checkpointSaved")
    run.interrupt()
    assert run.wait() == 130, run.tail()


def resumed(tmp_path, finish, launch, reference, fault):
    job = job_in(tmp_path)
    saved(launch, job)
    run = finish(job, env={"RINGMASTER_FAULT": fault})
    check_struck(run, fault)
    check_same_end(run, job, finish, reference)


def again(tmp_path, finish, launch, reference, fault):
    """A run of what is complete reads it all before it says so; dying in that changes nothing."""
    job = job_in(tmp_path)
    first = finish(job)
    assert first.code == 0, first.tail()
    complete = first.the("complete")
    run = finish(job, env={"RINGMASTER_FAULT": fault})
    check_struck(run, fault)
    assert run.code == -signal.SIGKILL, run.tail()
    run = finish(job)
    assert run.code == 0 and run.the("complete")["weightsSha256"] == complete["weightsSha256"], run.tail()


def anew(tmp_path, finish, launch, reference, fault):
    """--overwrite that dies while it deletes: what is left is whole, or nothing."""
    job = job_in(tmp_path)
    saved(launch, job)
    run = finish(job, "--overwrite", env={"RINGMASTER_FAULT": fault})
    check_struck(run, fault)
    assert run.code == -signal.SIGKILL, run.tail()
    check_same_end(run, job, finish, reference)


def damaged(tmp_path, finish, launch, reference, fault):
    """A step whose checkpoint is damaged is saved again: the old manifest makes way, and whoever does that dies."""
    job = job_in(tmp_path, checkpoint__keep=3)
    saved(launch, job)
    for newest in sorted((tmp_path / "checkpoints").glob("step-*/model.safetensors"))[-2:]:
        with open(newest, "r+b") as file:
            file.seek(-64, os.SEEK_END)
            file.write(b"\xff" * 32)
    run = finish(job, env={"RINGMASTER_FAULT": fault})
    check_struck(run, fault)
    check_same_end(run, job, finish, reference)
    assert not list((tmp_path / "checkpoints").glob("*/manifest.damaged.json")), "it goes once the new one stands"


def generated(tmp_path, finish, launch, reference, fault):
    """Whoever reads a model and dies leaves it as it was, and what was said stands as it would have."""
    complete = rig.check_complete(finish(rig.make_job(tmp_path)))
    folder = rig.folder_of(complete["uri"])
    command = [str(rig.BIN / "ringmaster"), "generate", str(folder), "--prompt", "the ring ", "--tokens", "20"]
    killed = subprocess.run(command, env={**os.environ, "RINGMASTER_FAULT": fault}, capture_output=True,
                            timeout=rig.DEADLINE_S, check=False)
    assert killed.returncode == -signal.SIGKILL, killed
    whole = subprocess.run(command, capture_output=True, timeout=rig.DEADLINE_S, check=False)
    assert whole.returncode == 0 and whole.stdout.startswith(killed.stdout), (killed, whole)
    assert len(killed.stdout) < len(whole.stdout)
    assert rig.weights_sha256(folder) == complete["weightsSha256"] == reference()[0]


def bucket(tmp_path, finish, _launch, reference, fault, s3):
    """As busy, into a bucket; what was told to be saved is there and whole, and what the dead left behind is not."""
    job = job_in(tmp_path, checkpoint__uri=s3.uri)
    run = finish(job, *DRILLS, env={**s3.env, "RINGMASTER_FAULT": fault})
    check_struck(run, fault)
    complete = rig.check_complete(run, last=STEPS, restarted=range(8))
    assert complete["weightsSha256"] == reference(**FIELDS)[0]
    done = subprocess.run([str(rig.BIN / "ringmaster"), "checkpoint", "verify", s3.uri], env={**os.environ, **s3.env},
                          capture_output=True, text=True, timeout=rig.DEADLINE_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    folders = {name.split("/")[0] for name in s3.names() if "/" in name}
    assert folders == set(s3.checkpoints()), "pieces of a checkpoint that never came to be are still there"
    assert s3.uploads() == []


def fetched(tmp_path, finish, launch, reference, fault, s3):
    """Resumed from a bucket, where each worker fetches a share and one of them dies in the middle of it."""
    job = job_in(tmp_path, checkpoint__uri=s3.uri)
    saved(launch, job, s3.env)
    run = finish(job, env={**s3.env, "RINGMASTER_FAULT": fault})
    check_struck(run, fault)
    assert run.code == 0, run.tail()
    check_told(run, reference(**FIELDS)[1])
    complete = run.the("complete")
    assert complete["step"] == STEPS and complete["weightsSha256"] == reference(**FIELDS)[0], run.tail()
    rig.until(lambda: not run.left_over(), "every process of the run is gone", rig.DEADLINE_S)
    assert s3.uploads() == []


STORIES = {story.__name__: story for story in (busy, waiting, heard, pair, alone, resumed, again, anew, damaged, generated)}
BUCKET_STORIES = {story.__name__: story for story in (bucket, fetched)}


@pytest.mark.parametrize("point, case", CASES, ids=[f"{case.story}-{point}{case.setting}" for point, case in CASES])
@pytest.mark.slow
def test_a_crash_at_a_fault_point_changes_no_bit(request, tmp_path, finish, launch, reference, point, case):
    fault = point + case.setting
    if case.story in BUCKET_STORIES:
        BUCKET_STORIES[case.story](tmp_path, finish, launch, reference, fault, request.getfixturevalue("s3"))
    else:
        STORIES[case.story](tmp_path, finish, launch, reference, fault)
