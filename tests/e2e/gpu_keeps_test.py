"""A GPU's state outlives its trainer, where RINGMASTER_GPU_KEEPS_STATE is set: the agent keeps a descriptor of the memory, and the next
trainer goes on with what lies there, once it has added all of it up. What is not whole is found, and received from others instead.

On the stand-ins, whose memory is a memfd. A worker that is alone has nobody to receive from: it goes on where it was, or begins anew."""

import os
import re
import signal
import struct
from pathlib import Path

import pytest

import rig
from gpu_test import GPUS, JOB, first_one_with, has_kernels, one_undisturbed_worker, told  # noqa: F401 (a fixture)

pytestmark = pytest.mark.skipif(not has_kernels(), reason="built without a CUDA compiler: tools/install-packages --cuda")

KEEPS = {**GPUS, "RINGMASTER_GPU_KEEPS_STATE": "1"}
GOES_ON, NOT_USED = "goes on with the state that the trainer before left", "a GPU's state is not kept"


def received(run, worker):
    """Bytes of states that its trainers received, each."""
    return [int(n) for n in re.findall(rf"trainer {worker}\b.*received a state.* bytes=(\d+)", run.stderr)]


def check_went_on(run, worker):
    assert len(re.findall(rf"trainer {worker}\b.*{GOES_ON}", run.stderr)) == 1, run.tail()
    assert NOT_USED not in run.stderr, run.tail()
    assert run.of("recovered")[0]["stepsRedone"] <= 1, run.tail()


@pytest.mark.parametrize("keeps", [True, False])
def test_the_next_trainer_receives_nothing_where_its_state_was_kept(tmp_path, finish, alone, keeps):
    run = finish(rig.make_job(tmp_path, workers__target=2, workers__min=2, **JOB), "--drill", "trainer:1@4", env=KEEPS if keeps else GPUS)
    assert told(run) == alone, run.tail()
    if keeps:
        check_went_on(run, 1)
        assert not received(run, 1), run.tail()
    else:
        assert GOES_ON not in run.stderr and len(received(run, 1)) == 1, "the control: it is off unless it is asked for"


def test_a_worker_that_is_alone_goes_on_where_it_was(tmp_path, finish, alone):
    run = finish(rig.make_job(tmp_path, **JOB), "--drill", "trainer:0@4", "--drill", "trainer:0@6", env=KEEPS)
    assert told(run) == alone, run.tail()
    assert run.stderr.count(GOES_ON) == 2 and [e["stepsRedone"] <= 1 for e in run.of("recovered")] == [True, True], run.tail()


@pytest.mark.parametrize("fault", ["update-valid:2", "record-written:4"])
def test_killed_at_a_named_point_of_an_update_it_loses_nothing(tmp_path, finish, alone, fault):
    run = finish(rig.make_job(tmp_path, **JOB), env={**KEEPS, "RINGMASTER_FAULT": fault + "@0"})
    assert f"fault point {fault.split(':')[0]}\n" in run.stderr, run.tail()
    assert told(run, restarted=[0]) == alone, run.tail()
    check_went_on(run, 0)


def test_killed_inside_an_updates_kernel_it_loses_nothing(tmp_path, finish, alone):
    env = {**KEEPS, **first_one_with(tmp_path, "sms=1,die:update@4=3600")}
    run = finish(rig.make_job(tmp_path, **JOB), env=env)
    assert "dies in kernel update, which is cut off" in run.stderr, run.tail()
    assert told(run, restarted=[0]) == alone, run.tail()
    check_went_on(run, 0)


def test_after_a_gpu_that_failed_nothing_is_kept(tmp_path, finish, alone):
    env = {**KEEPS, **first_one_with(tmp_path, "sms=1,lost:kernel@700=ECC_UNCORRECTABLE")}
    run = finish(rig.make_job(tmp_path, workers__target=2, **JOB), env=env)
    assert run.code == 0 and run.the("complete")["weightsSha256"] == alone[0], run.tail()
    assert "CUDA_ERROR_ECC_UNCORRECTABLE" in run.stderr and GOES_ON not in run.stderr, run.tail()


def spoil_a_weight(pid):
    """In the device's memory of a stand-in: stamps of the pieces lie first, on a page of their own, then sums, then weights."""
    for fd in os.listdir(f"/proc/{pid}/fd"):
        path = Path(f"/proc/{pid}/fd/{fd}")
        if "stand-in device" not in os.readlink(path):
            continue
        with path.open("r+b") as memory:
            stamps = struct.unpack("<2q", memory.read(16))
            if stamps[0] != stamps[1] or not 1 <= stamps[0] <= 8:
                continue
            memory.seek(2 * 4096 + 1)
            byte = memory.read(1)[0]
            memory.seek(2 * 4096 + 1)
            memory.write(bytes([byte ^ 4]))
            return True
    return False


def test_a_piece_with_other_bits_is_found_and_the_state_received(tmp_path, launch, alone):
    env = {**KEEPS, "RINGMASTER_FAULT": "lane-done:9@0/stop"}
    run = launch(rig.make_job(tmp_path, workers__target=2, workers__min=2, elasticity__stepTimeout="60s", **JOB), env=env)
    pid = next(m["trainerPid"] for m in run.read_until("ringFormed")["members"] if m["worker"] == 0)
    rig.until(lambda: Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T", "the trainer stands still", rig.DEADLINE_S)
    assert spoil_a_weight(pid)
    os.kill(pid, signal.SIGKILL)
    run.wait()
    assert told(run, restarted=[0]) == alone, run.tail()
    assert re.search(rf"{NOT_USED}.*piece 0 of \d+ adds up to", run.stderr) and GOES_ON not in run.stderr, run.tail()
    assert len(received(run, 0)) == 1, run.tail()


def test_an_agent_that_knows_nothing_of_it_changes_nothing(tmp_path, finish, alone):
    """As one of another version, it gives its trainers no shelf."""
    wrapper = tmp_path / "trainer"
    wrapper.write_text(f"#!/bin/bash\ncase \" $* \" in *' --shelf-fd '*) set -- \"${{@:1:$#-2}}\";; esac\nexec '{rig.BIN / 'ringmaster-trainer'}' \"$@\"\n")
    wrapper.chmod(0o755)
    # The other one can't end without it.
    run = finish(rig.make_job(tmp_path, workers__target=2, workers__min=2, **JOB), "--drill", "trainer:1@4", env={**KEEPS, "RINGMASTER_TRAINER": str(wrapper)})
    assert told(run) == alone, run.tail()
    assert GOES_ON not in run.stderr and len(received(run, 1)) == 1, run.tail()
