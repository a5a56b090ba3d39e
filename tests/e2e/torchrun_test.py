"""A command that is torchrun, which starts its ranks itself: Debian's, with real processes under `ringmaster run`."""

import json
import os
import signal
import socket
import subprocess

import pytest

import rig
from launch_test import PROGRAMS, check_ended, generations, ledger, nobody_met_an_older_one, program_job

pytestmark = pytest.mark.turns

MODULE = ["-m", "torch.distributed.run"]
# torch 1.13 under Python 3.11 knows no redirection but that of one stream: neither none, which is the default, nor both.
ENV = {"PET_REDIRECTS": "1", "PET_TEE": "1"}
A_WORKER = 2  # ranks of each

# What torchrun may set otherwise than we do, and why (docs/programs.md).
OTHERWISE = {"MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_ERROR_FILE", "TORCHELASTIC_USE_AGENT_STORE"}
OLD_NAMES = {"NCCL_ASYNC_ERROR_HANDLING": "TORCH_NCCL_ASYNC_ERROR_HANDLING"}  # of torch before 2.2


def torchrun_job(folder, python, script, *more, **fields):
    """With two workers; fields as those of program_job."""
    settings = {"workers": 2, "launch__numProcPerNode": A_WORKER, "elasticity__joinWindow": "500ms", **fields}
    return program_job(folder, [python, *MODULE, PROGRAMS / script, *more], **settings)


@pytest.fixture(name="env")
def environment_of_torchrun(tmp_path):
    (tmp_path / "logs").mkdir()
    return {**ENV, "PET_LOG_DIR": str(tmp_path / "logs")}


def ledger_job(folder, python, *more, **fields):
    return torchrun_job(folder, python, "ledger.py", folder / "ledger", 0, *more, **fields)


def starts_of_all(folder, ranks, before):
    """Of the newest generation, where all of that many ranks began and it is a later one than `before`; else None."""
    seen = generations(folder) if (folder / "ledger").exists() else []
    whole = len(seen) > before and sorted(line["rank"] for line in seen[-1]) == list(range(ranks))
    return seen[-1] if whole else None


def until_begun(folder, ranks, before=0):
    rig.until(lambda: starts_of_all(folder, ranks, before), f"{ranks} ranks", rig.DEADLINE_S)
    return starts_of_all(folder, ranks, before)


def both(run):
    """The members of the first ring that has both workers."""
    return run.read_until("ringFormed", members=lambda members: len(members) == 2)["members"]


def set_by_torchrun(python, folder, env):
    """{rank: {name: value}} of what torchrun by itself adds to what it found, in a job of one machine."""
    folder.mkdir()
    before = {name: value for name, value in os.environ.items() if not name.startswith(("RINGMASTER_", "OMP_"))}
    before.update(env, RINGMASTER_GENERATION="none")  # the ledger asks for it
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [python, *MODULE, "--nnodes=1", f"--nproc_per_node={A_WORKER}", "--max_restarts=0", f"--master_port={port}", PROGRAMS / "ledger.py",
             folder / "ledger", "0"]
    run = subprocess.run(list(map(str, words)), env=before, check=False, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return {line["rank"]: {name: value for name, value in line["environment"].items() if before.get(name) != value}
            for line in ledger(folder, "start")}


def test_a_process_finds_each_name_that_torchrun_sets_with_its_value(finish, tmp_path, reference_python, env):
    """Ours are started without torchrun, by the same Python, so that what that sets is the same in both."""
    theirs = set_by_torchrun(reference_python, tmp_path / "theirs", env)
    ours = tmp_path / "ours"
    job = program_job(ours, [reference_python, PROGRAMS / "ledger.py", ours / "ledger", 0], workers=1, launch__numProcPerNode=A_WORKER)
    run = finish(job)
    assert run.code == 0, run.stderr
    found = {line["rank"]: line["environment"] for line in ledger(ours, "start")}
    assert sorted(found) == sorted(theirs) == [0, 1]
    for rank, names in theirs.items():
        assert len(names) > 15, names
        expected = {OLD_NAMES.get(name, name): value for name, value in names.items() if name not in {*OTHERWISE, "MASTER_ADDR"}}
        assert {name: found[rank].get(name) for name in expected} == expected
        assert OTHERWISE <= set(found[rank])


@pytest.mark.parametrize("name, workers", [("kill", 2), ("term", 1), ("join", 3)])
def test_each_change_of_members_starts_every_torchrun_anew_with_all_its_ranks(launch, tmp_path, reference_python, env, name, workers):
    """Who is killed is replaced; newcomers come as the first generation begins."""
    go_on, drill = tmp_path / "go on", ["--drill", "join@2s"] if name == "join" else []
    run = launch(ledger_job(tmp_path, reference_python, "until", go_on, elasticity__lostAfter="2s"), *drill, env=env)
    members, seen = both(run), 0
    if name != "join":
        until_begun(tmp_path, 2 * A_WORKER)
        seen = len(generations(tmp_path))
        os.kill(members[1]["agentPid"], signal.SIGKILL if name == "kill" else signal.SIGTERM)
    last = until_begun(tmp_path, workers * A_WORKER, seen)
    go_on.touch()
    assert run.wait() == 0, run.stderr
    assert nobody_met_an_older_one(tmp_path)
    assert {line["rank"] for line in ledger(tmp_path, "end")} == set(range(workers * A_WORKER))
    assert {line["environment"]["GROUP_WORLD_SIZE"] for line in last} == {str(workers)}
    assert len({line["environment"]["MASTER_PORT"] for line in ledger(tmp_path, "start")}) == len(generations(tmp_path))
    if name == "term":  # torchrun passes it on
        assert {line["rank"] for line in ledger(tmp_path, "asked")} == set(range(2 * A_WORKER))
    check_ended(tmp_path)
    rig.until(lambda: not rig.marked_processes(run.mark), "the end of every torchrun")


def test_the_ranks_of_a_torchrun_find_the_job_as_a_whole(finish, tmp_path, reference_python, env):
    """torchrun is found by its name, too, and started once a worker, with no restarts of its own."""
    torchrun = tmp_path / "torchrun"
    torchrun.write_text(f"#!/bin/sh\nenv | grep ^PET_ >{tmp_path}/options-$PET_NODE_RANK\nexec {reference_python} {' '.join(MODULE)} \"$@\"\n")
    torchrun.chmod(0o755)
    words = [torchrun, PROGRAMS / "ledger.py", tmp_path / "ledger", 0]
    run = finish(program_job(tmp_path, words, workers=2, launch__numProcPerNode=A_WORKER), env=env)
    assert run.code == 0, run.stderr
    for node in range(2):
        options = dict(line.split("=", 1) for line in (tmp_path / f"options-{node}").read_text().splitlines())
        assert options.pop("PET_MASTER_PORT").isdigit() and env.items() <= options.items()
        assert {name: value for name, value in options.items() if name not in env} == {
            "PET_NNODES": "2", "PET_NODE_RANK": str(node), "PET_NPROC_PER_NODE": str(A_WORKER), "PET_MAX_RESTARTS": "0",
            "PET_MASTER_ADDR": "127.0.0.1", "PET_RDZV_ID": "prog"}
    seen = {line["rank"]: line["environment"] for line in ledger(tmp_path, "start")}
    assert sorted(seen) == [0, 1, 2, 3]
    for rank, names in seen.items():
        expected = {"WORLD_SIZE": 4, "LOCAL_WORLD_SIZE": A_WORKER, "LOCAL_RANK": rank % A_WORKER, "GROUP_RANK": rank // A_WORKER, "GROUP_WORLD_SIZE": 2,
                    "ROLE_RANK": rank, "MASTER_ADDR": "127.0.0.1", "TORCHELASTIC_MAX_RESTARTS": 0, "TORCHELASTIC_RUN_ID": "prog",
                    "OMP_NUM_THREADS": 1, "RINGMASTER_GENERATION": "1.1"}
        assert {name: names.get(name) for name in expected} == {name: str(value) for name, value in expected.items()}
        assert os.path.basename(names["RINGMASTER_SOCKET"])


@pytest.mark.parametrize("code", [3, -signal.SIGKILL])
def test_a_rank_that_fails_is_a_failure_of_its_torchrun(finish, tmp_path, reference_python, env, code):
    """Which ends with 1, whatever its rank ended with; its own words on that are the last. (Of several it would wait five minutes for the others.)"""
    run = finish(ledger_job(tmp_path, reference_python, "fail", 1, code, "until", tmp_path / "never", workers=1, failurePolicy__maxRestarts=0),
                 env=env)
    assert run.code == 5
    told = run.the("programFailed")
    assert (told["worker"], told.get("rank"), told["programExitCode"]) == (0, None, 1)
    assert f"exitcode  : {code} " in told["output"], told
    assert "worker 0: exit code 1: " in run.the("failed")["reason"]
    check_ended(tmp_path)


def test_what_record_writes_down_of_a_rank_is_the_last_word_of_its_torchrun(finish, tmp_path, reference_python, env):
    run = finish(torchrun_job(tmp_path, reference_python, "recorded.py", 1, workers=1, failurePolicy__maxRestarts=0), env=env)
    assert run.code == 5
    assert run.the("failed")["reason"].endswith("worker 0: exit code 1: ValueError: as it was asked to"), run.the("failed")
    assert "raise ValueError" in run.the("programFailed")["output"]


def test_data_parallel_training_under_torchrun_goes_on_after_a_loss(launch, tmp_path, reference_python, env):
    def steps():
        return [int(line.split()[0]) for line in (tmp_path / "steps").read_text().splitlines()] if (tmp_path / "steps").exists() else []

    run = launch(torchrun_job(tmp_path, reference_python, "ddp.py", tmp_path, 300), env=env)
    members = both(run)
    rig.until(lambda: len(steps()) >= 20, "twenty steps", rig.DEADLINE_S)
    os.kill(members[1]["agentPid"], signal.SIGKILL)
    assert run.wait() == 0, run.stderr
    assert sorted(set(steps())) == list(range(1, 301))
    assert len(run.of("ringFormed")) > 1
