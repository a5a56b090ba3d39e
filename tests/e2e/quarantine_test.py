"""A worker that fails again and again is put aside; the others go on, or the job ends where they are too few."""

import os
import signal

import rig

WRAPPER = """#!/bin/sh
# Stands in for the trainer: under worker 1 it dies at once, under the others it is the trainer.
if tr '\\0' ' ' < /proc/$PPID/cmdline | grep -q -e '--worker 1 '; then
    kill -KILL $$
fi
exec {trainer} "$@"
"""


def kill_again_and_again(run, worker, times):
    """Kills the worker's trainer each time that it is in a ring with a new one."""
    killed = set()
    for _ in range(times):
        ring = run.read_until("ringFormed", members=lambda members: any(
            m["worker"] == worker and m["trainerPid"] not in killed for m in members))
        run.read_until("step")
        pid = next(m["trainerPid"] for m in ring["members"] if m["worker"] == worker)
        killed.add(pid)
        os.kill(pid, signal.SIGKILL)


def test_a_worker_whose_trainer_never_comes_up_is_put_aside_and_the_others_finish(tmp_path, finish, reference):
    wrapper = tmp_path / "trainer"
    wrapper.write_text(WRAPPER.format(trainer=rig.BIN / "ringmaster-trainer"))
    wrapper.chmod(0o755)
    run = finish(rig.make_job(tmp_path, workers__target=3, failurePolicy__maxRestarts=2),
                 env={"RINGMASTER_TRAINER": str(wrapper)})
    complete = rig.check_complete(run)
    told = run.the("workerQuarantined")
    assert told["worker"] == 1 and "maxRestarts allows 2" in told["cause"] and "signal 9" in told["cause"], told
    assert {e["world"] for e in run.of("ringFormed")} == {2}
    assert complete["weightsSha256"] == reference()[0]


def test_a_worker_that_dies_in_every_ring_is_put_aside_and_the_others_finish(tmp_path, launch, reference):
    run = launch(rig.make_job(tmp_path, workers__target=3, trainer__steps=1000, failurePolicy__maxRestarts=2))
    kill_again_and_again(run, 1, 3)
    assert run.read_until("workerQuarantined")["worker"] == 1
    run.wait()
    complete = rig.check_complete(run, last=1000, restarted=[1])
    assert run.of("ringFormed")[-1]["world"] == 2
    assert complete["weightsSha256"] == reference(trainer__steps=1000)[0]


def test_with_too_few_left_the_state_is_saved_and_the_job_ends_with_5(tmp_path, launch, finish, reference):
    fields = {"workers__target": 2, "workers__min": 2, "trainer__steps": 1000}
    run = launch(rig.make_job(tmp_path, failurePolicy__maxRestarts=1, **fields))
    kill_again_and_again(run, 1, 2)
    assert run.wait() == 5, run.tail()
    failed = run.the("failed")
    assert "worker 1 is in quarantine" in failed["reason"] and "1 is left of the 2 that are needed" in failed["reason"], failed
    last = run.of("step")[-1]["step"]
    assert run.of("checkpointSaved")[-1]["step"] == last, run.tail()

    again = finish(rig.make_job(tmp_path, **fields))
    assert again.the("resumed")["step"] == last
    complete = rig.check_complete(again, first=last + 1, last=1000)
    assert complete["weightsSha256"] == reference(trainer__steps=1000)[0]
