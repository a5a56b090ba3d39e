"""Harm at random from a seed: whatever dies or stands still, whenever, the weights are those of the undisturbed run.

Unlike drills, which strike when a step is told, these strike at any event, see histories.py."""

import os

import pytest

import histories

FIRST = int(os.environ.get("RINGMASTER_CHAOS_FROM", "0"))
SEEDS = range(FIRST, int(os.environ.get("RINGMASTER_CHAOS_TO", str(FIRST + 8))))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.slow
@pytest.mark.sanitized
def test_harm_at_any_moment_changes_no_bit(tmp_path, launch, reference, seed):
    expected = histories.Expected(*reference(**histories.JOB))
    histories.chaos(seed, tmp_path, launch, expected)
