"""launch.preload: the next process has its modules imported before it is needed, and nobody can tell otherwise."""

import json
import os
import signal
import sys
from pathlib import Path

import pytest

import rig
from launch_test import PROGRAMS, program_job

IMPORTED = PROGRAMS / "imported"


def mirror_job(folder, form, preload, *more):
    """The same program as a file, a module, code, a folder; with options of the interpreter."""
    package, seen = folder / "pkg", folder / "seen"
    if not package.exists():
        package.mkdir(parents=True)
        source = (PROGRAMS / "mirror.py").read_text()
        (package / "__init__.py").write_text("")
        (package / "__main__.py").write_text(source)
    words = {
        "file": [PROGRAMS / "mirror.py"],
        "options": ["-u", "-W", "ignore", "-Xutf8", "-O", PROGRAMS / "mirror.py"],
        "alone": ["-I", PROGRAMS / "mirror.py"],
        "module": ["-m", "pkg"],
        "folder": [package],
        "code": ["-c", "import runpy, sys; runpy.run_path(%r, run_name='__main__')" % str(PROGRAMS / "mirror.py")],
    }[form]
    return program_job(folder, [sys.executable, *words, seen, *more], workers=1, launch__numProcPerNode=1 if more else 2,
                       launch__preload=json.dumps(preload), failurePolicy__maxRestarts=0)


def seen(folder):
    lines = [json.loads(line) for line in (folder / "seen").read_text().splitlines()]
    (folder / "seen").unlink()
    return sorted(lines, key=lambda line: line["seen"]["environment"]["RANK"])


@pytest.mark.parametrize("form", ["file", "options", "alone", "module", "folder", "code"])
def test_a_program_can_not_tell_whether_its_modules_were_imported_ahead(finish, tmp_path, monkeypatch, form):
    monkeypatch.chdir(tmp_path)
    env = {"MY_OWN": "kept=\ttoo", "PYTHONPATH": "/nowhere", "PYTHONDONTWRITEBYTECODE": "1"}
    assert finish(mirror_job(tmp_path, form, []), env=env).code == 0
    anew = seen(tmp_path)
    assert finish(mirror_job(tmp_path, form, ["decimal"]), env=env).code == 0
    ahead = seen(tmp_path)
    assert [line["imported"] for line in anew + ahead] == [False, False, True, True]
    for one, other in zip(anew, ahead):
        # the one thing that shows: who prints what nobody caught, so that the traceback begins with the program
        assert one["seen"].pop("hook") and not other["seen"].pop("hook")
        assert one["seen"] == other["seen"]


def test_threads_and_helpers_of_a_module_are_as_after_a_fresh_start(finish, tmp_path):
    """A module may start threads, whose priority is their own, and processes, which find an empty standard input."""
    env = {"PYTHONPATH": str(IMPORTED)}
    job = mirror_job(tmp_path, "file", ["busy"])
    assert finish(job, env=env).code == 0
    for line in seen(tmp_path):
        assert line["imported"] and line["seen"]["threads"] == [line["seen"]["nice"]] * 2
        assert line["seen"]["files"][:3] == [0, 1, 2] and line["seen"]["stdin"] == "/dev/null"


def traceback(run):
    lines = run.stderr.splitlines()
    return lines[lines.index("[0] Traceback (most recent call last):"):][:6]


def test_a_traceback_is_the_programs_own(finish, tmp_path):
    told = []
    for preload in ([], ["decimal"]):
        run = finish(mirror_job(tmp_path, "file", preload, "raise"))
        assert run.code == 5
        told.append(traceback(run))
    assert told[0] == told[1] and told[0][-1] == "[0] ValueError: as it was asked to"


def second_job(folder, workers):
    return program_job(folder, [sys.executable, IMPORTED / "second.py", folder, workers], workers=workers,
                       launch__preload='["early"]')


def said(folder):
    path = folder / "said"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def notes(folder):
    path = folder / "notes"
    return path.read_text().split() if path.exists() else []


def test_each_generation_is_taken_over_by_processes_that_waited_for_it(finish, tmp_path):
    run = finish(second_job(tmp_path, 3), env={"EARLY_NOTES": str(tmp_path / "notes"), "RINGMASTER_LOG": "info"})
    assert run.code == 0, run.stderr
    assert sorted((line["generation"], line["rank"], line["ahead"]) for line in said(tmp_path)) == [
        (generation, rank, True) for generation in (0, 1) for rank in range(3)]
    assert "the next process waits with its modules imported" in run.stderr and "mebibytes=" in run.stderr
    rig.until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in notes(tmp_path)), "the end of those that still waited")


def test_one_that_is_killed_while_it_waits_costs_only_its_imports(launch, tmp_path):
    run = launch(second_job(tmp_path, 1), env={"EARLY_NOTES": str(tmp_path / "notes")})
    rig.until(lambda: said(tmp_path) and os.kill(run.pid, 0) is None, "the first generation")
    first = said(tmp_path)[0]["pid"]

    def waiting():
        return [int(pid) for pid in notes(tmp_path) if int(pid) != first]
    # the program fails as soon as it sees the second import: whoever comes first, a process that is gone is not waited for
    rig.until(waiting, "the next process")
    try:
        os.kill(waiting()[0], signal.SIGKILL)
    except ProcessLookupError:
        pass
    assert run.wait() == 0, run.stderr
    assert [line["generation"] for line in said(tmp_path)][0] == 0


def test_a_module_that_is_not_there_is_said_and_the_program_runs(finish, tmp_path):
    run = finish(mirror_job(tmp_path, "file", ["decimal", "no_such_module_anywhere"]))
    assert run.code == 0
    assert "launch.preload: no_such_module_anywhere can't be imported: ModuleNotFoundError" in run.stderr
    assert [line["imported"] for line in seen(tmp_path)] == [False, False]


def test_preload_is_refused_for_what_is_no_python(finish, tmp_path):
    for words, why in ((["sh", "-c", "true"], "spec.launch.preload needs a command that begins with a Python and a script, not sh"),
                       ([sys.executable, "/work/torch.py"], "spec.launch.preload has torch, which is the program itself"),
                       ([sys.executable, "-m", "torch.distributed.run", "x.py"],
                        "spec.launch.preload means nothing to a launcher that starts the processes itself")):
        run = finish(program_job(tmp_path, words, launch__preload='["torch"]'))
        assert run.code == 2 and why in run.stderr
