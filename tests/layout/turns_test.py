"""What takes turns in tools/check: of any four commits in a row each story runs in one, and the check ends in time and with its count."""

import concurrent.futures
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests"), str(ROOT / "tests/cluster")]

import check_all  # noqa: E402  (its folder is on the path only now)
import check_run  # noqa: E402
import processes  # noqa: E402
import turns  # noqa: E402

STORIES = """import pytest

@pytest.mark.slow
@pytest.mark.parametrize("seed", range(24))
def test_long(seed):
    pass

@pytest.mark.slow
@pytest.mark.turns(2)
def test_placed():
    pass

def test_short():
    pass

@pytest.mark.turns("all")
def test_dear():
    pass
"""


def git(folder, *arguments):
    settings = ["-c", "user.name=n", "-c", "user.email=e@example.invalid", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", str(folder), *settings, *arguments], check=True, capture_output=True)


@pytest.fixture(name="repository")
def fixture_repository(tmp_path):
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "-q")
    return folder


def test_four_commits_in_a_row_have_four_turns_and_a_commit_always_the_same(repository):
    assert turns.TURNS == 4, "no story is left out in more than four commits"
    found = []
    for number in range(2 * turns.TURNS):
        git(repository, "commit", "-q", "--allow-empty", "-m", str(number))
        found.append(turns.turn_of(repository)[0])
        assert turns.turn_of(repository)[0] == found[-1]
    assert sorted(found[:turns.TURNS]) == list(range(turns.TURNS)) and found[:turns.TURNS] == found[turns.TURNS:]


def test_each_story_of_the_list_is_one_of_the_tree():
    """A name that nobody has any more would let its successor run each time, and one of a marked story says nothing."""
    wrong = []
    for entry in sorted(turns.LONG):
        file, _, story = entry.partition("::")
        found = [path for path in ROOT.glob(f"tests/*/{file}") if re.search(rf"^def {story}\(", path.read_text(encoding="utf-8"), re.MULTILINE)]
        wrong += [] if len(found) == 1 else [f"tests/turns.txt: {entry} is {'no story' if not found else 'more than one'}"]
    assert not wrong, "\n".join(wrong)


def test_a_listed_story_takes_turns_with_all_its_cases():
    assert turns.listed("# long\na_test.py::test_a # 12 s\n\nb_test.py::test_b\n") == {"a_test.py::test_a", "b_test.py::test_b"}


def test_the_list_is_made_from_what_a_check_measured_and_keeps_who_had_no_turn_in_it():
    times = ("80.0\tbuild asan\n9.0\tend to end: tests.e2e.a_test.test_a[x]\n4.0\tend to end: tests.e2e.a_test.test_b[1]\n4.0\tend to end: tests.e2e.a_test.test_b[2]\n"
             "300.0\tcluster: tests.cluster.b_test.test_marked\n1.0\tend to end: tests.e2e.a_test.test_short\n2.0\tcluster: tests.cluster.b_test.test_quick_now\n")
    before = "# long\nb_test.py::test_quick_now # 20\nc_test.py::test_of_another_turn # 30\n"
    made = turns.list_of(times, before, marked=lambda story: story.endswith("marked"))
    assert made.splitlines()[1:] == ["a_test.py::test_a # 9", "a_test.py::test_b # 8", "c_test.py::test_of_another_turn # 30"]
    assert turns.listed(made) == {"a_test.py::test_a", "a_test.py::test_b", "c_test.py::test_of_another_turn"}


def test_who_is_marked_is_not_listed_as_well():
    assert turns.is_marked("node_test.py::test_a_job_grows_onto_a_new_machine_and_shrinks")
    assert not turns.is_marked("install_test.py::test_the_quick_start_is_applied_is_watched_and_ends_with_the_weights_of_a_local_run")


def test_a_history_that_is_cut_off_is_said_and_has_a_turn_all_the_same(repository, tmp_path):
    for number in range(3):
        git(repository, "commit", "-q", "--allow-empty", "-m", str(number))
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{repository}", "cut")
    turn, why = turns.turn_of(tmp_path / "cut")
    assert turn in range(turns.TURNS) and "cut off" in why
    assert turns.turn_of(tmp_path)[1] == "no commit here"


def names_of(folder, turn):
    """The tests that ran, and what was told of turns."""
    report = folder / "junit.xml"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests"), "RINGMASTER_TURN_REPORT": str(folder / "told"), "PYTHONDONTWRITEBYTECODE": "1"}
    environment.pop("RINGMASTER_TURN", None)
    environment |= {} if turn is None else {"RINGMASTER_TURN": str(turn)}
    subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "turns", f"--junitxml={report}", str(folder / "a_test.py")],
                   env=environment, check=True, capture_output=True)
    told = json.loads((folder / "told").read_text()) if turn is not None else None
    return {case.get("name") for case in check_all.ElementTree.parse(report).iter("testcase")}, told


def test_each_story_has_one_turn_or_waits_for_all_and_what_takes_no_turns_always_runs(tmp_path):
    (tmp_path / "a_test.py").write_text(STORIES)
    every, _ = names_of(tmp_path, None)
    assert len(every) == 27 and "test_dear" in every
    ran, seen = [], 0
    for turn in range(turns.TURNS):
        names, told = names_of(tmp_path, turn)
        assert ("test_placed" in names) == (turn == 2) and "test_short" in names
        seen += told["a_test.py::test_long"][0]
        assert told["a_test.py::test_long"][1] == 24 and told["a_test.py::test_placed"] == [int(turn == 2), 1]
        assert told["a_test.py::test_dear"] == [0, 1]
        ran += names - {"test_short"}
    assert sorted(ran) == sorted(every - {"test_short", "test_dear"}) and seen == 24


@pytest.fixture(name="watch")
def fixture_watch(monkeypatch):
    """A check of its own, in its last moment."""
    watch = check_run.Watch(limit_s=1)
    monkeypatch.setattr(check_all, "WATCH", watch)
    return watch


def test_what_runs_when_the_time_is_over_is_ended_and_nothing_more_starts(watch, monkeypatch):
    monkeypatch.setattr(check_run, "GRACE_S", 1)  # it does not care for being interrupted
    code, text = watch.run(["sh", "-c", "echo begun; trap '' INT; sleep 1000 & wait; wait; sleep 1000"])
    assert code == check_run.OVER and text.startswith("begun"), text
    assert "more than" in watch.stopped
    assert watch.run(["true"])[0] == check_run.OVER


def is_alive(pid):
    """It may be a zombie until whoever adopts it looks."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("ends", [True, False])
def test_a_stray_in_a_session_of_its_own_is_not_waited_for_but_killed_and_said(watch, monkeypatch, capsys, tmp_path, ends):
    """It holds the command's output open, and no signal to the command's session finds it."""
    monkeypatch.setattr(check_run, "GRACE_S", 1)
    watch.limit_s = 600 if ends else 1
    stray = tmp_path / "stray"
    begun = f"setsid sh -c 'echo $$ > {stray}; exec sleep 1000' & while [ ! -s {stray} ]; do sleep 0.01; done; echo begun"
    code, text = watch.run(["sh", "-c", begun + ("" if ends else "; trap '' INT; sleep 1000; true")])
    pid = int(stray.read_text())
    try:
        assert code == (0 if ends else check_run.OVER) and text.startswith("begun\n"), text
        assert f": {pid} sleep 1000" in capsys.readouterr().out
        processes.until(lambda: not is_alive(pid), "the stray has ended", 60)
    finally:
        if is_alive(pid):
            os.kill(pid, signal.SIGKILL)


def test_of_a_command_that_takes_long_it_is_said_that_it_runs(monkeypatch, capsys):
    monkeypatch.setattr(check_run, "SLOW_S", 0)
    code, _ = check_run.Watch(limit_s=600).run(["sh", "-c", "sleep 1000"], timeout=2)
    assert code == check_run.OVER and re.search(r"^under way since \d+ s: sh -c sleep 1000$", capsys.readouterr().out, re.M)


def test_what_the_stories_had_found_when_the_time_was_over_is_counted(watch, tmp_path, monkeypatch):
    """pytest is interrupted, not killed: it tells what it knows."""
    monkeypatch.setattr(check_run, "GRACE_S", 200)  # this is not about how long that takes, beside whatever else the machine does
    (tmp_path / "a_test.py").write_text("import pathlib, time\n\ndef test_good():\n    pass\n\ndef test_endless():\n"
                                        "    pathlib.Path(__file__).with_name('under-way').touch()\n    time.sleep(1000)\n")
    watch.limit_s = 600
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        found = pool.submit(check_all.pytest, "label", [str(tmp_path)], workers=1)
        processes.until((tmp_path / "under-way").exists, "the endless test runs", 120)
        watch.stop("over")
        count = found.result()
    assert count.passed >= 1 and count.failed >= 1, count


def test_a_check_that_was_stopped_fails_and_names_the_ten_slowest_before_its_last_line(watch, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(check_all, "TIMES", tmp_path / "times.txt")
    for number in range(12):
        watch.note(f"story {number}", number)
    watch.stop("the check was stopped by SIGTERM")
    assert check_all.conclude(check_all.Count(passed=3)) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "3 passed, 1 failed, 0 skipped"
    assert [line.split("story ")[1] for line in lines if "story " in line] == [str(number) for number in range(11, 1, -1)]
    assert any("stopped by SIGTERM" in line for line in lines)
    assert (tmp_path / "times.txt").read_text().splitlines() == [f"{number}.0\tstory {number}" for number in range(11, -1, -1)]


def test_a_signal_ends_the_check_with_its_count(tmp_path):
    """What runs then is interrupted, whatever it is."""
    program = (f"import sys; sys.path.insert(0, {str(ROOT / 'tools')!r})\nimport check_all\n"
               "def check(total, *_):\n    total.add(check_all.one('first', True)); print('under way', flush=True)\n"
               "    check_all.run_logged(['sleep', '1000'])\ncheck_all.check = check\n"
               f"check_all.TIMES = check_all.Path({str(tmp_path / 'times.txt')!r})\nsys.exit(check_all.main())\n")
    with subprocess.Popen([sys.executable, "-c", program, "--no-cluster"], stdout=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        for line in process.stdout:
            if line == "under way\n":
                break
        process.send_signal(signal.SIGTERM)
        said = process.stdout.read().splitlines()
    assert process.returncode == 1 and said[-1] == "1 passed, 1 failed, 0 skipped", said
