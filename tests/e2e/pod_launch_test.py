"""A user's own program in pods: nobody commands them, nothing is stored, and whatever happens is a signal or a death.

The program writes a line at its start, when it is told to go and at its end, so that the file tells how often
each of that happened."""

import ctypes
import json
import os
import re
import signal
import sys
from collections import Counter
from pathlib import Path

import pytest

import launch_test
import pod_rig
import rig
from launch_test import check_ended, generations, ledger, nobody_met_an_older_one

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from metadata_rig.server import Metadata  # noqa: E402  (its folder is on the path only now)

pytestmark = pytest.mark.skipif(not pod_rig.can_be(), reason="no mount namespaces to be had here")

ALL = [(0, 1), (1, 1), (2, 1)]
RULES = '[{onExitCodes: [42], action: FailJob}, {onExitCodes: [7], action: Restart}]'


@pytest.fixture(name="pods")
def pods_of_a_program(launch, tmp_path):
    """pods(seconds, *words of ledger.py, **fields of the job): its programs, none started yet."""
    made = []

    def make(seconds, *words, command=None, **fields):
        # the stories count rings from one of all workers: in a window of half a second one could come late, and make a ring more
        settings = {"workers__min": 2, "workers__max": 4, "elasticity__joinWindow": "2s", "elasticity__lostAfter": "2s", **fields}
        command = command or [sys.executable, launch_test.PROGRAMS / "ledger.py", tmp_path / "ledger", seconds, *words]
        job = launch_test.program_job(tmp_path / "alone", ["true"], **settings)
        text = json.loads(pod_rig.spec_told_by(launch(job)))
        text["spec"]["launch"]["command"] = [str(word) for word in command]
        group = pod_rig.Pods(tmp_path / "pods", json.dumps(text))
        made.append(group)
        return group

    yield make
    for group in made:
        group.clean_up()


def begin(group, folder, count=3, **worker):
    """Workers and their coordinator, each process of the program started."""
    workers = [group.worker(i, **worker) for i in range(count)]
    coordinator = group.coordinator()
    group.ring(*((i, 1) for i in range(count)))
    until_started(folder, 1, count)
    return workers, coordinator


def until_started(folder, generation, count):
    """Waits for so many starts in the n-th generation."""
    def are_there():
        found = generations(folder) if (folder / "ledger").exists() else []
        return len(found) >= generation and len(found[generation - 1]) == count
    rig.until(are_there, f"{count} starts in generation {generation}", rig.DEADLINE_S)


def check_lines(folder):
    """Each process said each of its words once, and no generation met an older one."""
    said = Counter((line["generation"], line["rank"], line["what"]) for line in ledger(folder) if line["what"] != "child")
    assert set(said.values()) == {1}, said
    assert nobody_met_an_older_one(folder)
    check_ended(folder)


def restart_counts(folder):
    """Of each generation, in the order of their coming."""
    counts = [{line["environment"]["TORCHELASTIC_RESTART_COUNT"] for line in starts} for starts in generations(folder)]
    assert all(len(of_one) == 1 for of_one in counts), counts
    return [int(of_one.pop()) for of_one in counts]


def check_complete(group, coordinator, folder, last):
    """All ranks of the last generation ended by themselves, and the last word says so."""
    assert coordinator.wait() == 0, group.tail()
    word = coordinator.last_word()
    assert word["exitCode"] == 0 and word["programExitCode"] == 0 and word["reason"] == "", word
    assert not {"weightsSha256", "uri", "loss", "bytes"} & set(word), word
    assert [line["rank"] for line in sorted(ledger(folder, "end"), key=lambda line: line["rank"])
            if line["generation"] == generations(folder)[-1][0]["generation"]] == list(range(last))
    check_lines(folder)


def test_a_program_runs_in_pods_to_its_end_and_nothing_is_stored(pods, tmp_path):
    group = pods(1)
    workers, coordinator = begin(group, tmp_path)
    check_complete(group, coordinator, tmp_path, 3)
    for worker in workers:
        assert worker.wait() == 0, group.tail()
        assert worker.last_word() == {"exitCode": 0, "reason": ""}
    for start in ledger(tmp_path, "start"):
        seen = start["environment"]
        assert seen["MASTER_ADDR"] == workers[0].ip and seen["RANK"] == str(start["rank"]) and seen["WORLD_SIZE"] == "3"
        assert seen["RINGMASTER_HOSTS"] == ",".join(worker.ip for worker in workers)
        assert {name for name in seen if name.startswith("RINGMASTER_")} == {"RINGMASTER_HOSTS", "RINGMASTER_GENERATION", "RINGMASTER_SOCKET"}
    assert restart_counts(tmp_path) == [0]
    assert "checkpoint" not in json.loads(group.spec.read_text())["spec"]


def test_a_notice_costs_a_program_one_start_anew_in_which_another_worker_has_the_leavers_place(pods, tmp_path):
    """Nobody sends a signal; who goes is there until who comes is."""
    with Metadata("aws") as aws:
        group = pods(8)
        workers = [group.worker(index, env={"RINGMASTER_METADATA": aws.url} if index == 1 else None) for index in range(3)]
        coordinator = group.coordinator()
        group.ring(*ALL)
        until_started(tmp_path, 1, 3)
        rig.until(lambda: "notices are heard" in workers[1].text(), "it knows what its machine is told", rig.DEADLINE_S)
        aws.reclaim(100)
        group.until(lambda s: next(w for w in s["workers"] if w["worker"] == 1).get("notice"), "it is told")
        group.worker(3)
        assert workers[1].wait() == 0 and workers[1].last_word() == {"left": True}, group.tail()
        status = group.ring((0, 1), (2, 1), (3, 1))
        assert status["ring"]["begun"] == 2 and status["lost"] == [] and status["failures"] == 0, status
        check_complete(group, coordinator, tmp_path, 3)
        assert restart_counts(tmp_path) == [0, 1]


def test_a_worker_that_vanishes_starts_the_others_anew_and_its_next_attempt_joins(pods, tmp_path):
    group = pods(4)
    workers, coordinator = begin(group, tmp_path)
    workers[1].signal(signal.SIGKILL)
    workers[1].wait()
    status = group.ring((0, 1), (2, 1))
    assert [(w["worker"], w["attempt"]) for w in status["lost"]] == [(1, 1)] and status["progress"] is None
    until_started(tmp_path, 2, 2)
    group.worker(1, attempt=2)
    status = group.ring((0, 1), (1, 2), (2, 1))
    assert status["failures"] == 0 and status["ring"]["begun"] == 3
    check_complete(group, coordinator, tmp_path, 3)
    assert restart_counts(tmp_path) == [0, 1, 2]


def test_the_loss_of_the_coordinator_restarts_nothing(pods, tmp_path):
    group = pods(4)
    workers, first = begin(group, tmp_path)
    first.signal(signal.SIGKILL)
    first.wait()
    second = group.coordinator(term=2)
    status = group.ring(*ALL)
    assert status["term"] == 2 and status["ring"]["generation"] == 1 and status["ring"]["begun"] == 1
    check_complete(group, second, tmp_path, 3)
    assert [worker.wait() for worker in workers] == [0, 0, 0], group.tail()
    assert restart_counts(tmp_path) == [0]


def test_a_worker_that_is_told_to_go_lets_the_program_end_by_itself(pods, tmp_path):
    group = pods(3)
    workers, coordinator = begin(group, tmp_path)
    workers[2].signal(signal.SIGTERM)
    assert workers[2].wait() == 0, group.tail()
    assert workers[2].last_word() == {"left": True}
    group.ring((0, 1), (1, 1))
    first = generations(tmp_path)[0][0]["generation"]
    assert {line["rank"] for line in ledger(tmp_path, "asked") if line["generation"] == first} == {0, 1, 2}
    check_complete(group, coordinator, tmp_path, 2)


def test_a_program_that_does_not_end_has_no_longer_than_its_pod(pods, tmp_path):
    """Half of a grace of 8 s is for the stop; the job would wait for ten minutes."""
    group = pods(3600, "stubborn", launch__gracePeriod="10m")
    workers, coordinator = begin(group, tmp_path, grace=8)
    workers[1].signal(signal.SIGTERM)
    assert workers[1].wait() == 0, group.tail()
    assert workers[1].last_word() == {"left": True}
    group.ring((0, 1), (2, 1))
    until_started(tmp_path, 2, 2)
    assert nobody_met_an_older_one(tmp_path)
    coordinator.signal(signal.SIGKILL)


def test_all_who_are_told_to_go_stop_once_and_come_back_in_a_later_generation(pods, tmp_path):
    group = pods(3, workers__min=3)
    workers, first = begin(group, tmp_path)
    for worker in workers:
        worker.signal(signal.SIGTERM)
    assert [worker.wait() for worker in workers] == [0, 0, 0], group.tail()
    assert [worker.last_word() for worker in workers] == [{"left": True}] * 3
    group.until(lambda s: s["state"] == "Gathering" and len(s["left"]) == 3, "it waits for workers")
    first.signal(signal.SIGTERM)
    assert first.wait() == 0, group.tail()
    second = group.coordinator(term=2, env={"RINGMASTER_POD_GENERATION": "5"})
    for i in range(3):
        group.worker(i, attempt=2)
    check_complete(group, second, tmp_path, 3)
    assert restart_counts(tmp_path) == [0, 5], "nobody who was there before is left, and the number is told"


def test_pods_that_are_all_new_never_say_that_the_job_begins(pods, tmp_path):
    group = pods(2, workers__min=3)
    workers, first = begin(group, tmp_path)
    for program in [first, *workers]:
        program.signal(signal.SIGKILL)
    for program in [first, *workers]:
        program.wait()
    check_ended(tmp_path)
    second = group.coordinator(term=2)
    for i in range(3):
        group.worker(i, attempt=2)
    check_complete(group, second, tmp_path, 3)
    assert restart_counts(tmp_path) == [0, 1]


def test_a_failure_starts_all_anew_and_one_too_many_is_the_last_word(pods, tmp_path):
    group = pods(30, "fail", 1, 3, failurePolicy__maxRestarts=1)
    workers = [group.worker(i) for i in range(3)]
    coordinator = group.coordinator()
    assert coordinator.wait() == 5, group.tail()
    word = coordinator.last_word()
    assert word["exitCode"] == 5 and word["programExitCode"] == 3, word
    assert re.search(r"2 failures within.*worker \d: rank 1: exit code 3: the reason why", word["reason"]), word  # ranks go by who came first
    assert [worker.wait() for worker in workers] == [0, 0, 0], group.tail()
    assert [1 in [line["rank"] for line in starts] for starts in generations(tmp_path)] == [True, True]
    check_lines(tmp_path)


def test_a_rule_ends_the_job_at_once(pods, tmp_path):
    group = pods(30, "fail", 1, 42, failurePolicy__rules=RULES)
    workers = [group.worker(i) for i in range(3)]
    coordinator = group.coordinator()
    assert coordinator.wait() == 5, group.tail()
    word = coordinator.last_word()
    assert word["programExitCode"] == 42 and "failurePolicy.rules end the job at that exit code" in word["reason"], word
    assert [worker.wait() for worker in workers] == [0, 0, 0], group.tail()
    assert len(generations(tmp_path)) == 1


class Held:
    """A process that does not die: killed, it stays for as long as who traces it has not looked, as one would that a call holds."""

    PTRACE_SEIZE = 0x4206

    def __init__(self, pid):
        self.pid = pid
        if ctypes.CDLL(None, use_errno=True).ptrace(self.PTRACE_SEIZE, pid, None, None) < 0:
            pytest.skip(f"nobody may be traced here: {os.strerror(ctypes.get_errno())}")

    def let_go(self):
        os.waitpid(self.pid, 0)


def parent_of(pid):
    return int(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[1])


def test_nobody_starts_beside_what_a_killed_launcher_left_behind(pods, tmp_path):
    group = pods(3600, elasticity__formTimeout="1s")
    _, coordinator = begin(group, tmp_path)
    pids = {line["rank"]: line["pid"] for line in generations(tmp_path)[0]}
    held = Held(pids[1])
    os.kill(parent_of(pids[1]), signal.SIGKILL)
    os.kill(pids[0], signal.SIGKILL)
    group.until(lambda s: "the processes of its program have not ended yet" in json.dumps(s), "it says for whom it waits")
    assert len(generations(tmp_path)) == 1
    held.let_go()
    group.ring(*ALL)
    until_started(tmp_path, 2, 3)
    assert nobody_met_an_older_one(tmp_path)
    coordinator.signal(signal.SIGKILL)


@pytest.fixture(name="little_memory")
def fixture_little_memory():
    """little_memory(pid): from now on this process and those that it starts have 96 MiB together, as by a container's limit."""
    root = Path("/sys/fs/cgroup")
    old = (root / "memory/memory.limit_in_bytes").exists()
    group = root / ("memory" if old else "") / f"ringmaster-test-{os.getpid()}"
    limit = "memory.limit_in_bytes" if old else "memory.max"
    try:
        group.mkdir()
        (group / limit).write_text(str(96 << 20), encoding="ascii")
    except OSError as why:
        if group.is_dir():
            group.rmdir()
        pytest.skip(f"no memory limit to be had here: {why}")
    yield lambda pid: (group / "cgroup.procs").write_text(str(pid), encoding="ascii")
    for pid in (group / "cgroup.procs").read_text(encoding="ascii").split():
        os.kill(int(pid), signal.SIGKILL)
    rig.until(lambda: not (group / "cgroup.procs").read_text(encoding="ascii"), "nobody is left in the group")
    group.rmdir()


def test_who_is_killed_for_memory_says_so_and_no_rule_spares_it(pods, tmp_path, little_memory):
    eats = f"import os, time; os.environ['RANK'] == '1' or time.sleep(60); time.sleep(1); x = bytearray(1 << 30); open({str(tmp_path / 'survived')!r}, 'w')"
    group = pods(0, command=[sys.executable, "-c", eats], failurePolicy__maxRestarts=0,
                 failurePolicy__rules='[{onExitCodes: [137], action: Restart}]')
    workers = [group.worker(i) for i in range(3)]
    little_memory(workers[1].pid)
    coordinator = group.coordinator()
    assert coordinator.wait() == 5, group.tail()
    word = coordinator.last_word()
    assert word["programExitCode"] == 137, word
    assert "worker 1: rank 1: killed by signal 9, out of memory" in word["reason"], word
    assert not (tmp_path / "survived").exists()
