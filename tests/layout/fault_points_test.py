"""Each fault point in the sources is tried by a test: one that nobody tries says nothing about a crash there."""

import re
import sys
from pathlib import Path

import rules

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))

import fault_points  # noqa: E402  (its folder is on the path only now)


def points_in_sources(root, word="FAULT"):
    found = set()
    for path in rules.sources(root, suffixes=(".c",)):
        text = rules.without_comments((Path(root) / path).read_text(), keep_strings=True)
        found |= set(re.findall(rf'\b{word}\("([^"]+)"[,)]', text))
    return found


def test_each_fault_point_has_a_case_and_each_case_a_fault_point():
    there = points_in_sources(ROOT)
    assert there - set(fault_points.POINTS) == set(), "fault points without a case in tests/e2e/fault_points.py"
    assert set(fault_points.POINTS) - there == set(), "cases of fault points that are gone"


def test_each_place_where_a_bit_may_flip_has_a_case_and_each_case_a_place():
    assert points_in_sources(ROOT, "FAULT_FLIP") == set(fault_points.FLIPS)


def test_what_a_whole_run_can_not_reach_is_tried_by_a_unit_test():
    assert {point for point, cases in fault_points.POINTS.items() if not cases} == set(fault_points.UNIT)
    for point, path in fault_points.UNIT.items():
        assert f'"{point}' in (ROOT / path).read_text(), f"{path} does not name {point}"


def test_a_point_that_is_new_is_seen(tmp_path):
    (tmp_path / "common").mkdir()
    (tmp_path / "common/new.c").write_text('void f(void) { FAULT("old"); /* FAULT("none") */\n    FAULT("new"); }\n')
    assert points_in_sources(tmp_path) == {"old", "new"}
