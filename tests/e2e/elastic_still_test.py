"""Programs of mode Elastic that stand still, and drills on them that no other story has: the others go on, and the weights are those of a
run that nobody disturbed."""

import os
import signal

import pytest

import rig
from elastic_program_test import (SOON, check_ended_with, check_survivors, hash_of_an_undisturbed_run, said, slow,  # noqa: F401  (fixtures)
                                  squares_job, squares_program)
from launch_test import alive
from proof_test import OWN

STEPS = 80


def state_of(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
        return stat.read().rsplit(")", 1)[1].split()[0]


def with_child(tmp_path, squares):
    """squares, and beside it a child in its group: a loader's, say."""
    script = tmp_path / "with_child.sh"
    script.write_text(f"#!/bin/sh\nsleep 600 &\necho $! >>{tmp_path}/children\nexec {squares} \"$@\"\n")
    script.chmod(0o755)
    return script


def stop_program(run, worker, step):
    """The whole group of it, and returns when it stands still."""
    run.read_until("step", step=step)
    pid = next(line["pid"] for line in said(run, "begin") if line["worker"] == worker)
    assert os.getpgid(pid) == pid, "a program leads its group"
    os.killpg(pid, signal.SIGSTOP)
    rig.until(lambda: state_of(pid) == "T", "the program stands still")
    return pid


def test_a_program_that_stands_still_is_ended_with_its_group_and_the_others_go_on(launch, tmp_path, squares, hash_of):
    """Its trainer does not stand still: it waits for the program, and shows that no task is done."""
    run = launch(squares_job(tmp_path, with_child(tmp_path, squares), *slow(), steps=STEPS, workers=3, elasticity__stepTimeout="2s", **SOON))
    stopped = stop_program(run, 1, 9)
    run.wait()
    check_ended_with(run, hash_of(STEPS))
    [lost] = run.of("workerLost")
    assert lost["worker"] == 1 and "hangs" in lost["cause"], run.tail()
    assert not alive(stopped)
    check_survivors(run, {0, 2})
    again = [line["pid"] for line in said(run, "begin") if line["worker"] == 1]
    assert again[0] == stopped and len(again) == 2, run.tail()
    children = [int(line) for line in (tmp_path / "children").read_text(encoding="utf-8").split()]
    assert len(children) == 4
    rig.until(lambda: not any(alive(pid) for pid in children), "the end of every child")


def test_a_program_that_is_let_go_again_goes_on_where_it_was(launch, tmp_path, squares, hash_of):
    run = launch(squares_job(tmp_path, squares, *slow(), steps=STEPS, workers=3, elasticity__stepTimeout="10m"))
    stopped = stop_program(run, 1, 9)
    os.killpg(stopped, signal.SIGCONT)
    run.wait()
    check_ended_with(run, hash_of(STEPS))
    assert len(run.of("ringFormed")) == 1 and not run.of("workerLost"), run.tail()
    check_survivors(run, range(3))


def test_a_trainer_that_hangs_on_order_is_ended_with_its_program(finish, tmp_path, squares, hash_of):
    run = finish(squares_job(tmp_path, squares, *slow(), steps=STEPS, workers=3, elasticity__stepTimeout="2s",
                             failurePolicy__maxRestarts=0, **SOON), "--drill", "hang:1@9")
    check_ended_with(run, hash_of(STEPS))
    [lost] = run.of("workerLost")
    assert lost["worker"] == 1 and "its trainer hangs" in lost["cause"] and not run.of("workerFailed"), run.tail()
    check_survivors(run, {0, 2})


@pytest.mark.parametrize("worker", [0, 2])
def test_a_bit_that_flips_in_a_programs_sum_is_told_and_never_committed(finish, tmp_path, squares, hash_of, worker):
    run = finish(squares_job(tmp_path, squares, *slow(), steps=STEPS, workers=3, failurePolicy__maxRestarts=0), "--drill", f"corrupt:{worker}@9")
    check_ended_with(run, hash_of(STEPS))
    named = [event for event in run.of("proofFailed") if event["cause"].startswith(OWN)]
    assert [event["worker"] for event in named] == [worker] and not run.of("workerFailed"), run.tail()
    check_survivors(run, range(3))
