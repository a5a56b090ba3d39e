"""A user's own program under `ringmaster run`: its environment, its ends, and what becomes of its processes when the
members change."""

import json
import os
import signal
import sys
from pathlib import Path

import pytest

import rig

PROGRAMS = rig.ROOT / "tests/programs"


def program_job(folder, words, workers=3, **fields):
    """A job that runs these words; fields are paths below spec with '__' for '.'."""
    folder.mkdir(parents=True, exist_ok=True)
    settings = {"workers.target": workers, "workers.min": 1, "workers.max": 8, "launch.mode": "Restart",
                "launch.gracePeriod": "5s", "elasticity.joinWindow": "10s",
                "launch.command": json.dumps([str(word) for word in words])}
    settings.update({name.replace("__", "."): value for name, value in fields.items()})
    tree = {"apiVersion": "ringmaster.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": "prog"}, "spec": {}}
    for path, value in settings.items():
        node = tree["spec"]
        *parents, leaf = path.split(".")
        for name in parents:
            node = node.setdefault(name, {})
        node[leaf] = value
    (folder / "job.yaml").write_text("\n".join(rig.yaml_lines(tree)) + "\n")
    return folder / "job.yaml"


def ledger_job(folder, seconds, *more, **fields):
    return program_job(folder, [sys.executable, PROGRAMS / "ledger.py", folder / "ledger", seconds, *more], **fields)


def ledger(folder, what=None):
    whole = (folder / "ledger").read_text().rpartition("\n")[0]  # the last line may be half there
    lines = [json.loads(line) for line in whole.splitlines()]
    return [line for line in lines if what in (None, line["what"])]


def generations(folder):
    """The starts of each generation, in the order of their coming."""
    found = {}
    for line in ledger(folder, "start"):
        found.setdefault(line["generation"], []).append(line)
    return list(found.values())


def nobody_met_an_older_one(folder):
    return all(not line["older"] for line in ledger(folder, "start"))


def check_ended(folder):
    """All processes that ever said a word are gone, their grandchildren too."""
    pids = [line["pid"] for line in ledger(folder)] + [line["child"] for line in ledger(folder, "child")]
    rig.until(lambda: not any(alive(pid) for pid in pids), "the end of every process of the program")


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def test_every_process_finds_torchruns_names_with_torchruns_values(finish, tmp_path):
    run = finish(ledger_job(tmp_path, 0.2, launch__numProcPerNode=2), env={"MY_OWN": "kept", "RINGMASTER_LOG": "info"})
    assert run.code == 0
    starts = {line["rank"]: line["environment"] for line in ledger(tmp_path, "start")}
    assert sorted(starts) == [0, 1, 2, 3, 4, 5]
    for rank, seen in starts.items():
        node, local = divmod(rank, 2)
        expected = {"RANK": rank, "WORLD_SIZE": 6, "LOCAL_RANK": local, "LOCAL_WORLD_SIZE": 2, "GROUP_RANK": node,
                    "GROUP_WORLD_SIZE": 3, "ROLE_RANK": rank, "ROLE_WORLD_SIZE": 6, "ROLE_NAME": "default",
                    "TORCHELASTIC_RESTART_COUNT": 0, "TORCHELASTIC_MAX_RESTARTS": 0, "TORCHELASTIC_RUN_ID": "prog",
                    "TORCHELASTIC_USE_AGENT_STORE": "False", "TORCH_NCCL_ASYNC_ERROR_HANDLING": 1,
                    "OMP_NUM_THREADS": 1, "JAX_NUM_PROCESSES": 6, "JAX_PROCESS_ID": rank, "MASTER_ADDR": "127.0.0.1",
                    "RINGMASTER_HOSTS": "127.0.0.1,127.0.0.1,127.0.0.1", "RINGMASTER_GENERATION": "1.1",
                    "MY_OWN": "kept"}
        assert {name: seen.get(name) for name in expected} == {k: str(v) for k, v in expected.items()}
        assert seen["JAX_COORDINATOR_ADDRESS"] == f"127.0.0.1:{seen['MASTER_PORT']}"
        assert {name for name in seen if name.startswith("RINGMASTER_")} == {"RINGMASTER_HOSTS", "RINGMASTER_SOCKET",
                                                                             "RINGMASTER_GENERATION"}
    assert len({seen["MASTER_PORT"] for seen in starts.values()}) == 1
    assert len({seen["TORCHELASTIC_ERROR_FILE"] for seen in starts.values()}) == 6


def test_a_process_has_no_file_of_its_launchers(finish, tmp_path):
    assert finish(ledger_job(tmp_path, 0.1, workers=1)).code == 0
    [start] = ledger(tmp_path, "start")
    assert start["files"][:3] == [0, 1, 2] and len(start["files"]) == 4  # and the listing of /proc itself


DRILLS = {
    "kill": (["kill:1@2s"], [3, 2]),
    "term": (["term:1@2s"], [3, 2]),
    "join": (["join@2s"], [3, 4]),
    "trainer": (["trainer:1@2s"], [3, 3]),
    "stop": (["stop:1@2s"], [3, 2]),
    "coordinator": (["coordinator@2s"], [3]),
    "several": (["term:2@2s", "join@5s", "kill:0@8s"], [3, 2, 3, 2]),
}


@pytest.mark.parametrize("name", DRILLS)
def test_each_change_of_members_starts_every_process_anew_and_none_beside_an_older_one(finish, tmp_path, name):
    drills, worlds = DRILLS[name]
    # half a second for who comes back: then a generation of those who are there is not waited for in vain
    job = ledger_job(tmp_path, 4, elasticity__joinWindow="500ms", elasticity__lostAfter="2s")
    run = finish(job, *[word for drill in drills for word in ("--drill", drill)])
    assert run.code == 0, run.stderr
    seen = generations(tmp_path)
    cut_off = name == "stop"  # what a machine still runs that nobody can reach, nobody can end
    assert cut_off or nobody_met_an_older_one(tmp_path)
    ranks = [sorted(line["rank"] for line in starts) for starts in seen]
    assert all(found == list(range(len(found))) for found in ranks), ranks
    assert is_history_of([len(found) for found in ranks], worlds), ranks
    assert len(ledger(tmp_path, "end")) >= worlds[-1]
    complete = [event for event in run.events if event["event"] == "complete"]
    assert complete and complete[0]["exitCode"] == 0 and "weightsSha256" not in complete[0]
    check_ended(tmp_path)
    rig.until(lambda: not rig.marked_processes(run.mark), "the end of every launcher")


@pytest.mark.slow
def test_a_launcher_that_stands_still_is_replaced_when_all_that_it_started_is_ended(launch, tmp_path):
    """Half a minute without a sign of it. The other one may be alone in a generation, until it is back."""
    words = f"echo $TORCHELASTIC_RESTART_COUNT $$ $PPID >>{tmp_path}/starts; [ $TORCHELASTIC_RESTART_COUNT -gt 0 ] && [ $WORLD_SIZE -eq 2 ] || exec sleep 600"
    run = launch(program_job(tmp_path, ["sh", "-c", words], workers=2, elasticity__joinWindow="1s"))

    def starts():
        path = tmp_path / "starts"
        return [[int(n) for n in line.split()] for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []
    rig.until(lambda: len(starts()) >= 2, "a generation of both")
    _, pid, launcher = starts()[0]
    os.kill(launcher, signal.SIGSTOP)
    run.wait()
    assert run.code == 0 and not alive(pid) and not alive(launcher), run.tail()
    assert len([start for start in starts() if start[0] > 0]) >= 2 and "its trainer hangs" in "".join(run._errors), run.tail()


def is_history_of(seen, worlds):
    """These worlds came in this order; between them only such as lacked one who was late, and is in the one behind."""
    rest = iter(worlds)
    expected = next(rest)
    for i, world in enumerate(seen):
        if world == expected:
            expected = next(rest, None)
        elif i + 1 == len(seen) or world >= seen[i + 1]:
            return False
    return expected is None and seen[0] == worlds[0]


def test_a_history_may_have_generations_that_lack_who_was_late_and_no_others():
    assert is_history_of([3, 3], [3, 3]) and is_history_of([3, 1, 2, 3], [3, 3]) and is_history_of([3, 1, 2], [3, 2])
    assert not any(is_history_of(seen, [3, 2]) for seen in ([3], [2], [3, 3, 2], [3, 2, 2], [3, 2, 1], [1, 3, 2], [2, 3, 2]))


def test_an_announced_change_lets_the_program_end_by_itself(finish, tmp_path):
    run = finish(ledger_job(tmp_path, 4, elasticity__joinWindow="500ms"), "--drill", "term:1@2s")
    assert run.code == 0
    first = generations(tmp_path)[0][0]["generation"]
    asked = {line["rank"] for line in ledger(tmp_path, "asked") if line["generation"] == first}
    assert asked == {0, 1, 2}


@pytest.mark.parametrize("code", [2, 3, 137, 143, -signal.SIGKILL, -signal.SIGABRT])
def test_a_failure_starts_all_anew_and_one_too_many_ends_the_job_with_its_reason(finish, tmp_path, code):
    job = ledger_job(tmp_path, 30, "fail", 1, code, failurePolicy__maxRestarts=1)
    run = finish(job)
    assert run.code == 5
    [failed] = [event for event in run.events if event["event"] == "failed"]
    how = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
    assert f"worker 1: rank 1: {how}: the reason why" in failed["reason"], failed
    seen = generations(tmp_path)  # others may be told to go before they have said a word
    assert [1 in [line["rank"] for line in starts] for starts in seen] == [True, True]
    told = [event for event in run.events if event["event"] == "programFailed"]
    assert [(event["worker"], event["rank"], event["programExitCode"]) for event in told] == 2 * [(1, 1, 128 - code if code < 0 else code)]
    assert all("the reason why" in event["output"] for event in told)
    check_ended(tmp_path)


RULES = '[{onExitCodes: [42], action: FailJob}, {onExitCodes: [7], action: Restart}]'


def test_a_rule_ends_the_job_at_the_first_failure(finish, tmp_path):
    run = finish(ledger_job(tmp_path, 30, "fail", 1, 42, failurePolicy__rules=RULES))
    assert run.code == 5
    [failed] = [event for event in run.events if event["event"] == "failed"]
    assert "worker 1: rank 1: exit code 42: the reason why; failurePolicy.rules end the job at that exit code" in failed["reason"]
    assert failed["programExitCode"] == 42 and failed["exitCode"] == 5
    assert len(generations(tmp_path)) == 1
    check_ended(tmp_path)


def test_a_rule_spares_failures_and_the_job_goes_on(finish, tmp_path):
    """Three of them, where none is allowed; then the program does its work."""
    run = finish(ledger_job(tmp_path, 0.3, "fail", 1, 7, "times", 3, failurePolicy__rules=RULES, failurePolicy__maxRestarts=0))
    assert run.code == 0, run.stderr
    starts = generations(tmp_path)
    assert len(starts) == 4
    counts = [{line["environment"]["TORCHELASTIC_RESTART_COUNT"] for line in generation} for generation in starts]
    assert counts == [{"0"}, {"1"}, {"2"}, {"3"}]
    assert [event["worker"] for event in run.events if event["event"] == "programFailed"] == [1, 1, 1]


def test_a_rule_that_is_none_is_refused_with_its_line(finish, tmp_path):
    run = finish(ledger_job(tmp_path, 1, failurePolicy__rules='[{onExitCodes: [3], action: Ignore}]'))
    assert run.code == 2
    assert "spec.failurePolicy.rules has a rule 1 whose action is Ignore; write FailJob or Restart" in run.stderr


def test_nothing_of_what_a_program_says_is_told_where_the_job_does_not_want_it(finish, tmp_path):
    run = finish(ledger_job(tmp_path, 30, "fail", 0, 3, workers=1, failurePolicy__maxRestarts=0,
                            launch__tellOutput=False))
    [failed] = [event for event in run.events if event["event"] == "failed"]
    assert failed["reason"].endswith("exit code 3") and run.code == 5
    assert not any("output" in event for event in run.events)


def test_a_program_that_ignores_everything_and_floods_its_output_is_ended_with_its_grandchildren(finish, tmp_path):
    run = finish(ledger_job(tmp_path, 3, "stubborn", launch__gracePeriod="300ms", elasticity__joinWindow="500ms"),
                 "--drill", "term:2@1s", "--drill", "trainer:1@2500ms")
    assert run.code == 0, run.stderr
    assert nobody_met_an_older_one(tmp_path)
    assert ledger(tmp_path, "child")
    check_ended(tmp_path)


def test_an_interrupt_ends_the_program_in_order(launch, tmp_path):
    run = launch(ledger_job(tmp_path, 60))
    run.read_until("ringFormed")
    rig.until(lambda: (tmp_path / "ledger").exists() and len(ledger(tmp_path, "start")) == 3, "three starts")
    os.kill(run.pid, signal.SIGINT)
    assert run.wait() == 130
    assert {line["rank"] for line in ledger(tmp_path, "asked")} == {0, 1, 2}
    check_ended(tmp_path)


def test_a_run_under_nohup_outlives_its_terminal(launch, tmp_path):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # which a child takes over
    try:
        run = launch(ledger_job(tmp_path, 1))
    finally:
        signal.signal(signal.SIGHUP, before)
    run.read_until("ringFormed")
    os.kill(run.pid, signal.SIGHUP)
    assert run.wait() == 0, run.stderr


def test_a_torchrun_that_says_itself_where_it_meets_is_refused(finish, tmp_path):
    run = finish(program_job(tmp_path, ["torchrun", "--standalone", "--nproc-per-node=2", "train.py"]))
    assert run.code == 2
    assert "spec.launch.command has --standalone, but how many torchruns there are" in run.stderr


def test_a_program_that_is_not_there_is_named_before_anything_starts(finish, tmp_path):
    run = finish(program_job(tmp_path, ["no-such-program-anywhere"]))
    assert run.code == 2
    assert "spec.launch.command: there is no program no-such-program-anywhere" in run.stderr


def test_processes_are_frozen_in_a_cluster_alone(finish, tmp_path):
    run = finish(program_job(tmp_path, ["true"], workers=1, workers__max=1, checkpoint__uri="kept", checkpoint__process="CRIU"))
    assert run.code == 2
    assert "spec.checkpoint.process is CRIU, which works in a cluster only; write None for run, where a program that is lost" in run.stderr


def test_drills_by_steps_are_refused_for_a_program(finish, tmp_path):
    run = finish(ledger_job(tmp_path, 1), "--drill", "kill:1@20")
    assert run.code == 2
    assert "--drill kill:1@20: nobody knows a program's steps; write a time, as kill:1@20s" in run.stderr


def test_a_drill_that_nobody_would_see_is_refused(finish, tmp_path):
    run = finish(ledger_job(tmp_path, 1), "--drill", "corrupt:1@1s")
    assert run.code == 2
    assert "--drill corrupt:1@1s: nobody would see it: only sums of whole numbers are proven" in run.stderr


def test_pytorchs_own_data_parallel_training_goes_on_after_a_loss(launch, tmp_path, reference_python):
    def steps():
        lines = (tmp_path / "steps").read_text().splitlines() if (tmp_path / "steps").exists() else []
        return [tuple(map(int, line.split())) for line in lines]

    run = launch(program_job(tmp_path, [reference_python, PROGRAMS / "ddp.py", tmp_path, 600],
                             elasticity__joinWindow="500ms"))
    members = run.read_until("ringFormed")["members"]
    rig.until(lambda: len(steps()) >= 50, "fifty steps", rig.DEADLINE_S)
    for member in members:
        if member["worker"] == 1:
            os.kill(member["agentPid"], signal.SIGKILL)
    assert run.wait() == 0, run.stderr
    assert sorted({step for step, _ in steps()}) == list(range(1, 601))
    assert min(restarts for _, restarts in steps()) == 0 < max(restarts for _, restarts in steps())
