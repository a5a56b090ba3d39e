"""What tools/bench spot adds up: each sum beside the same by hand."""

import argparse
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import bench_meter  # noqa: E402  (its folder is on the path only now)
import bench_notice  # noqa: E402
import bench_spot as bench  # noqa: E402
import spot_trace  # noqa: E402
import torch_trace  # noqa: E402

# 32 machines make a step in 2 s, 16 in 4 s.
MOMENTS = [(0, 32), (100, 16), (300, 0), (400, 32), (1000, 32)]


def test_what_machines_allow_is_their_time_by_what_a_step_takes():
    assert bench.allowed(MOMENTS) == 100 / 2 + 200 / 4 + 600 / 2
    assert bench.machine_hours(MOMENTS) == (100 * 32 + 200 * 16 + 600 * 32) / 3600
    assert [bench.step_s(n) for n in (64, 63, 33, 32, 1)] == [1, 2, 2, 2, 64], "lanes are whole"


@pytest.mark.parametrize("every, steps", [
    (0, 100 / 2 + (200 - 11.7) / 4 + (600 - 5.7) / 2),  # nothing is lost but time
    (60, 60 / 2 + 180 / 4 + (600 - 5.7) / 2),  # 40 s of the first hundred are lost, and 8.3 of the 188.3
    (500, (600 - 5.7) / 2),  # nothing was saved before the end
])
def test_a_torchrun_that_is_made_up_loses_what_it_has_not_saved(every, steps):
    assert bench.torchrun(MOMENTS, every) == pytest.approx(steps)


def test_two_changes_at_once_stand_still_once():
    kills = [(0, 32), (100, 31), (102, 32), (200, 32)]
    assert bench.torchrun(kills, 0) == pytest.approx(100 / 2 + (100 - 11.7) / 2)


def test_without_changes_it_loses_nothing():
    assert bench.torchrun([(0, 32), (1000, 32)], 60) == bench.allowed([(0, 32), (1000, 32)]) == 500


def test_goals_are_met_or_missed_at_their_bounds():
    most = bench.allowed(MOMENTS)

    def cells(steps, back, trained, notice="2 min"):
        found = {"steps": steps, "back": back, "noticeSeconds": 0 if notice == "none" else 100, "trainedSeconds": trained}
        return [cell.strip() for cell in bench.row("t", MOMENTS, notice, found).split("|")][3:9]
    assert cells(most * 0.95, 0, 80) == ["95.0%", "met", "0", "met", "80.0%", "met"]
    assert cells(most * 0.949, 1, 79) == ["94.9%", "**missed**", "1", "**missed**", "79.0%", "**missed**"]
    assert cells(most, 7, 0, "none") == ["100.0%", "met", "7", "", "", ""], "of who is told nothing nothing is asked"


def test_costs_are_those_of_a_sum_by_hand():
    hours = bench.machine_hours(MOMENTS)
    cells = [cell.strip() for cell in bench.cost_row("t", MOMENTS, {"steps": 300}, 0.5, 2.0).split("|")]
    static = 32 * 2.0 / 3600 * 2 * 1000
    assert cells[2] == f"{hours * 0.5 / 300 * 1000:.1f}"
    assert cells[4] == f"{static:.1f}"
    assert cells[5] == f"{hours * 0.5 / 300 * 1000 / static:.2f}"


def test_drills_take_who_is_there_and_fill_the_lowest_place():
    moments = [(0, 4), (10, 2), (20, 4), (30, 3), (40, 3)]
    plan = bench.drills(moments, "kill", 1)
    there = {0, 1, 2, 3}
    for drill in plan:
        what, at = drill.split("@")
        if what == "join":
            there.add(min(set(range(5)) - there))
        else:
            there.remove(int(what.split(":")[1]))
    assert len(there) == 3 and [drill.split("@")[1] for drill in plan] == ["10s", "10s", "20s", "20s", "30s"]
    assert plan == bench.drills(moments, "kill", 1)


def test_a_stretch_has_few_workers_and_never_too_few():
    moments = bench.scaled(spot_trace.stretch(spot_trace.of_name("p3"), 0, 3600), 40)
    counts = [count for _, count in moments]
    assert min(counts) >= bench.REAL_LEAST and max(counts) == bench.REAL_MOST
    assert moments[-1][0] == 90 and spot_trace.tidy(moments) == moments


def test_notices_are_told_by_their_middle_and_worst_and_the_worst_is_held_to_the_goal():
    took = [(0.001 * n, 0.002 * n, 0.0005 * n) for n in range(1, 51)]
    lines = bench_notice.latency_lines({"gce": took, "aws": [(2.0, 0.1, None), (0.3, 1.5, None)], "azure": [(1.5, 0.1, None)]})
    assert [line.split("|")[1:-1] for line in lines[2:]] == [
        [" gce ", " 50 ", " 26 ms ", " 51 ms ", " 51 ms ", " 100 ms ", " 100 ms ", " 100 ms ", " met "],
        [" gce, a plain client beside it ", " 50 ", " ", " ", " 13 ms ", " 25 ms ", " 25 ms ", " ", " "],
        [" aws ", " 2 ", " 1150 ms ", " 800 ms ", " 1750 ms ", " 2000 ms ", " 2000 ms ", " 1500 ms ", " **missed** "],
        [" azure ", " 1 ", " 1500 ms ", " 100 ms ", " 1500 ms ", " 1500 ms ", " 1500 ms ", " 1500 ms ", " met "]]
    assert [bench_notice.percentile(range(1, 201), share) for share in (0.5, 0.99, 1)] == [100, 198, 200]


def test_a_sum_by_hand_is_hours_times_share_times_the_price_of_each_hour():
    spot, paid = bench_meter.Pod(0, 1, "us-east-1b", True, 1800.5), bench_meter.Pod(-1, 1, "us-east-1a", False, 0)
    spot.end(1800.5 + 3600, True, SimpleNamespace(uniform=lambda _, most: most))
    paid.end(7200, False, None)
    prices = {"us-east-1a": ["9", "9"], "us-east-1b": ["0.8", "1.2"]}
    spent, hours = bench_meter.by_hand([spot, paid], prices)
    assert float(spent) == pytest.approx(0.5 * (1799.5 / 3600 * 0.8 + 1800.5 / 3600 * 1.2) + 2 * 0.875 * 3.06)
    assert float(hours) == pytest.approx(0.5 + 2 * 0.875)
    assert [pod.line().split()[-4:] for pod in (spot, paid)] == [["1790001800", "1790005400", "1790005445", "vanishes"],
                                                                  ["1790000000", "1790007200", "1790007220", "ends"]]


@pytest.mark.parametrize("name", ["p3", "kills"])
def test_a_traces_pods_are_as_many_as_its_machines_at_each_moment(name):
    moments = spot_trace.of_name(name)
    pods = bench_meter.pods_of(moments, 1, True)
    workers = [pod for pod in pods if pod.worker >= 0]
    assert len({(pod.worker, pod.attempt) for pod in pods}) == len(pods) and all(pod.bound < pod.ended for pod in pods)
    for (at, count), (after, _) in zip(moments, moments[1:]):
        middle = (at + after) / 2
        late = sum(middle - 31 <= pod.bound <= middle + 31 or middle - 31 <= pod.ended <= middle + 1 for pod in workers)
        assert abs(sum(pod.bound <= middle < pod.ended for pod in workers) - count) <= late
    assert max(pod.worker for pod in workers) < max(count for _, count in moments)


def test_nobody_who_is_spared_goes():
    moments = [(0, 4), *((n, 4 if n % 20 == 0 else 2) for n in range(10, 200, 10)), (200, 4)]
    assert any(drill.startswith("kill:0@") for drill in bench.drills(moments, "kill", 1))
    assert not any(drill.startswith("kill:0@") for drill in bench.drills(moments, "kill", 1, spared={0}))


def test_processes_are_held_to_their_own_undisturbed_run_and_to_torchruns_share():
    moments = [(0, 4), (30, 2), (60, 4), (90, 4)]
    plan = ["kill:1@30s", "kill:2@30s", "join@60s", "join@60s"]
    ours = [bench.Played("Ringmaster", "is told (SIGTERM)", plan, 900, 0, 1000), bench.Played("Ringmaster", "is killed (SIGKILL)", plan, 800, 2, 1000)]
    theirs = bench.Played("torchrun", "is killed (SIGKILL)", plan, 50, 1, 200)
    lines = bench.process_lines("p3", moments, ours, theirs, 0.3, 1.0)
    price = (30 * 4 + 30 * 2 + 30 * 4) * 0.3 / 50 / (4 * 90 / 200)
    assert [cell.strip() for cell in lines[6].split("|")[3:9]] == ["2, and 2 come", "200", "50", "25.0%", "1", f"{price:.2f}"]
    assert "keeps of its own 3.60 times where its workers are told, 3.20 times" in lines[-1]
    assert bench.process_lines("p3", moments, ours, "torchrun: none.", 0.3, 1.0)[-1] == "torchrun: none."


def test_torchruns_steps_are_those_of_one_rank_within_the_time_and_what_it_made_twice_counts_once():
    def made(step, at, rank=0):
        return {"step": step, "rank": rank, "time": at, "world": 4}
    steps = [made(7, 1.0), made(8, 2.0), made(8, 2.0, 1), made(9, 3.0), made(9, 8.0), made(10, 9.0), made(11, 99.0)]
    assert torch_trace.count(steps, steps[0], 10) == (3, 1)
    assert [torch_trace.read(word) for word in ("kill:3@12.5s", "join@20s")] == [(12.5, 3), (20.0, None)]
    with pytest.raises(argparse.ArgumentTypeError):
        torch_trace.read("term:3@12s")


def asked(trace, only):
    return SimpleNamespace(trace=trace, only=only, seed=1, spot_price=0.3, on_demand_price=1.0, hours=24.0)


def test_files_have_tables_of_their_own_and_those_of_made_up_traces_stay(tmp_path, monkeypatch):
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("0,2\n60000,1\n120000,1\n")
    monkeypatch.setattr(bench, "replay", lambda *_: {"steps": 1, "back": 0, "noticeSeconds": 10, "trainedSeconds": 8})
    monkeypatch.setattr(bench_meter, "lines", lambda traces, _: list(traces))
    lines, _, more = bench.bench(None, None, None, None, asked([str(tmp_path / "a.csv"), str(tmp_path / "b.csv")], ["policy", "meter"]))
    assert not lines and more["spot-meter-files"] == ["a.csv", "b.csv"] and set(more) == {"spot-files", "spot-meter-files"}
    assert [line.split("|")[1:3] for line in more["spot-files"][2:8]] == [
        [f" {name} ", f" {notice} "] for name in ("a.csv", "b.csv") for notice in ("2 min", "30 s", "none")]
    lines, _, more = bench.bench(None, None, None, None, asked(None, ["policy", "meter"]))
    assert lines and set(more) == {"spot-meter"}


def test_what_is_of_virtual_time_names_no_machine():
    assert bench.heading("spot", 24.0) == "`tools/bench spot --only policy --hours 24` (virtual time, which is the same on each machine):"
    assert not bench.heading("spot-calm", 24.0)


def test_where_torchrun_can_t_be_had_the_page_says_why():
    def peer(_python, _script, *_words):
        return answers.pop(0)
    for answers, said in (([None], "has no torch"), ([{}], "did not begin"), ([{"steps": 9}, {}], "did not begin")):
        assert said in bench.torchrun_played(peer, "python3", [(0, 4), (90, 4)], [])


def test_listening_is_nothing_measurable_where_it_differs_no_more_than_two_that_do_not_listen():
    def three(*speeds):
        return tuple(SimpleNamespace(a_second=speed, ms_a_step=1000 / speed, node_ms=0.6, agents_ms=1.0) for speed in speeds)
    noisy = [three(100, 98, 104), three(100, 97, 92), three(100, 101, 100)]
    lines = bench_notice.calm_lines(noisy)
    assert lines[2].startswith("| steps, a second | 100 | 98 | 1.010 |") and lines[2].endswith("| 3 | met |")
    assert "takes 0.30 ms" in lines[-1] and "+0.00 ms" in lines[-1]
    assert bench_notice.calm_row("steps", "a second", [three(100, 90, 101)] * 3, lambda s: s.a_second).endswith("**missed** |")
    assert bench_notice.processor_s([os.getpid()]) > 0 == bench_notice.processor_s([0])
