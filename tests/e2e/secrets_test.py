"""Where credentials must not be: other programs' view of a process, logs, and what a crash leaves behind."""

import hashlib
import hmac
import json
import os
import resource
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

import rig

FIELDS = {"trainer__steps": 100000, "checkpoint__everySteps": 20, "checkpoint__keep": 2, "workers__target": 2}


@pytest.fixture(name="run")
def run_at_work(tmp_path, launch, s3):
    """A run that has saved to its bucket, with all that there is to say in its log."""
    run = launch(rig.make_job(tmp_path, checkpoint__uri=s3.uri, **FIELDS), env={**s3.env, "RINGMASTER_LOG": "debug"})
    run.read_until("checkpointSaved")
    return run


def programs(run):
    """{pid: name of its program} of all processes of a run."""
    found = {}
    for pid in rig.marked_processes(run.mark):
        try:
            found[pid] = Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip()
        except OSError:
            continue
    return found


def test_credentials_are_in_no_environment_command_line_event_or_log(run, s3):
    secret, key_id = s3.env["AWS_SECRET_ACCESS_KEY"], s3.env["AWS_ACCESS_KEY_ID"]
    seen = programs(run)
    assert {"ringmaster", "ringmaster-agen", "ringmaster-trai"} <= set(seen.values()), seen
    for pid, name in seen.items():
        for place in ("environ", "cmdline"):
            held = Path(f"/proc/{pid}/{place}").read_bytes()
            assert rig.MARK.encode() in held or place == "cmdline"
            assert secret.encode() not in held and key_id.encode() not in held, f"{place} of {name}"
            if place == "environ" and name.startswith("ringmaster-trai"):
                assert b"AWS_SECRET_ACCESS_KEY" not in held and b"AWS_ACCESS_KEY_ID" not in held
    run.interrupt()
    assert run.wait() == 130, run.tail()
    assert secret not in run.stderr + json.dumps(run.events)


def signing_key(secret, region):
    """What requests of today are signed with: as good as the secret itself for a day."""
    key = b"AWS4" + secret.encode()
    for word in (time.strftime("%Y%m%d", time.gmtime()), region, "s3"):
        key = hmac.new(key, word.encode(), hashlib.sha256).digest()
    return key


@pytest.fixture(name="cores")
def folder_of_cores(tmp_path, monkeypatch):
    """Where a program that is started now would leave its core dump, with no limit in its way."""
    pattern = Path("/proc/sys/kernel/core_pattern").read_text(encoding="ascii").strip()
    if pattern != "core" and not pattern.startswith("core."):
        pytest.skip(f"core dumps go elsewhere on this machine: {pattern}")
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    if hard != resource.RLIM_INFINITY:
        pytest.skip("core dumps are limited on this machine")
    folder = tmp_path / "cores"
    folder.mkdir()
    monkeypatch.chdir(folder)
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
    yield folder
    resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))


def crash(run, name):
    """SIGABRT for one of the run's programs of that name."""
    pid = next(pid for pid, is_called in programs(run).items() if is_called == name)
    os.kill(pid, signal.SIGABRT)
    rig.until(lambda: pid not in run.left_over(), f"the end of {name}", deadline_s=60)


@pytest.mark.parametrize("allowed", [False, True])
def test_a_crash_leaves_no_credentials_behind(tmp_path, launch, s3, cores, allowed):
    if rig.SANITIZED:
        pytest.skip("AddressSanitizer writes no core dumps")
    env = {**s3.env, **({"RINGMASTER_CORE_DUMPS": "1"} if allowed else {})}
    run = launch(rig.make_job(tmp_path / "job", checkpoint__uri=s3.uri, **FIELDS), env=env)
    run.read_until("checkpointSaved")
    secret, region = s3.env["AWS_SECRET_ACCESS_KEY"], s3.env["AWS_REGION"]
    for name in ("ringmaster-trai", "ringmaster-agen", "ringmaster"):
        crash(run, name)
        dumps = sorted(cores.iterdir())
        assert bool(dumps) == allowed, f"{name}: {dumps}"
        for dump in dumps:
            held = dump.read_bytes()
            assert rig.MARK.encode() in held, f"{dump} is none of a process of this run"
            assert secret.encode() not in held, f"{dump} of {name}"
            assert signing_key(secret, region) not in held, f"{dump} of {name}"
            dump.unlink()


def test_the_operator_shows_no_credentials_and_leaves_none_behind(tmp_path, cores, s3):
    if rig.SANITIZED:
        pytest.skip("AddressSanitizer writes no core dumps")
    secret = s3.env["AWS_SECRET_ACCESS_KEY"]
    with rig.operator_at_work(tmp_path, {**os.environ, **s3.env}) as operator:
        held = Path(f"/proc/{operator.pid}/environ").read_bytes()
        assert b"AWS_REGION" in held and secret.encode() not in held
        operator.send_signal(signal.SIGABRT)
        assert operator.wait(rig.DEADLINE_S) == -signal.SIGABRT
        assert secret.encode() not in operator.stderr.read()
    assert not list(cores.iterdir()), "a core dump was written"
