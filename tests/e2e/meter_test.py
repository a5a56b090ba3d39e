"""The operator's meter over a trace of machines, beside a sum by hand (tools/bench spot)."""

import sys
from fractions import Fraction
from pathlib import Path

import pytest

import rig

sys.path.append(str(Path(__file__).resolve().parents[2] / "tools"))

import bench_meter as bench  # noqa: E402  (its folder is on the path only now)
import spot_trace  # noqa: E402

MOMENTS = [(0.0, 5), (1000.0, 2), (1900.0, 4), (7000.0, 0), (9000.0, 3), (9600.0, 3)]


@pytest.fixture(autouse=True)
def programs(monkeypatch):
    monkeypatch.setattr(bench, "TOOLS", rig.BIN.parent / "tests")


def of_meter(pods, prices):
    return Fraction(bench.metered(pods, prices, 5)["spent"])


def test_the_meter_and_a_sum_by_hand_are_one_and_a_dearer_hour_is_in_both():
    pods, prices = bench.pods_of(MOMENTS, 1, False), bench.prices_of(3, 1)
    spent, _ = bench.by_hand(pods, prices)
    assert of_meter(pods, prices) / spent == pytest.approx(1, abs=0.001)
    dearer = {zone: [of_hours[0], "1.5300", *of_hours[2:]] for zone, of_hours in prices.items()}
    more, _ = bench.by_hand(pods, dearer)
    assert more > 1.1 * spent and of_meter(pods, dearer) / more == pytest.approx(1, abs=0.001)


def test_a_machine_that_vanishes_is_paid_for_until_it_was_last_seen_though_that_is_told_later():
    pods, prices = bench.pods_of(MOMENTS, 1, True), bench.prices_of(3, 1)
    late = sum(((pod.seen - pod.ended) * Fraction(bench.ASKED[pod.zone], bench.THERE) for pod in pods if pod.vanishes), Fraction(0)) / bench.HOUR
    spent, hours = bench.by_hand(pods, prices)
    assert late > hours / 150
    assert of_meter(pods, prices) / spent == pytest.approx(1, abs=0.002)


def test_of_a_stretch_of_killed_workers_who_says_that_it_ends_costs_what_it_did():
    cells = bench.row("kills", spot_trace.kills(4, 60, 0.2), 1, False).split("|")
    assert cells[-2].strip() == "met" and abs(float(cells[-3]) - 1) < 0.01, cells
