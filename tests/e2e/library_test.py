"""libringmaster.so and the package ringmaster in users' programs, against a trainer's stand-in (standin.py)."""

import os
import sys

import pytest

import rig
from standin import AGAIN, LANE, LOAD, SAVE, UPDATE, StandIn

PROGRAMS = rig.ROOT / "tests/programs"
LIBRARY = rig.BIN.parent / "lib/libringmaster.so.1"
PACKAGE = rig.BIN.parent / "share/ringmaster/python"
ENV = {"PYTHONPATH": str(PACKAGE), "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
NUMPY = [sys.executable, str(PROGRAMS / "elastic_numpy.py")]


def run(command, **more):
    standin = StandIn(command, env=ENV, **more)
    standin.run()
    return standin


@pytest.fixture(name="calm", scope="module")
def one_program_that_nothing_happens_to():
    """calm(command): the states of each step; run once for each program."""
    known = {}

    def calm(command, **more):
        key = repr((command, sorted(more.items())))
        if key not in known:
            known[key] = run(command, workers=1, **more)
        return known[key]

    return calm


def same_states(standin, reference):
    """The last state, and whatever else was seen on the way, is that of the program that was alone."""
    assert standin.states[standin.steps] == reference.states[standin.steps]
    assert standin.means == reference.means
    assert len(set(reference.means.values())) == standin.steps and reference.states[0] != reference.states[standin.steps]


def check_numbers_of_workers(command, calm, numbers=(2, 3, 5), **more):
    for workers in numbers:
        standin = run(command, workers=workers, **more)
        assert len(standin.finished) == workers
        same_states(standin, calm(command, **more))


def check_histories(command, calm, seeds, workers=3, kills=2, **more):
    """Random histories: all that a trainer may ask for, and programs killed while they compute."""
    asked = {}
    for seed in seeds:
        standin = run(command, workers=workers, mischief=seed, kills=kills, **more)
        same_states(standin, calm(command, **more))
        for step, image in standin.states.items():
            calm(command, **more).states.setdefault(step, image)
            assert calm(command, **more).states[step] == image, f"another state of step {step} in history {seed}"
        for what, times in standin.asked_for.items():
            asked[what] = asked.get(what, 0) + times
    assert all(asked[what] for what in (LANE, UPDATE, SAVE, LOAD, AGAIN, "again", "late", "kill") if kills or what != "kill"), asked


def test_numpy_has_the_same_state_for_any_number_of_workers(calm):
    check_numbers_of_workers(NUMPY, calm)


def test_numpy_has_the_same_state_whatever_is_asked_and_whoever_is_killed(calm):
    check_histories(NUMPY, calm, range(4), steps=8)


def test_what_a_program_reports_arrives(calm):
    reports = calm(NUMPY).finished[0].reports
    assert [key for key, _ in reports] == 6 * ["loss"] and len({value for _, value in reports}) == 6
    assert [value for _, value in reports] == [loss for _, (_, loss) in sorted(calm(NUMPY).means.items())]
