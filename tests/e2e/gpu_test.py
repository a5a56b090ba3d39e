"""Trainers on GPUs: each finds a stand-in for NVIDIA's driver and for cuBLASLt by its path (tests/cuda_rig). The ring sums what lies in the
GPUs' memory over TCP. Whatever happens on the way, the weights have one hash; what a machine lacks is said, and ends with exit code 4.

A stand-in computes a lane some thousand times slower than a GPU, so models and stories are small."""

import subprocess

import pytest

import rig

STANDINS = rig.BIN.parent / "standin"
GPUS = {"RINGMASTER_CUDA_LIBRARY": str(STANDINS / "libcuda.so.1"), "RINGMASTER_CUBLASLT_LIBRARY": str(STANDINS / "libcublasLt.so.13"),
        "RINGMASTER_STANDIN_CUDA": "sms=1"}
LAST = 8
CPU = {"trainer__precision": "bf16", "trainer__steps": LAST, "trainer__batch__lanes": 4, "trainer__batch__laneSequences": 1,
       "trainer__model__layers": 1, "trainer__model__heads": 1, "trainer__model__width": 8, "trainer__model__context": 8, "workers__max": 4,
       "trainer__evaluation__everySteps": 4, "trainer__evaluation__sequences": 2, "trainer__evaluation__holdOut": 0.1}
JOB = {**CPU, "trainer__device": "gpu"}


def has_kernels():
    """Built with a CUDA compiler: what a trainer hands to the driver is an image of it."""
    return any((rig.BIN.parent / "cuda").glob("*.fatbin"))


pytestmark = pytest.mark.skipif(not has_kernels(), reason="built without a CUDA compiler: tools/install-packages --cuda")


def told(run, last=LAST, restarted=()):
    """What must not differ between histories: the weights, each step's loss, each evaluation's."""
    complete = rig.check_complete(run, last, first=run.of("step")[0]["step"], restarted=restarted)
    assert complete["exact"] is True
    losses = {e["step"]: e["loss"] for e in run.of("step")}
    return complete["weightsSha256"], losses, {e["step"]: e["loss"] for e in run.of("evaluated")}


@pytest.fixture(name="alone", scope="module")
def one_undisturbed_worker(tmp_path_factory):
    run = rig.Run(rig.make_job(tmp_path_factory.mktemp("alone"), **JOB), env=GPUS)
    run.wait()
    run.clean_up()
    return told(run)


@pytest.mark.parametrize("workers, drills", [(2, ["kill:1@4"]), (2, ["trainer:0@3", "join@5"])])
def test_workers_and_drills_change_no_bit(tmp_path, finish, alone, workers, drills):
    arguments = [word for drill in drills for word in ("--drill", drill)]
    run = finish(rig.make_job(tmp_path, workers__target=workers, **JOB), *arguments, env={**GPUS, "RINGMASTER_STANDIN_CUDA": "seed=3,sms=1"})
    assert told(run) == alone, run.tail()
    assert run.of("recovered"), run.tail()


def test_another_number_of_workers_goes_on_from_a_checkpoint_to_the_same_weights(tmp_path, launch, finish, alone):
    job = rig.make_job(tmp_path, workers__target=2, **JOB)
    first = launch(job, env=GPUS)
    first.read_until("step", step=3)
    first.interrupt()
    assert first.wait() == 130, first.tail()
    second = finish(rig.make_job(tmp_path, workers__target=1, **JOB), env=GPUS)
    assert second.the("resumed")["step"] == first.the("interrupted")["step"]
    weights, losses, _ = told(second)
    assert weights == alone[0] and losses.items() <= alone[1].items(), second.tail()


def test_it_learns_as_a_cpu_does_within_what_bf16_rounds_and_auto_is_a_cpu(tmp_path, finish, alone):
    run = finish(rig.make_job(tmp_path, **CPU), env=GPUS)
    weights, losses, evaluated = told(run)
    assert weights != alone[0], "the control: a GPU rounds otherwise"
    for ours, theirs in ((losses, alone[1]), (evaluated, alone[2])):
        assert ours.keys() == theirs.keys() and all(abs(ours[step] - theirs[step]) < 0.01 * ours[step] for step in ours), (ours, theirs)


DEEPER = {**JOB, "trainer__model__layers": 2, "trainer__steps": 4}


@pytest.fixture(name="deeper", scope="module")
def one_worker_that_keeps_all_activations(tmp_path_factory):
    run = rig.Run(rig.make_job(tmp_path_factory.mktemp("deeper"), **DEEPER), env=GPUS)
    run.wait()
    run.clean_up()
    assert "computed again" not in run.stderr, run.tail()
    return told(run, 4)


@pytest.mark.parametrize("workers", [1, 2])
def test_activations_computed_again_change_no_bit_and_the_log_says_what_they_spare(tmp_path, finish, deeper, workers):
    run = finish(rig.make_job(tmp_path, workers__target=workers, trainer__recompute=True, **DEEPER), env=GPUS)
    assert told(run, 4) == deeper, run.tail()
    assert run.stderr.count("less than all: norms and GELU are computed again") == workers, run.tail()


def first_one_with(folder, script):
    """A trainer program whose first process has a GPU of that script."""
    wrapper, first = folder / "trainer", folder / "first"
    wrapper.write_text(f"#!/bin/sh\nif [ \"$1\" = work ] && mkdir '{first}' 2>/dev/null; then export RINGMASTER_STANDIN_CUDA='{script}'; fi\n"
                       f"exec '{rig.BIN / 'ringmaster-trainer'}' \"$@\"\n")
    wrapper.chmod(0o755)
    return {**GPUS, "RINGMASTER_TRAINER": str(wrapper)}


@pytest.mark.parametrize("workers", [1, 2])
def test_a_gpu_that_fails_in_the_middle_gets_a_new_trainer_and_no_bit_is_lost(tmp_path, finish, alone, workers):
    """Its trainer ends with the driver's words; a new one gets its state from the other, or where there is none begins at the newest checkpoint."""
    env = first_one_with(tmp_path, "sms=1,lost:kernel@700=ECC_UNCORRECTABLE")
    run = finish(rig.make_job(tmp_path, workers__target=workers, **JOB), env=env)
    assert run.code == 0, run.tail()
    assert run.the("complete")["weightsSha256"] == alone[0], run.tail()
    assert "this trainer can't work" in run.stderr and "CUDA_ERROR_ECC_UNCORRECTABLE" in run.stderr, run.tail()
    assert not run.of("workerQuarantined") and not run.left_over(), run.tail()


def test_a_gpu_that_fails_again_leaves_its_worker_out_with_a_sentence(tmp_path, finish):
    run = finish(rig.make_job(tmp_path, **JOB), env={**GPUS, "RINGMASTER_STANDIN_CUDA": "sms=1,lost:kernel@700=ECC_UNCORRECTABLE"})
    assert run.code == 4, run.tail()
    reason = run.the("failed")["reason"]
    assert "for the second time: Stand-in GPU" in reason, reason
    assert run.stderr.count("CUDA_ERROR_ECC_UNCORRECTABLE") >= 2, run.tail()
    assert not run.left_over()


def test_a_gpu_with_another_number_of_processors_is_refused_with_both_named(tmp_path, finish):
    run = finish(rig.make_job(tmp_path, workers__target=2, **JOB), env=first_one_with(tmp_path, "sms=7"))
    assert run.code == 3, run.tail()
    reason = run.the("failed")["reason"]
    assert reason.count("numerics") == 2 and ", 7 processors," in reason and "allowMixedHardware" in reason, reason


REFUSED = {
    "no driver": ({"RINGMASTER_CUDA_LIBRARY": "/nowhere/libcuda.so.1"}, "no NVIDIA driver"),
    "an old driver": ({"RINGMASTER_STANDIN_CUDA": "version=12080"}, "is for CUDA 12.8, and 13.0 is needed"),
    "no GPU": ({"RINGMASTER_STANDIN_CUDA": "devices=0"}, "shows this process no GPU"),
    "no cuBLASLt": ({"RINGMASTER_CUBLASLT_LIBRARY": "/nowhere/libcublasLt.so.13"}, "RINGMASTER_CUBLASLT_LIBRARY"),
    "little memory": ({"RINGMASTER_STANDIN_CUDA": "memory=300M"}, "training needs 0.5 GiB"),
}


@pytest.mark.parametrize("what", sorted(REFUSED))
def test_what_a_machine_lacks_is_said(tmp_path, finish, what):
    env, sentence = REFUSED[what]
    run = finish(rig.make_job(tmp_path, **JOB), env={**GPUS, **env})
    assert run.code == 4, run.tail()
    assert sentence in run.the("failed")["reason"], run.tail()
    assert not run.left_over()


def test_check_says_how_much_of_a_gpu_a_worker_takes(tmp_path):
    """By the same sum that a trainer is held to; no GPU is needed for it."""
    said = subprocess.run([rig.BIN / "ringmaster", "check", rig.make_job(tmp_path, **JOB)], check=True, capture_output=True, text=True).stdout
    assert " of a GPU each\n" in said, said
    said = subprocess.run([rig.BIN / "ringmaster", "check", rig.make_job(tmp_path, **CPU)], check=True, capture_output=True, text=True).stdout
    assert "GPU" not in said, said
