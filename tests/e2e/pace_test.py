"""A worker that is slower than the others gets fewer lanes, is told of, and costs no bit: each of its lanes' bits is anybody's."""

import json
import os
import signal
import threading
import urllib.request

import pytest

import cpu_rig
import rig
from elastic_program_test import check_ended_with, hash_of_an_undisturbed_run, squares_job, squares_program  # noqa: F401  (fixtures among them)

LANES, WORKERS = 12, 2
FIELDS = {"trainer__batch__lanes": LANES, "trainer__batch__laneSequences": 16, "trainer__model__width": 64, "workers__target": WORKERS,
          "trainer__steps": 110}


class Slowed:
    """A process that now and then stands still, until `with` is left: most of the time, for much shorter than a step."""

    STANDS_S, GOES_S = 0.012, 0.004

    def __init__(self, pid):
        self.pid = pid
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._turns, daemon=True)

    def _turns(self):
        try:
            while not self.over.wait(self.GOES_S):
                os.kill(self.pid, signal.SIGSTOP)
                self.over.wait(self.STANDS_S)
                os.kill(self.pid, signal.SIGCONT)
        except ProcessLookupError:
            pass

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


def paces_of(run):
    """What each worker of the ring says of its newest step."""
    with urllib.request.urlopen(f"http://{run.the('started')['address']}/v1/status", timeout=rig.DEADLINE_S) as answer:
        return {worker["worker"]: worker["pace"] for worker in json.load(answer)["workers"] if "pace" in worker}


def has_fewer(run, worker):
    """Its lanes, once they are fewer than its usual share, and others have them."""
    pace = paces_of(run)
    return len(pace) == WORKERS and pace[worker]["lanes"] < sum(one["lanes"] for one in pace.values()) // WORKERS and pace


def pid_of(run, worker):
    return next(m["trainerPid"] for m in run.the("ringFormed")["members"] if m["worker"] == worker)


@pytest.mark.parametrize("dies", [False, True])
def test_a_slow_worker_gets_fewer_lanes_and_is_told_of_and_the_bits_are_the_same(tmp_path, launch, reference, dies):
    run = launch(rig.make_job(tmp_path, **FIELDS))
    run.read_until("ringFormed")
    pid = pid_of(run, 1)
    with Slowed(pid):
        pace = rig.until(lambda: has_fewer(run, 1), "worker 1 has fewer lanes", rig.DEADLINE_S)
        assert sum(one["lanes"] for one in pace.values()) in range(LANES - 5, LANES + 6), pace  # said of two steps, perhaps
        if dies:
            os.kill(pid, signal.SIGKILL)
            run.read_until("recovered")
        else:
            told = run.read_until("workerSlow")
            assert told["worker"] == 1 and "times as long as most" in told["cause"], told
            slow = rig.until(lambda: paces_of(run).get(1, {}).get("timesMost"), "its status says so", rig.DEADLINE_S)
            assert slow > 1, slow
    run.wait()
    assert run.code == 0, run.tail()
    rig.check_steps(run, last=FIELDS["trainer__steps"])
    complete = run.the("complete")
    assert complete["weightsSha256"] == reference(**FIELDS)[0] and complete["exact"] is True, run.tail()


def test_a_worker_that_its_cpu_limit_holds_up_is_told_of_with_that_reason(tmp_path, launch):
    run = launch(rig.make_job(tmp_path, **FIELDS))
    run.read_until("ringFormed")
    with cpu_rig.quota(1000, 20000) as limit:
        limit(pid_of(run, 1))
        told = run.read_until("workerSlow")
        assert told["worker"] == 1 and told["cause"].endswith("times as long as most: its CPU limit holds it up"), told
        assert rig.until(lambda: paces_of(run).get(1, {}).get("slowBy"), "its status says so", rig.DEADLINE_S) == "cpuLimit"
        run.wait()
    assert run.code == 0, run.tail()


def test_where_sums_depend_on_whose_lanes_they_are_shares_stay(tmp_path, launch):
    run = launch(rig.make_job(tmp_path, **{**FIELDS, "trainer__reduction": "fast"}))
    run.read_until("ringFormed")
    with Slowed(pid_of(run, 1)):
        run.read_until("workerSlow")
        assert {pace["lanes"] for pace in paces_of(run).values()} == {LANES // WORKERS}, paces_of(run)
    run.wait()
    assert run.code == 0, run.tail()


@pytest.mark.parametrize("promise", [[], ["--undetermined"]])
def test_a_program_that_is_slow_on_one_worker_has_fewer_lanes_there_and_the_bits_are_the_same(tmp_path, launch, squares, hash_of, promise):
    """Where it promises that a lane has the same bits whoever computes it workers audit each other meanwhile, and where it does not they do not."""
    script = tmp_path / "unlike.sh"
    script.write_text(f'#!/bin/sh\n[ "$RINGMASTER_WORKER" = 1 ] && set -- "$@" --pause-us 30000 || set -- "$@" --pause-us 6000\nexec {squares} "$@"\n')
    script.chmod(0o755)
    run = launch(squares_job(tmp_path, script, *promise, steps=60, workers=2, elasticity__joinWindow="1h"))
    run.read_until("ringFormed")
    pace = rig.until(lambda: has_fewer(run, 1), "worker 1 has fewer lanes", rig.DEADLINE_S)
    assert pace[1]["laneMs"] > 30, pace
    told = run.read_until("workerSlow")
    assert told["worker"] == 1, told
    run.wait()
    check_ended_with(run, hash_of(60))
    assert {event["worker"] for event in run.of("workerSlow")} == {1}, run.tail()
