"""What a user's program says of its progress: through real processes, from ringmaster.report to what the run tells."""

import fcntl
import json
import os
import socket
import subprocess
import sys

import pytest

import rig
from launch_test import PROGRAMS, program_job

PYTHON = rig.BIN.parent / "share/ringmaster/python"


def reporter_job(folder, steps, seconds, *more, **fields):
    return program_job(folder, [sys.executable, PROGRAMS / "reporter.py", steps, seconds, *more], **fields)


def told(run, name):
    return [event for event in run.events if event["event"] == name]


def test_a_script_runs_unchanged_outside_of_a_job_and_report_says_nothing():
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RINGMASTER_")}
    run = subprocess.run([sys.executable, PROGRAMS / "reporter.py", "3", "0"], capture_output=True, text=True,
                         env={**environment, "PYTHONPATH": str(PYTHON)}, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, "made 3 steps\n", "")


def test_what_a_program_reports_is_its_progress(finish, tmp_path):
    run = finish(reporter_job(tmp_path, 6, 0.3, elasticity__heartbeat="100ms"))
    assert run.code == 0, run.stderr
    steps = [event["step"] for event in told(run, "progress")]
    assert steps[-1] == 6 and len(set(steps)) > 2 and set(steps) <= set(range(1, 7)), steps
    assert all(event["steps"] == 6 for event in told(run, "progress"))
    losses = {event["step"]: event["loss"] for event in told(run, "progress")}
    assert losses[6] == pytest.approx(4 / 6)
    assert losses.get(2) is None  # it was no number


def test_who_reports_nothing_has_no_progress(finish, tmp_path):
    run = finish(reporter_job(tmp_path, 3, 0.2, "quiet", elasticity__heartbeat="100ms"))
    assert run.code == 0 and not told(run, "progress")


def test_a_program_whose_reports_stand_still_is_started_anew(finish, tmp_path):
    run = finish(reporter_job(tmp_path, 5, 0.1, "hang", 3, workers=2, elasticity__heartbeat="100ms",
                              elasticity__stepTimeout="2s"))
    assert run.code == 0, run.stderr
    [failed] = told(run, "programFailed")
    assert "it hangs: it reported step 3 of 5" in failed["reason"] and "programExitCode" not in failed
    assert [event["generation"] for event in told(run, "ringFormed")] == [1, 2]
    assert [event["cause"] for event in told(run, "recovered")] == ["Hang"]
    assert told(run, "progress")[-1]["step"] == 5


def test_a_drill_makes_a_program_hang_and_that_is_nobodys_failure(finish, tmp_path):
    """Its processes stand still, its launcher does not."""
    run = finish(reporter_job(tmp_path, 40, 0.2, workers=2, elasticity__heartbeat="100ms", elasticity__stepTimeout="2s",
                              failurePolicy__maxRestarts=0), "--drill", "hang:0@4s")
    assert run.code == 0, run.stderr
    assert [event["spec"] for event in told(run, "drill")] == ["hang:0@4s"]
    [failed] = told(run, "programFailed")
    assert failed["worker"] == 0 and "it hangs: it reported step" in failed["reason"] and "programExitCode" not in failed
    assert [event["cause"] for event in told(run, "recovered")] == ["Hang"] and not told(run, "workerFailed")
    assert [len(event["members"]) for event in told(run, "ringFormed")] == [2, 2]
    assert told(run, "progress")[-1]["step"] == 40


def test_a_program_that_reports_nothing_is_not_made_to_hang(finish, tmp_path):
    run = finish(reporter_job(tmp_path, 4, 1, "quiet", workers=2), "--drill", "hang:0@1s")
    assert run.code == 0 and len(told(run, "ringFormed")) == 1, run.stderr
    assert "drill hang:0@1s: not done, as nobody would see that the program hangs: it has not called ringmaster.report(step)" in run.stderr


@pytest.mark.parametrize("what", ["garbage", "flood"])
def test_whatever_comes_at_the_socket_holds_up_nobody(finish, tmp_path, what):
    run = finish(reporter_job(tmp_path, 4, 0.2, what, workers=2, launch__numProcPerNode=2,
                              elasticity__heartbeat="100ms"), env={"RINGMASTER_LOG": "warn"})
    assert run.code == 0, run.stderr
    assert len(told(run, "ringFormed")) == 1 and not told(run, "programFailed")
    steps = [event["step"] for event in told(run, "progress")]
    assert steps and set(steps) <= {1, 2, 3, 4}
    if what == "garbage":
        assert 0 < run.stderr.count("is no report") <= 2  # once a worker and generation
    else:
        assert not run.stderr.count("is no report")


def test_a_report_that_nobody_reads_holds_up_nobody(tmp_path):
    door = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    door.bind(str(tmp_path / "report"))
    words = "import ringmaster\nfor i in range(100000):\n    ringmaster.report(i, 100000, 0.5)\nprint(i)"
    run = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, timeout=60, check=False,
                         env={**os.environ, "PYTHONPATH": str(PYTHON), "RINGMASTER_SOCKET": str(tmp_path / "report")})
    door.close()
    assert (run.returncode, run.stdout, run.stderr) == (0, "99999\n", "")


WRONG = "import ringmaster as r\nr.report('x')\nr.report(1, loss='y')\nr.report(float('inf'))\nr.report(None)\nprint('on')"


def test_what_is_no_number_is_told_once_and_ends_nothing(tmp_path):
    run = subprocess.run([sys.executable, "-c", WRONG], capture_output=True, text=True, timeout=60, check=False,
                         env={**os.environ, "PYTHONPATH": str(PYTHON), "RINGMASTER_SOCKET": str(tmp_path / "nobody")})
    assert run.returncode == 0 and run.stdout == "on\n"
    assert run.stderr.count("ringmaster.report: report(step, steps, loss) wants numbers") == 1, run.stderr


def test_the_images_own_path_of_modules_stays_in_front(finish, tmp_path):
    (tmp_path / "own").mkdir()
    (tmp_path / "own/mine.py").write_text("")
    words = ("import json, mine, os, sys, ringmaster; "
             f"json.dump([os.environ['PYTHONPATH'], ringmaster.__file__], open({str(tmp_path / 'said')!r}, 'w'))")
    job = program_job(tmp_path / "job", [sys.executable, "-c", words], workers=1)
    assert finish(job, env={"PYTHONPATH": str(tmp_path / "own")}).code == 0
    path, module = json.loads((tmp_path / "said").read_text())
    assert path == f"{tmp_path / 'own'}:{PYTHON}" and module == str(PYTHON / "ringmaster/__init__.py")


def test_the_socket_goes_with_its_launcher(launch, tmp_path):
    words = ["sh", "-c", f"echo $RINGMASTER_SOCKET > {tmp_path}/said.new; mv {tmp_path}/said.new {tmp_path}/said; sleep 60"]
    run = launch(program_job(tmp_path, words, workers=1))
    rig.until(lambda: (tmp_path / "said").exists(), "the program's start")
    path = (tmp_path / "said").read_text().strip()
    folder = os.path.dirname(path)
    assert os.stat(folder).st_mode & 0o777 == 0o700 and os.path.exists(path)
    run.interrupt()
    run.wait()
    rig.until(lambda: not os.path.exists(folder), "the end of the launcher's folder")


def leave_behind(folder, mode=0o700, lock=True, stranger=False):
    folder.mkdir(mode=mode)
    folder.chmod(mode)
    (folder / "error-0.json").write_text("{}")
    if lock:
        (folder / "lock").touch()
    if stranger:
        (folder / "mine").touch()


def test_what_a_killed_launcher_left_goes_with_the_next_and_nothing_else_does(finish, tmp_path):
    place = tmp_path / "t"
    place.mkdir()
    for name, how in {"dead00": {}, "lives0": {}, "older0": {"lock": False}, "public": {"mode": 0o755},
                      "others": {"stranger": True}}.items():
        leave_behind(place / f"ringmaster-{name}", **how)
    leave_behind(place / "elsewhere")
    (place / "ringmaster-linked").symlink_to(place / "elsewhere")
    with open(place / "ringmaster-lives0/lock", "rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert finish(program_job(tmp_path / "job", ["true"], workers=1), env={"TMPDIR": str(place)}).code == 0
    assert sorted(entry.name for entry in place.iterdir()) == [
        "elsewhere", "ringmaster-linked", "ringmaster-lives0", "ringmaster-older0", "ringmaster-others", "ringmaster-public"]
    assert (place / "ringmaster-lives0/error-0.json").exists() and (place / "elsewhere/error-0.json").exists()
    assert (place / "ringmaster-others/mine").exists()


def test_a_file_that_may_not_be_run_is_told_as_that(finish, tmp_path):
    (tmp_path / "train.sh").write_text("#!/bin/sh\n")
    run = finish(program_job(tmp_path, [tmp_path / "train.sh"], workers=1))
    assert run.code == 2 and f"{tmp_path}/train.sh is not executable; chmod +x it, or put what runs it in front" in run.stderr
