"""What tools/check counts: a check that loses a failure would be worse than none."""

import contextlib
import http.server
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import check_all  # noqa: E402  (its folder is on the path only now)

CRITERION = """<?xml version="1.0"?><testsuites><testsuite name="s">
<testcase name="good" status="PASSED"></testcase>
<testcase name="bad" status="FAILED"><failure type="assert" message="no"/></testcase>
<testcase name="crashed" status="ERRORED"><error type="crash" message="segv"/></testcase>
<testcase name="left_out" status="SKIPPED"><skipped/></testcase>
</testsuite></testsuites>"""


def program(tmp_path, text):
    path = tmp_path / "program"
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return ("a_test", [str(path)], None, {})


def test_a_report_is_counted_case_by_case(tmp_path):
    report = tmp_path / "report.xml"
    report.write_text(CRITERION)
    count = check_all.count_criterion("name", report)
    assert count.line() == "1 passed, 2 failed, 1 skipped"
    assert count.failures == ["name: bad", "name: crashed"] and count.left_out == ["name: left_out"]


@pytest.mark.parametrize("text, line", [
    ("exit 0", "1 passed, 0 failed, 0 skipped"),
    ("exit 1", "0 passed, 1 failed, 0 skipped"),
    ("exit 77", "0 passed, 0 failed, 1 skipped"),
    ("kill -9 $$", "0 passed, 1 failed, 0 skipped"),
])
def test_a_program_without_a_report_counts_by_its_exit_code(tmp_path, text, line):
    assert check_all.unit_test("test", program(tmp_path, text))[0].line() == line


def test_a_program_that_fails_after_a_good_report_has_failed(tmp_path):
    good = CRITERION.split("<testcase name=\"bad\"")[0] + "</testsuite></testsuites>"
    text = f"cat > \"${{CRITERION_OUTPUTS#xml:}}\" <<'END'\n{good}\nEND\nexit 1\n"
    count, shown = check_all.unit_test("asan", program(tmp_path, text))
    assert count.line() == "1 passed, 1 failed, 0 skipped"
    assert count.failures == ["asan/a_test: exit 1"] and shown is not None


def test_a_program_that_was_not_built_has_failed(tmp_path):
    assert check_all.unit_test("test", ("a_test", None, None, {}))[0].failed == 1
    assert check_all.unit_test("test", ("a_test", [str(tmp_path / "gone")], None, {}))[0].failed == 1


def test_units_of_two_presets_are_counted_each_and_have_a_place_each_and_a_preset_without_any_has_failed(monkeypatch, capsys):
    """Of one bucket, since both ask for it at the same time."""
    tests = {preset: [("contract_test", ["sh", "-c", f"test $RINGMASTER_TEST_S3 = s3://b/contract-{preset}"], None, {})] for preset in ("test", "asan")}
    monkeypatch.setattr(check_all, "bucket_of", lambda kind, total: contextlib.nullcontext({"RINGMASTER_TEST_S3": "s3://b/contract"}))
    monkeypatch.setattr(check_all, "registered_tests", {**tests, "release": []}.get)
    assert check_all.unit_tests(["test", "asan"]).line() == "2 passed, 0 failed, 0 skipped"
    said = capsys.readouterr().out
    assert "unit tests (test): 1 passed, 0 failed, 0 skipped\n" in said and "unit tests (asan): 1 passed, 0 failed, 0 skipped\n" in said
    assert check_all.unit_tests(["test", "release"]).failures == ["unit tests (release): none is registered"]


def test_the_longest_programs_begin_first_and_are_there():
    listed = "".join(path.read_text(encoding="utf-8") for path in ROOT.glob("tests/**/CMakeLists.txt"))
    assert set(check_all.LONG_PROGRAMS) <= set(re.findall(r"\w+", listed))
    first, second = check_all.LONG_PROGRAMS[:2]
    pairs = [("test", (name,)) for name in ("a_test", second, "b_test", first)] + [("asan", (second,))]
    assert [name for _, (name,) in check_all.in_order(pairs)] == [first, second, second, "a_test", "b_test"]


def test_each_long_program_has_one_turn_under_asan_and_runs_in_the_other_preset_always():
    for name in check_all.LONG_PROGRAMS:
        assert sum(check_all.takes_part("asan", name, turn) for turn in range(check_all.turns.TURNS)) == 1
        assert all(check_all.takes_part("test", name, turn) for turn in range(check_all.turns.TURNS))
    assert all(check_all.takes_part("asan", "a_test", turn) for turn in range(check_all.turns.TURNS))
    assert check_all.takes_part("asan", check_all.LONG_PROGRAMS[0], None)


def test_a_pytest_run_is_counted_and_its_collapse_is_a_failure(tmp_path, capsys):
    (tmp_path / "a_test.py").write_text("import pytest\n\ndef test_good():\n    pass\n\ndef test_bad():\n    assert 0\n\n"
                                        "def test_left_out():\n    pytest.skip('why')\n")
    count = check_all.pytest("label", [str(tmp_path)], workers=1)
    assert count.line() == "1 passed, 1 failed, 1 skipped"
    (tmp_path / "b_test.py").write_text("import nothing_of_that_name\n")
    assert check_all.pytest("label", [str(tmp_path / "b_test.py")], workers=1).failed >= 1
    assert check_all.pytest("label", [str(tmp_path / "gone")], workers=1).failed >= 1
    assert "test_bad" in capsys.readouterr().out


ONCE = """[ -e {0} ] || {{ touch {0}; exit 1; }}"""


def test_a_program_that_passes_at_the_second_try_is_unsteady_and_its_first_words_are_kept(tmp_path):
    count, text = check_all.unit_test("asan", program(tmp_path, "echo the first words\n" + ONCE.format(tmp_path / "seen")))
    assert (count.line(), count.unsteady, text) == ("1 passed, 0 failed, 0 skipped", ["asan/a_test"], "the first words\n")
    count, _ = check_all.unit_test("asan", program(tmp_path, "exit 1"))
    assert (count.line(), count.unsteady, count.failures) == ("0 passed, 1 failed, 0 skipped", [], ["asan/a_test"])


UNSTEADY_STORY = """import pathlib

import pytest

@pytest.mark.parametrize("which", ["a b", "c"])
def test_unsteady(which):
    seen = pathlib.Path(__file__).with_name(which)
    if not seen.exists():
        seen.touch()
        assert 0

def test_good():
    pass
"""


def test_stories_that_pass_at_the_second_try_are_unsteady_unless_another_fails_again(tmp_path):
    (tmp_path / "a_test.py").write_text(UNSTEADY_STORY)
    count = check_all.pytest("label", [str(tmp_path)], workers=2, again=True)
    assert count.line() == "3 passed, 0 failed, 0 skipped" and len(count.unsteady) == 2, count
    assert check_all.pytest("label", [str(tmp_path)], workers=1, again=True).unsteady == []
    for seen in ("a b", "c"):
        (tmp_path / seen).unlink()
    assert check_all.pytest("label", [str(tmp_path)], workers=1).line() == "1 passed, 2 failed, 0 skipped"
    (tmp_path / "c").unlink()
    (tmp_path / "b_test.py").write_text("def test_bad():\n    assert 0\n")
    count = check_all.pytest("label", [str(tmp_path)], workers=1, again=True)
    assert count.failed == 2 and not count.unsteady, count


def test_of_many_that_fail_none_is_tried_again(tmp_path):
    (tmp_path / "a_test.py").write_text(UNSTEADY_STORY.replace('["a b", "c"]', "list('abcd')"))
    assert check_all.pytest("label", [str(tmp_path)], workers=1, again=True).line() == "1 passed, 4 failed, 0 skipped"


@pytest.mark.parametrize("count, code", [(check_all.UNSTEADY_MOST, 0), (check_all.UNSTEADY_MOST + 1, 1)])
def test_a_check_names_what_is_unsteady_and_takes_a_few_of_it(count, code, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(check_all, "TIMES", tmp_path / "times.txt")
    total = check_all.Count(passed=9, unsteady=[f"story {i}" for i in range(count)])
    assert check_all.conclude(total) == code
    told = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("UNSTEADY story") for line in told) == count and told[-1] == total.line()


@pytest.fixture(name="module_server")
def fixture_module_server():
    """Something that answers, with no."""
    server = http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("ground, installs, tier, option", [
    ("cluster_ground", "BESIDE", "cluster_ground", "--cluster"), ("arm64_ground", "PATIENT", "arm64", "--arm64")])
def test_a_ground_that_is_missing_is_a_failure_but_where_there_is_no_network(ground, installs, tier, option, monkeypatch,
                                                                            module_server, capsys):
    monkeypatch.setattr(check_all, installs, ["sh", "-c", "exit 1"])
    monkeypatch.setenv("GOPROXY", f"{module_server},direct")
    count = getattr(check_all, tier)()
    assert count.failed == 1 and f"install-packages {option}" in count.failures[0], count
    monkeypatch.setenv("GOPROXY", "http://127.0.0.1:1")
    assert getattr(check_all, tier)().line() == "0 passed, 0 failed, 1 skipped"
    assert f"skipped: {option[2:]}: tools/install-packages {option}: there is no network" in capsys.readouterr().out
    monkeypatch.setattr(check_all, installs, ["true"])
    assert getattr(check_all, ground)() is None


@pytest.mark.parametrize("why, line", [(check_all.servers.Missing("no folder"), "0 passed, 1 failed, 0 skipped"),
                                       (check_all.servers.Offline("no network"), "0 passed, 0 failed, 1 skipped")])
def test_a_store_that_is_missing_is_a_failure_but_where_there_is_no_network(monkeypatch, why, line):
    def start(_kind):
        raise why

    monkeypatch.setattr(check_all.servers, "start", start)
    assert check_all.second_opinion("test").line() == line


def test_the_command_line_says_what_it_takes():
    done = subprocess.run([str(ROOT / "tools/install-packages"), "--nonsense"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "usage" in done.stderr


def test_what_is_patient_gives_way_to_other_sessions_too():
    groups = Path("/proc/self/autogroup")
    code, said = check_all.run_logged([*check_all.PATIENT, "sh", "-c", f"nice; test ! -e {groups} || cat {groups}"])
    assert code == 0 and said.split()[0] == "19", said
    if groups.exists():
        assert said.endswith("nice 19\n"), said
        assert "nice 19" not in groups.read_text(encoding="utf-8"), "who asked gives way, too"


def test_the_simulator_runs_each_of_its_seeds_once_in_a_check():
    units = (ROOT / "tests/sim/CMakeLists.txt").read_text(encoding="utf-8")
    assert f"NAME sim_seeds COMMAND sim --seeds 1..{check_all.UNIT_SEEDS})" in units
    assert f"NAME sim_crowd COMMAND sim --crowd --seeds 1..{check_all.UNIT_CROWD_SEEDS})" in units
    assert check_all.seeds(False) == f"{check_all.UNIT_SEEDS + 1}..40000"
    assert check_all.seeds(False, check_all.CROWD_SEEDS, check_all.UNIT_CROWD_SEEDS) == f"{check_all.UNIT_CROWD_SEEDS + 1}..500"
    first, last = map(int, check_all.seeds(True).split(".."))
    assert last - first + 1 == check_all.SEEDS and first > check_all.SEEDS
