"""What surrounds a program and is not as one would have it: its folder for temporary files, who takes its output, and what it writes."""

import os
import subprocess
import sys
import tempfile

import pytest

import rig
from elastic_library_test import ENV, PROGRAMS, elastic_job
from launch_test import program_job

NUMPY = [sys.executable, PROGRAMS / "elastic_numpy.py", 0]
LOOKS = "import os, stat; print('own', os.environ['TMPDIR'], os.path.dirname(os.environ['RINGMASTER_SOCKET']))"


def folder_of_kind(tmp_path, kind):
    folder = tmp_path / ("long" * 30) if kind == "long" else tmp_path / kind
    while kind == "longer than any path" and len(str(folder)) < 1100:
        folder = folder / ("long" * 30)
    if kind != "absent":
        folder.mkdir(parents=True)
    return folder


OF_NO_USE = {"long": "is longer than 81 characters", "longer than any path": "is longer than 81 characters",
             "absent": "No such file or directory"}


@pytest.mark.parametrize("kind", OF_NO_USE)
def test_a_tmpdir_of_no_use_stays_the_programs_and_ours_lies_in_tmp(finish, tmp_path, kind):
    place = folder_of_kind(tmp_path, kind)
    run = finish(program_job(tmp_path / "job", [sys.executable, "-c", LOOKS], workers=1), env={"TMPDIR": str(place)})
    assert run.code == 0 and f"own {place} /tmp/ringmaster-" in run.stderr, run.tail()
    assert "the program's sockets and error files lie in /tmp why=" in run.stderr and OF_NO_USE[kind] in run.stderr, run.tail()


def test_a_tmpdir_of_no_use_keeps_no_program_from_its_trainer(finish, tmp_path):
    run = finish(elastic_job(tmp_path, NUMPY, workers=2), env={**ENV, "TMPDIR": str(folder_of_kind(tmp_path, "long"))})
    assert run.code == 0, run.tail()


def test_a_tmpdir_of_the_users_is_used_and_what_lies_there_stays(finish, tmp_path):
    place = folder_of_kind(tmp_path, "mine")
    (place / "file").touch()
    run = finish(program_job(tmp_path / "job", [sys.executable, "-c", LOOKS], workers=1), env={"TMPDIR": str(place)})
    assert run.code == 0 and f"own {place} {place}/ringmaster-" in run.stderr, run.tail()
    assert [entry.name for entry in place.iterdir()] == ["file"]


READ_ONLY = "mount --bind /tmp /tmp && mount -o remount,bind,ro /tmp && exec \"$@\""  # in a namespace of mounts


@pytest.mark.parametrize("mode", ["Restart", "Elastic"])
def test_where_no_folder_can_be_written_to_the_last_word_says_so(tmp_path, mode):
    apart = ["unshare", "-m", "sh", "-c", READ_ONLY, "sh"]
    if subprocess.run([*apart, "true"], check=False, capture_output=True).returncode:
        pytest.skip("no namespace of mounts here")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as store:
        fields = {"failurePolicy__maxRestarts": 0}
        job = elastic_job(tmp_path, NUMPY, workers=1, checkpoint__uri=store, **fields) if mode == "Elastic" else program_job(tmp_path, ["true"], workers=1, **fields)
        done = subprocess.run([*apart, rig.BIN / "ringmaster", "run", job], env={**os.environ, "TMPDIR": str(tmp_path / "absent")}, check=False,
                              capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=rig.DEADLINE_S)
    last = [line for line in done.stderr.splitlines() if line.startswith("ringmaster: ")][-1]
    assert done.returncode and "no folder for the program's sockets and error files: set TMPDIR to one that can be written to (/tmp: Read-only file system; " in last, done.stderr


def failed(finish, tmp_path, script):
    run = finish(program_job(tmp_path, [sys.executable, "-c", script], workers=1, failurePolicy__maxRestarts=0))
    assert run.code == 5, run.tail()
    return run, run.the("programFailed")


def test_bytes_of_zero_end_neither_a_line_nor_the_last_word(finish, tmp_path):
    run, event = failed(finish, tmp_path, r"import sys; sys.stderr.write('before\n\0\0the tail\0 of it\n'); sys.exit(3)")
    assert "[0] \0\0the tail\0 of it\n" in "".join(run._errors), run.tail()
    assert event["reason"] == "rank 0: exit code 3:   the tail  of it" and event["output"] == "before\n  the tail  of it\n", event


def test_bytes_of_zero_in_torchs_error_file_hide_nothing_of_it(finish, tmp_path):
    _, event = failed(finish, tmp_path, """
import json, os, sys
said = {'message': 'ValueError: a\\0b', 'extraInfo': {'py_callstack': 'Traceback\\0\\nValueError: a\\0b', 'timestamp': '1'}}
json.dump({'message': said}, open(os.environ['TORCHELASTIC_ERROR_FILE'], 'w'))
sys.exit(3)""")
    assert event["reason"] == "rank 0: exit code 3: ValueError: a\ufffdb" and event["output"] == "Traceback\ufffd\nValueError: a\ufffdb", event


def test_a_program_that_closes_its_output_runs_on_and_is_told_by_its_code(finish, tmp_path):
    _, event = failed(finish, tmp_path, "import os, time; print('first', flush=True); os.close(1); os.close(2); time.sleep(0.3); os._exit(3)")
    assert event["reason"] == "rank 0: exit code 3: first", event


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_output_that_nobody_takes_holds_no_program_up(tmp_path, stream):
    """Standard error is the program's; of a run's own a reader that goes away wants no more of the run."""
    done = tmp_path / "done"
    script = f"import sys\nfor i in range(20000): print(i, 'x' * 80)\nopen({str(done)!r}, 'w')"
    reads, writes = os.pipe()
    os.close(reads)
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, stream: writes}
    with subprocess.Popen([str(rig.BIN / "ringmaster"), "run", str(program_job(tmp_path, [sys.executable, "-c", script], workers=1))],
                          stdin=subprocess.DEVNULL, **streams) as run:
        os.close(writes)
        run.wait(rig.DEADLINE_S)
    assert done.exists() == (stream == "stderr") and (run.returncode == 0) == (stream == "stderr"), run.returncode
