"""What tools/campaign counts and runs again: a campaign that loses a failure would be worse than none."""

import argparse
import importlib.machinery
import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(name="campaign", scope="module")
def campaign_tool():
    loader = importlib.machinery.SourceFileLoader("campaign_tool", str(ROOT / "tools/campaign"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("campaign_tool", loader))
    loader.exec_module(module)
    return module


class Histories:
    """Stands for tests/e2e/histories.py: seed 3 fails, and says which seeds were run."""

    def __init__(self):
        self.ran = []
        self.KINDS = {"drills": self.drills}

    def expect(self, _launch, _folder):
        return "expected"

    def drills(self, seed, _folder, _launch, expected):
        assert expected == "expected"
        self.ran.append(seed)
        assert seed != 3, "other weights\nand a long story"
        return argparse.Namespace(runs=1, harm={"kill": 2}, recoveries={"WorkerLost": 1}, redone=1)


def run(campaign, tmp_path, seeds, program="one"):
    programs = tmp_path / "bin"
    programs.mkdir(exist_ok=True)
    for name in campaign.PROGRAMS:
        (programs / name).write_text(program)
    arguments = argparse.Namespace(seeds=seeds, kinds=["drills"], jobs=2, bin=programs, results=tmp_path / "results.jsonl")
    histories = Histories()
    one = campaign.Campaign(arguments, histories, rig=None)
    one.run()
    return histories, one.chosen()


def test_a_failure_is_counted_and_its_story_is_kept(campaign, tmp_path, capsys):
    _, results = run(campaign, tmp_path, range(1, 5))
    assert sorted(r["seed"] for r in results if r["passed"]) == [1, 2, 4]
    said = campaign.table("drills", results)
    assert "weights equal  3 of 4" in said and "failed seeds   [3]" in said and "kill 6" in said, said
    assert "long story" in (tmp_path / "failed-drills-3.txt").read_text()
    assert "tools/campaign --kind drills --seeds 3" in capsys.readouterr().out


def test_what_passed_is_not_run_again_and_what_failed_is(campaign, tmp_path):
    run(campaign, tmp_path, range(1, 4))
    histories, results = run(campaign, tmp_path, range(1, 6))
    assert sorted(histories.ran) == [3, 4, 5]
    assert len(results) == 5


def test_results_of_other_programs_do_not_count(campaign, tmp_path):
    run(campaign, tmp_path, range(1, 3))
    histories, results = run(campaign, tmp_path, range(1, 3), program="two")
    assert sorted(histories.ran) == [1, 2] and len(results) == 2


def test_a_line_that_was_cut_off_is_passed_over(campaign, tmp_path):
    path = tmp_path / "results.jsonl"
    whole = {"kind": "drills", "seed": 1, "programs": "p", "passed": True}
    path.write_text(json.dumps(whole) + "\n" + json.dumps(whole)[:20] + json.dumps({**whole, "seed": 2}) + "\n")
    assert campaign.read_results(path, "p") == {("drills", 1): whole}
