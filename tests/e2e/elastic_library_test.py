"""Loops of users under `ringmaster run`, mode Elastic, by libringmaster.so and the package ringmaster: one result whatever happened."""

import re
import subprocess
import sys

import pytest

import rig
from launch_test import program_job

PROGRAMS = rig.ROOT / "tests/programs"
BUILD = rig.BIN.parent
ENV = {"PYTHONPATH": str(BUILD / "share/ringmaster/python"), "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
STEPS = 12


@pytest.fixture(name="program", scope="session")
def the_programs(tmp_path_factory, reference_python):
    """program(kind): its words."""
    built = tmp_path_factory.mktemp("programs") / "elastic"
    subprocess.run(["gcc", "-std=c11", "-O1", "-ffp-contract=off", "-I", rig.ROOT / "trainer/library", PROGRAMS / "elastic.c", "-o", built,
                    BUILD / "lib/libringmaster.so.1", f"-Wl,-rpath,{BUILD / 'lib'}"], check=True)
    kinds = {"c quick": [built], "c slow": [built, 100], "loop": [reference_python, PROGRAMS / "loop_elastic.py"]}
    for pace, pause in (("quick", 0), ("slow", 0.1)):
        kinds[f"numpy {pace}"] = [sys.executable, PROGRAMS / "elastic_numpy.py", pause]
        kinds[f"torch {pace}"] = [reference_python, PROGRAMS / "elastic_odd.py", "sgd", pause]
    return kinds.__getitem__


def elastic_job(folder, words, steps=STEPS, **fields):
    settings = {"launch__mode": "Elastic", "launch__steps": steps, "launch__batch__lanes": 8, "launch__batch__laneSequences": 3,
                "checkpoint__uri": "out", "elasticity__joinWindow": "200ms"}
    settings.update(fields)
    return program_job(folder, words, **settings)


@pytest.fixture(name="alone", scope="module")
def hash_of_an_undisturbed_run(program, tmp_path_factory):
    """alone(kind): of the weights that one worker ends with."""
    known = {}

    def alone(kind):
        if kind not in known:
            run = rig.Run(elastic_job(tmp_path_factory.mktemp("alone"), program(kind), workers=1), env=ENV)
            try:
                assert run.wait() == 0, run.tail()
                known[kind] = run.the("complete")["weightsSha256"]
            finally:
                run.clean_up()
        return known[kind]

    return alone


def check_ended_with(run, expected):
    assert run.code == 0, run.tail()
    assert run.the("complete")["weightsSha256"] == expected and run.the("complete")["exact"], run.tail()


COUNTS = [("c quick", 2), ("c quick", 3), ("c quick", 5), ("numpy quick", 2), ("numpy quick", 3), ("numpy quick", 5), ("loop", 2),
          pytest.param("loop", 3, marks=pytest.mark.turns), pytest.param("loop", 5, marks=pytest.mark.turns)]
KINDS = ["c slow", "numpy slow", pytest.param("torch slow", marks=pytest.mark.turns)]
SOON = {"elasticity__joinWindow": "200ms", "elasticity__lostAfter": "2s"}


@pytest.mark.parametrize("kind, workers", COUNTS)
def test_a_loop_ends_with_the_same_weights_for_any_number_of_workers(finish, tmp_path, program, alone, kind, workers):
    run = finish(elastic_job(tmp_path, program(kind), workers=workers), env=ENV)
    check_ended_with(run, alone(kind))


def begun(run):
    """[(worker, pid)] of the programs that began."""
    return [(int(worker), int(pid)) for worker, pid in re.findall(r"^\[(\d+)\] begin (\d+)$", "".join(run._errors), re.MULTILINE)]


def check_survivors(run, workers):
    """Their programs began once and came to the end."""
    for worker in workers:
        assert [who for who, _ in begun(run)].count(worker) == 1, run.tail()
        assert f"[{worker}] done {STEPS}\n" in "".join(run._errors), run.tail()


@pytest.mark.parametrize("kind", ["c slow", "numpy slow", "torch slow"])
def test_a_killed_worker_changes_nothing(finish, tmp_path, program, alone, kind):
    run = finish(elastic_job(tmp_path, program(kind), workers=3), "--drill", "kill:2@4", env=ENV)
    check_ended_with(run, alone(kind.replace("slow", "quick")))
    assert run.the("workerLost")["worker"] == 2
    assert [event["stepsRedone"] <= 1 for event in run.of("recovered") if event["cause"] == "WorkerLost"] == [True]
    check_survivors(run, {0, 1})


@pytest.mark.parametrize("kind", ["c slow", "numpy slow", "torch slow"])
def test_a_worker_that_leaves_changes_nothing_and_no_step_is_redone(finish, tmp_path, program, alone, kind):
    run = finish(elastic_job(tmp_path, program(kind), workers=3), "--drill", "term:1@4", env=ENV)
    check_ended_with(run, alone(kind.replace("slow", "quick")))
    assert [event["stepsRedone"] for event in run.of("recovered") if event["cause"] == "WorkerLeft"] == [0], run.of("recovered")
    check_survivors(run, {0, 2})


@pytest.mark.parametrize("drill", ["stop:2@4", "coordinator@4"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_else_may_happen_changes_nothing(finish, tmp_path, program, alone, kind, drill):
    run = finish(elastic_job(tmp_path, program(kind), workers=3, **SOON), "--drill", drill, env=ENV)
    check_ended_with(run, alone(kind.replace("slow", "quick")))
    check_survivors(run, {0, 1, 2} if drill.startswith("coordinator") else {0, 1})


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_random_histories_come_to_the_same_bits(finish, tmp_path, program, alone, kind, seed):
    """All kinds of drills that a run draws from a seed."""
    job = elastic_job(tmp_path, program(kind), workers=3, checkpoint__everySteps=3, failurePolicy__maxRestarts=100, **SOON)
    run = finish(job, "--drill", f"random:{seed}", env=ENV)
    check_ended_with(run, alone(kind.replace("slow", "quick")))
    assert run.of("drill"), run.tail()


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_a_newcomer_loads_what_the_others_hold(finish, tmp_path, program, alone, kind):
    words = [*program(f"{kind} slow")[:-1], 0.5, tmp_path / "came"]
    run = finish(elastic_job(tmp_path, words, workers=2, workers__min=2), "--drill", "join@1", env=ENV)
    check_ended_with(run, alone(f"{kind} quick"))
    check_survivors(run, {0, 1})
    assert (tmp_path / "came").exists() and len(begun(run)) == 3 and len(run.of("ringFormed")[-1]["members"]) == 3
    assert not run.of("resumed")


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_what_a_newcomer_loaded_it_writes_out_byte_for_byte(finish, tmp_path, program, kind):
    """States are compared after 50 steps: another byte would look like another state."""
    words = [*program(f"{kind} slow")[:-1], 0.5, tmp_path / "came"]
    run = finish(elastic_job(tmp_path, words, workers=2, workers__min=2, steps=55), "--drill", "join@1", env=ENV)
    assert run.the("complete")["exact"] and not run.of("workerDiffers"), run.tail()
    assert len(run.of("ringFormed")[-1]["members"]) == 3, run.tail()


@pytest.mark.parametrize("kind", ["numpy slow", "torch slow"])
def test_a_run_goes_on_from_a_checkpoint_with_other_workers(launch, finish, tmp_path, program, alone, kind):
    job = elastic_job(tmp_path, program(kind), workers=1)
    first = launch(job, env=ENV)
    first.read_until("step", step=3)
    first.interrupt()
    assert first.wait() == 130, first.tail()
    assert 3 <= first.the("interrupted")["step"] < STEPS
    run = finish(elastic_job(tmp_path, program(kind), workers=2), env=ENV)
    check_ended_with(run, alone(kind.replace("slow", "quick")))
    check_survivors(run, {0, 1})


def test_what_a_program_reports_is_in_the_log_of_its_worker_with_its_step(finish, tmp_path, program):
    run = finish(elastic_job(tmp_path, program("numpy quick"), workers=2), env={**ENV, "RINGMASTER_LOG": "info"})
    assert run.code == 0, run.tail()
    losses = {event["step"]: event["loss"] for event in run.of("step")}
    told = re.findall(r'trainer (\d+).*the program reports step=(\d+) name="loss" value=(\S+)', "".join(run._errors))
    assert {int(step) for worker, step, _ in told if worker == "0"} >= set(range(1, STEPS)), run.tail()
    assert all(float(value) == pytest.approx(losses[int(step)]) for _, step, value in told), run.tail()


REFUSED = {
    "a state that can't be sent": ("connect(parameters={'w': w}, state={'f': print}, samples=4)", "state.f is a builtin_function_or_method"),
    "in the loop": ("connect(parameters={'w': w}, samples=4)\nfor step in job.steps():\n    step.lanes()\n    step.lanes()", "step.lanes() was called twice in step 1"),
    "a loop that trains nothing": ("connect(parameters={'w': w}, samples=4)\nfor step in job.steps():\n    for _ in step.lanes():\n        step.gradients['w'] += 1\n"
                                   "        step.add(0)\n    w = w - 1", "10 updates had gradients, and no weight has changed: behind the inner loop"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_the_package_refuses_ends_the_job_at_once_with_its_sentence(finish, tmp_path, kind):
    """Started anew it would be refused once more; maxRestarts is 5."""
    text, sentence = REFUSED[kind]
    script = tmp_path / "refused.py"
    script.write_text(f"import os\nimport numpy\nimport ringmaster\nprint('begin', os.getpid())\nw = numpy.zeros(3, numpy.float32)\njob = ringmaster.{text}\n",
                      encoding="utf-8")
    run = finish(elastic_job(tmp_path, [sys.executable, script], workers=2), env=ENV)
    assert run.code == 2, run.tail()
    assert f"ringmaster refuses it: {sentence}" in run.the("failed")["reason"], run.tail()
    workers = [worker for worker, _ in begun(run)]
    assert workers and len(workers) == len(set(workers)), run.tail()
