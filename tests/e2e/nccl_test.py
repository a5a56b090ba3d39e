"""GPUs that sum by NCCL, beside the ring over TCP: trainers find stand-ins for the driver, for cuBLASLt and for NCCL by their paths
(tests/cuda_rig). The weights have one hash whichever way the words went, and whatever happened to it; what failed is said."""

import json
import os
import random
import re
import urllib.request

import pytest

import gpu_test
import rig

LAST = gpu_test.LAST
LONGER = 2 * LAST
JOB = {**gpu_test.JOB, "trainer__batch__lanes": 6, "workers__max": 6}
VERSIONS = {"2.26": 22605, "2.28.9": 22809, "2.32": 23203}
SWITCHED = "the ring's sums go by a quicker way"
FAILED = "a way for sums among the GPUs failed"
FIRST = int(os.environ.get("RINGMASTER_NCCL_FROM", "40"))
SEEDS = range(FIRST, int(os.environ.get("RINGMASTER_NCCL_TO", str(FIRST + 4))))
KEYLESS = "makes no communicator with the job's key (built without TLS?), and does without"
OVER = "it failed 2 times within ten minutes"

pytestmark = gpu_test.pytestmark


def library(version):
    return str(gpu_test.STANDINS / f"nccl-{VERSIONS[version]}" / "libnccl.so.2")


def with_nccl(folder, version="2.28.9", script=""):
    """An environment in which all workers have this NCCL."""
    meeting = folder / "nccl"
    meeting.mkdir(exist_ok=True)
    return {**gpu_test.GPUS, "RINGMASTER_NCCL_LIBRARY": library(version), "RINGMASTER_STANDIN_NCCL": f"dir={meeting},{script}",
            "RINGMASTER_LOG": "info"}


def the_first_with(folder, env, **others):
    """A trainer program whose first process has these variables instead."""
    wrapper, first = folder / "trainer", folder / "first"
    exports = "".join(f"export {name}='{value}'; " for name, value in others.items())
    wrapper.write_text(f"#!/bin/sh\nif [ \"$1\" = work ] && mkdir '{first}' 2>/dev/null; then {exports} fi\n"
                       f"exec '{rig.BIN / 'ringmaster-trainer'}' \"$@\"\n")
    wrapper.chmod(0o755)
    return {**env, "RINGMASTER_TRAINER": str(wrapper)}


def each_with(folder, env, faults):
    """A trainer program in which each of these workers has a fault of its own: its agent's command line has its number."""
    wrapper = folder / "trainer"
    cases = "".join(f"*' --worker {worker} '*) export RINGMASTER_FAULT='{fault}';; " for worker, fault in faults.items())
    wrapper.write_text(f"#!/bin/sh\n[ \"$1\" = work ] && case \"$(tr '\\0' ' ' </proc/$PPID/cmdline)\" in {cases} esac\n"
                       f"exec '{rig.BIN / 'ringmaster-trainer'}' \"$@\"\n")
    wrapper.chmod(0o755)
    return {**env, "RINGMASTER_TRAINER": str(wrapper)}


def job(folder, workers, **fields):
    return rig.make_job(folder, workers__target=workers, **{**JOB, **fields})


def sums(folder):
    """Files of words that ranks have handed to NCCL and not taken away again: some are left of each communicator that summed."""
    return [path for path in (folder / "nccl").glob("*/*") if re.fullmatch(r"\d+\.\d+", path.name)]


def sound(run):
    assert "MISUSE" not in run.stderr, run.tail()


@pytest.fixture(name="alone", scope="module")
def one_undisturbed_worker(tmp_path_factory):
    run = rig.Run(job(tmp_path_factory.mktemp("alone"), 1), env=gpu_test.GPUS)
    run.wait()
    run.clean_up()
    return gpu_test.told(run)


@pytest.fixture(name="alone_longer", scope="module")
def one_undisturbed_worker_of_more_steps(tmp_path_factory):
    run = rig.Run(job(tmp_path_factory.mktemp("longer"), 1, trainer__steps=LONGER), env=gpu_test.GPUS)
    run.wait()
    run.clean_up()
    return gpu_test.told(run, LONGER)


@pytest.mark.parametrize("workers", [2, 3])
@pytest.mark.parametrize("version", list(VERSIONS))
def test_the_words_go_by_nccl_and_no_bit_changes(tmp_path, finish, alone, workers, version):
    run = finish(job(tmp_path, workers), env=with_nccl(tmp_path, version))
    assert gpu_test.told(run) == alone, run.tail()
    sound(run)
    assert run.stderr.count(SWITCHED) == workers, run.tail()
    assert sums(tmp_path), "nothing was summed by it"


def test_a_worker_killed_inside_of_a_sum_is_left_and_the_next_ring_gets_nccl_anew(tmp_path, finish, alone):
    env = the_first_with(tmp_path, with_nccl(tmp_path), RINGMASTER_FAULT="nccl-turn")
    run = finish(job(tmp_path, 2), env=env)
    assert gpu_test.told(run) == alone, run.tail()
    sound(run)
    assert "fault point nccl-turn" in run.stderr and run.of("recovered"), run.tail()
    assert run.stderr.count(SWITCHED) >= 2, run.tail()


@pytest.mark.parametrize("workers", [3, 5])
def test_words_that_change_their_way_all_the_time_have_the_same_sums(tmp_path, finish, alone, workers):
    """Behind each sum a communicator is at something of its own, so that the next step's words go over TCP."""
    run = finish(job(tmp_path, workers), env=with_nccl(tmp_path, "2.32", "rests"))
    assert gpu_test.told(run) == alone, run.tail()
    sound(run)
    assert run.stderr.count(SWITCHED) >= 2 * workers and run.stderr.count(FAILED) == 0, run.tail()


def test_workers_that_die_in_sums_are_no_failures_of_nccl(tmp_path, finish, alone_longer):
    """All see an error of NCCL's, and of five workers two have no connection to the dead one."""
    env = each_with(tmp_path, with_nccl(tmp_path, script="death-shows"), {0: "nccl-sum", 1: "nccl-sum:2"})
    run = finish(job(tmp_path, 5, trainer__steps=LONGER), env=env)
    assert gpu_test.told(run, LONGER) == alone_longer, run.tail()
    sound(run)
    assert run.stderr.count("fault point nccl-sum") == 2 and len(run.of("recovered")) >= 2, run.tail()
    assert FAILED not in run.stderr and OVER not in run.stderr and run.stderr.count(SWITCHED) > 2 * 5, run.tail()


@pytest.mark.parametrize("version, point, drills", [("2.26", "nccl-init@1", []), ("2.28.9", "nccl-sum@1", []), ("2.32", "nccl-turn:3@2", []),
                                                    ("2.28.9", "nccl-abort@1", ["--drill", "trainer:0@4"])])
def test_a_worker_killed_in_any_phase_is_left_and_no_bit_is_lost(tmp_path, finish, alone, version, point, drills):
    run = finish(job(tmp_path, 3), *drills, env={**with_nccl(tmp_path, version), "RINGMASTER_FAULT": point})
    assert gpu_test.told(run) == alone, run.tail()
    sound(run)
    assert f"fault point {point.partition('@')[0].partition(':')[0]}" in run.stderr and run.of("recovered"), run.tail()
    assert FAILED not in run.stderr and OVER not in run.stderr, run.tail()


def test_a_newcomer_in_the_midst_of_its_making_is_in_the_next_communicator(tmp_path, finish, alone_longer):
    env = with_nccl(tmp_path)
    env = the_first_with(tmp_path, env, RINGMASTER_STANDIN_NCCL=env["RINGMASTER_STANDIN_NCCL"] + "init-hangs@1")
    run = finish(job(tmp_path, 2, trainer__steps=LONGER), "--drill", "join@3", env=env)
    assert gpu_test.told(run, LONGER) == alone_longer, run.tail()
    sound(run)
    assert len(run.of("ringFormed")) == 2 and run.stderr.count(SWITCHED) == 3, run.tail()


@pytest.mark.parametrize("version, drills", [("2.26", ["trainer:0@4", "join@6"]), ("2.32", ["kill:1@5"])])
def test_drills_change_no_bit(tmp_path, finish, alone, version, drills):
    arguments = [word for drill in drills for word in ("--drill", drill)]
    run = finish(job(tmp_path, 2), *arguments, env=with_nccl(tmp_path, version))
    assert gpu_test.told(run) == alone, run.tail()
    sound(run)
    assert run.of("recovered") and run.stderr.count(SWITCHED) >= 2, run.tail()


def test_another_version_at_one_worker_is_said_and_the_words_stay_with_tcp(tmp_path, finish, alone):
    env = the_first_with(tmp_path, with_nccl(tmp_path, "2.28.9"), RINGMASTER_NCCL_LIBRARY=library("2.32"))
    run = finish(job(tmp_path, 2), env=env)
    assert gpu_test.told(run) == alone, run.tail()
    sound(run)
    assert re.search(r"worker \d has version 2\.(28\.9|32\.3) and worker \d has 2\.(28\.9|32\.3)", run.stderr), run.tail()
    assert SWITCHED not in run.stderr and not sums(tmp_path), run.tail()


def test_why_the_words_go_over_tcp_stands_in_the_status(tmp_path, launch):
    env = the_first_with(tmp_path, with_nccl(tmp_path), RINGMASTER_NCCL_LIBRARY="/nowhere/libnccl.so.2")
    run = launch(job(tmp_path, 2, trainer__steps=10000), env=env)
    run.read_until("step", step=3)
    with urllib.request.urlopen(f"http://{run.the('started')['address']}/v1/status", timeout=rig.DEADLINE_S) as answer:
        told = json.load(answer)["secondTransport"]
    assert told["used"] is False and re.match(r"worker \d has none: no NCCL: /nowhere/libnccl.so.2 can't be loaded", told["reason"]), told
    run.interrupt()
    assert run.wait() == 130, run.tail()


@pytest.mark.parametrize("why, script", [("it has none", None), ("2.28.3 to 2.28.8 crash", "version=22805")])
def test_a_library_that_is_not_there_or_crashes_is_said_once(tmp_path, finish, alone, why, script):
    env = with_nccl(tmp_path, script=script or "")
    if script is None:
        env["RINGMASTER_NCCL_LIBRARY"], why = "/nowhere/libnccl.so.2", "no NCCL: /nowhere/libnccl.so.2"
    run = finish(job(tmp_path, 2), "--drill", "trainer:1@4", env=env)
    assert gpu_test.told(run) == alone, run.tail()
    assert why in run.stderr and SWITCHED not in run.stderr, run.tail()
    assert 2 <= run.stderr.count("the ring's sums go over TCP") <= 3, run.tail()  # both workers, and the new trainer if it comes in time


@pytest.mark.parametrize("script", ["init-hangs", "init-hangs,abort-hangs"])
def test_a_communicator_that_is_never_made_is_waited_for_by_nobody(tmp_path, finish, alone, script):
    run = finish(job(tmp_path, 2), env=with_nccl(tmp_path, script=script))
    assert gpu_test.told(run) == alone, run.tail()
    sound(run)
    assert SWITCHED not in run.stderr and not sums(tmp_path), run.tail()


def test_a_communicator_that_fails_is_tried_once_more_and_then_is_over(tmp_path, finish, alone):
    run = finish(job(tmp_path, 2), env=with_nccl(tmp_path, script="init-fails"))
    assert gpu_test.told(run) == alone, run.tail()
    sound(run)
    assert "NCCL failed to make a communicator" in run.stderr and "it failed 2 times within ten minutes" in run.stderr, run.tail()
    assert SWITCHED not in run.stderr, run.tail()


def test_a_library_built_without_tls_sums_without_the_key_and_that_is_said(tmp_path, finish, alone):
    run = finish(job(tmp_path, 2), env=with_nccl(tmp_path, "2.32", "no-tls"))
    assert gpu_test.told(run) == alone, run.tail()
    sound(run)
    assert "one is tried without it" in run.stderr and run.stderr.count(KEYLESS) == 2, run.tail()
    assert run.stderr.count(SWITCHED) == 2, run.tail()


def test_who_may_not_go_without_the_key_says_so_and_the_words_stay_with_tcp(tmp_path, finish, alone):
    env = the_first_with(tmp_path, with_nccl(tmp_path, "2.32", "no-tls"), RINGMASTER_NCCL_NEEDS_KEY="1")
    run = finish(job(tmp_path, 2), env=env)
    assert gpu_test.told(run) == alone, run.tail()
    sound(run)
    assert re.search(r"worker \d may not go without the job's key \(RINGMASTER_NCCL_NEEDS_KEY\), and worker \d's makes no connection with it",
                     run.stderr), run.tail()
    assert SWITCHED not in run.stderr and not sums(tmp_path), run.tail()


def test_two_ranks_of_one_gpu_are_refused_by_nccl_and_the_words_stay_with_tcp(tmp_path, finish, alone):
    """The same error as for want of TLS; so one is tried without the key, and then the key is there again."""
    run = finish(job(tmp_path, 2), env=with_nccl(tmp_path, "2.32", "duplicate"))
    assert gpu_test.told(run) == alone, run.tail()
    sound(run)
    assert "one is tried without it" in run.stderr and "invalid usage" in run.stderr, run.tail()
    assert SWITCHED not in run.stderr and not sums(tmp_path), run.tail()


def test_sums_that_hang_are_failures_too(tmp_path, finish, alone):
    """The library has no error, and all are well: the coordinator breaks them off, and each ring would try it once more."""
    run = finish(job(tmp_path, 2, elasticity__stepTimeout="11s"), env=with_nccl(tmp_path, script="sum-hangs"))
    assert gpu_test.told(run) == alone, run.tail()
    sound(run)
    assert "a sum by it hung" in run.stderr and OVER in run.stderr and run.stderr.count(SWITCHED) == 4, run.tail()
    assert len(run.of("recovered")) == 2 and not run.of("workerQuarantined") + run.of("workerLost"), run.tail()


@pytest.mark.parametrize("script", ["async-error@1", "error-after@1"])
def test_an_error_of_nccl_costs_no_worker_and_no_bit(tmp_path, finish, alone, script):
    """In a sum it costs a ring; between two sums the words only go by TCP again."""
    env = with_nccl(tmp_path)
    env = the_first_with(tmp_path, env, RINGMASTER_STANDIN_NCCL=env["RINGMASTER_STANDIN_NCCL"] + script)
    run = finish(job(tmp_path, 2), env=env)
    assert gpu_test.told(run) == alone, run.tail()
    sound(run)
    assert "a way for sums among the GPUs failed" in run.stderr and "NCCL failed to " in run.stderr, run.tail()
    assert run.stderr.count(SWITCHED) >= 2, run.tail()


def test_a_worker_whose_gpu_is_stuck_in_a_sum_is_left_out_and_no_bit_is_lost(tmp_path, finish, alone):
    """Nobody may touch the words while NCCL might, and its abort does not return."""
    env = with_nccl(tmp_path)
    env = the_first_with(tmp_path, env, RINGMASTER_STANDIN_NCCL=env["RINGMASTER_STANDIN_NCCL"] + "async-error@1,abort-hangs")
    run = finish(job(tmp_path, 2), env=env)
    assert gpu_test.told(run) == alone, run.tail()
    sound(run)
    assert "is stuck in the GPU, also after its abort" in run.the("workerQuarantined")["cause"], run.tail()


def check_bits(run, alone, story):
    """A GPU's state ends with its trainer: where all of a ring hang the steps are made once more, from the newest checkpoint, by new trainers.
    Each of them, as often as it is told, is that of the undisturbed run, and so is the end."""
    weights, losses, evaluated = alone
    complete = run.the("complete")
    assert run.code == 0 and complete["exact"] is True and complete["step"] == LONGER, story
    assert complete["weightsSha256"] == weights, f"other weights: {story}"
    for name, wanted in (("step", losses), ("evaluated", evaluated)):
        for event in run.of(name):
            assert event["loss"] == wanted[event["step"]], f"{name} {event['step']} is another one: {story}"
        assert {event["step"] for event in run.of(name)} == set(wanted), story
    assert not run.left_over(), story


@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_history_changes_no_bit(tmp_path, finish, alone_longer, seed):
    """Drills that `run` draws, and what goes wrong in NCCL with them."""
    chance = random.Random(seed)
    script = chance.choice(["", "rests", "death-shows", "rests,death-shows", "async-error@3", "error-after@2,rests", "init-fails@2,death-shows"])
    env = with_nccl(tmp_path, chance.choice(list(VERSIONS)), script)
    run = finish(job(tmp_path, 1 + seed % 5, trainer__steps=LONGER, elasticity__stepTimeout="5s", failurePolicy__maxRestarts=1000),
                 "--drill", f"random:{seed}", env=env)
    check_bits(run, alone_longer, f"{script}: {run.tail()}")
    sound(run)


def test_floats_whose_order_would_matter_stay_with_the_ring(tmp_path, finish):
    run = finish(job(tmp_path, 2, trainer__reduction="fast"), env=with_nccl(tmp_path))
    assert run.code == 0, run.tail()
    assert SWITCHED not in run.stderr and not sums(tmp_path), run.tail()
