"""Programs that save nothing, in pods: frozen by ringmaster-snapshot (a stand-in for CRIU below it, tests/snapshot_rig, and CRIU itself where that is),
and alive again in the next pod.

The coordinator and the agent are the product's own, and get the job as the operator would hand it to them."""

import json
import os
import re
import shutil
import signal
import sys
import time
from pathlib import Path

import pytest

import launch_test
import pod_rig
import rig
from snapshot_test import PROGRAMS, STANDIN

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from metadata_rig.server import Metadata, iso  # noqa: E402  (its folder is on the path only now)

COUNTER = launch_test.PROGRAMS / "frozen_counter.py"


def own_pids():
    return [*pod_rig.namespace_flags(), "--pid", "--fork", "--mount-proc"]


pytestmark = pytest.mark.skipif(not pod_rig.can_be(), reason="no mount namespaces to be had here")


def children_of(pid):
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]


class Pod(pod_rig.Program):
    """A worker's, with pids of its own, as a pod has them: its agent is the first process, and what ends it ends all."""

    flags = staticmethod(own_pids)

    @property
    def pid(self):
        """The agent's, once it is there."""
        rig.until(lambda: children_of(self.process.pid), f"{self.title} starts", rig.DEADLINE_S)
        return children_of(self.process.pid)[0]

    def signal(self, number):
        os.kill(self.pid, number)

    def numbers(self):
        """What the program wrote."""
        return [int(line) for line in list(self.lines) if re.fullmatch(r"\d+\n", line)]

    def until_number(self, number):
        rig.until(lambda: any(n >= number for n in self.numbers()), f"{self.title} counts to {number}", rig.DEADLINE_S)


class FrozenPods(pod_rig.Pods):
    kinds = {"worker": Pod}

    def events(self, name):
        return [event for event in self.status()["events"] if event["event"] == name]

    def until_saved(self, number):
        """Until the coordinator has told of that snapshot."""
        self.until(lambda s: any(e["event"] == "checkpointSaved" and e["step"] >= number for e in s["events"]), f"snapshot {number}")

    def until_loaded(self, number):
        self.until(lambda s: any(e["event"] == "checkpointLoaded" and e["step"] == number for e in s["events"]), f"it goes on from {number}")


@pytest.fixture(name="tool", params=PROGRAMS)
def fixture_tool(request):
    """The ringmaster-snapshot that freezes them."""
    return request.param


by_the_standin = pytest.mark.parametrize("tool", [pytest.param(STANDIN, id="standin")], indirect=True)  # CRIU's would not say that


@pytest.fixture(name="frozen")
def frozen_pods(launch, tmp_path, tool):
    """frozen(until, **checkpoint): the programs of a job of one counter, none started yet."""
    made = []

    def make(until=1 << 40, command=None, **checkpoint):
        job = launch_test.program_job(tmp_path / "alone", ["true"], workers=1, workers__max=1, elasticity__lostAfter="2s", launch__gracePeriod="30s",
                                      checkpoint__uri=f"file://{tmp_path}/store")
        text = json.loads(pod_rig.spec_told_by(launch(job)))
        text["spec"]["launch"]["command"] = list(map(str, command or [sys.executable, COUNTER, until]))
        text["spec"]["checkpoint"].update({"process": "CRIU", **checkpoint})
        (tmp_path / "images").mkdir(exist_ok=True)
        group = FrozenPods(tmp_path / "pods", json.dumps(text), env={"RINGMASTER_SNAPSHOT": str(tool), "RINGMASTER_POD_IMAGES": str(tmp_path / "images")})
        made.append(group)
        return group

    yield make
    for group in made:
        group.clean_up()


def in_order(numbers):
    return numbers and numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def published(tmp_path):
    return sorted(int(path.parent.name.rpartition("-")[2]) for path in (tmp_path / "store").glob("process-*/manifest.json"))


def logged_keys(pod, message):
    """What the first such line of its agent's log tells, each of which is there."""
    lines = [json.loads(line) for line in list(pod.lines) if f'"{message}"' in line]
    assert lines and all(lines[0].values()), pod.text()
    return set(lines[0]) - {"time", "level", "program", "message"}


def begin(group, **worker):
    """A pod and its coordinator, and the program counts."""
    pod = group.worker(0, **worker)
    coordinator = group.coordinator()
    pod.until_number(3)
    return pod, coordinator


def kill(pod):
    pod.signal(signal.SIGKILL)
    pod.wait()


def leave(group):
    """A pod that has counted, was told to go, and left a snapshot; its coordinator is still there."""
    pod, coordinator = begin(group)
    pod.signal(signal.SIGTERM)
    assert pod.wait() == 0, group.tail()
    return pod, coordinator


def goes_on(group, number, attempt=2, **worker):
    """The next pod, which counts on from that snapshot."""
    pod = group.worker(0, attempt=attempt, **worker)
    group.until_loaded(number)
    rig.until(lambda: len(pod.numbers()) >= 10, "it counts on", rig.DEADLINE_S)
    assert in_order(pod.numbers()) and pod.numbers()[0] > 0, pod.numbers()
    return pod


def test_a_pod_that_is_killed_is_followed_by_one_that_counts_on_from_the_last_interval(frozen, tmp_path):
    group = frozen(every="1s")
    first, _ = begin(group)
    group.until_saved(2)
    kill(first)
    newest = published(tmp_path)[-1]
    second = goes_on(group, newest)
    assert in_order(first.numbers()) and first.numbers()[0] == 0
    assert second.numbers()[0] <= first.numbers()[-1] + 1, "no number is left out"
    saved = next(event for event in group.events("checkpointSaved") if event["step"] == 1)
    assert saved["uri"] == f"file://{tmp_path}/store/process-00000001" and saved["frozenMs"] > 0 and saved["bytes"] > 0, saved
    status = group.status()
    assert status["goodput"]["checkpointSeconds"] > 0
    assert status["checkpoint"]["uri"] == f"file://{tmp_path}/store/process-{status['checkpoint']['step']:08}", status["checkpoint"]
    group.until_saved(newest + 1)


def test_a_program_that_may_be_frozen_has_no_rights_of_its_pods(frozen):
    group = frozen(command=["sh", "-c", "grep -E '^(CapPrm|CapEff|NoNewPrivs):' /proc/self/status; sleep 100"])
    pod = group.worker(0)
    group.coordinator()
    rig.until(lambda: any("NoNewPrivs" in line for line in list(pod.lines)), "it tells its rights", rig.DEADLINE_S)
    assert {name: int(value, 16) for name, value in (line.split(":") for line in list(pod.lines) if line.startswith(("Cap", "NoNew")))} == {
        "CapPrm": 0, "CapEff": 0, "NoNewPrivs": 1}


def test_who_is_told_to_go_freezes_and_the_next_pod_counts_on_with_the_next_number(frozen, tmp_path):
    group = frozen()
    first, _ = leave(group)
    assert first.last_word() == {"left": True}
    assert not list((tmp_path / "images").iterdir()), "the files of the snapshot are gone from this disk"
    assert published(tmp_path) == [1]
    assert logged_keys(first, "a snapshot is published") == {"number", "bytes", "frozen_ms", "dump_ms", "send_ms"}
    second = goes_on(group, 1)
    assert logged_keys(second, "a snapshot lives again") == {"number", "bytes", "fetch_ms", "restore_ms"}
    kill(second)
    assert in_order(first.numbers() + second.numbers()), "none is left out, and none is there twice"
    third = goes_on(group, 1, attempt=3)
    assert third.numbers()[0] == second.numbers()[0]


@by_the_standin
def test_a_machine_that_may_go_costs_a_frozen_program_nothing_and_one_that_will_go_is_left_with_a_snapshot(frozen, tmp_path):
    with Metadata("aws") as aws:
        group = frozen()
        first, _ = begin(group, env={"RINGMASTER_METADATA": aws.url})
        aws.put("events/recommendations/rebalance", json.dumps({"noticeTime": iso(time.time())}))
        status = group.until(lambda s: s["workers"][0].get("notice"), "what may come is told")
        assert status["workers"][0]["notice"]["certainty"] == "may", status
        first.until_number(first.numbers()[-1] + 20)
        assert not published(tmp_path), "nothing is given up for that"
        aws.reclaim(60)
        assert first.wait() == 0 and first.last_word() == {"left": True}, group.tail()
        assert published(tmp_path) == [1]
        second = goes_on(group, 1)
        assert in_order(first.numbers() + second.numbers()), "none is left out, and none is there twice"


def test_who_could_not_be_brought_back_is_tried_again_in_the_same_pod_with_its_own_number(frozen, tool, tmp_path):
    group = frozen()
    leave(group)
    once, tried = tmp_path / "once", tmp_path / "tried"
    once.write_text(f"#!/bin/sh\nif [ $1 = restore ] && [ ! -e {tried} ]; then\n  : >{tried}\n  echo 'ringmaster-snapshot: not yet' >&2\n  exit 4\nfi\n"
                    f'exec {tool} "$@"\n', encoding="ascii")
    once.chmod(0o755)
    goes_on(group, 1, env={"RINGMASTER_SNAPSHOT": str(once)})
    failures = group.events("programFailed")
    assert len(failures) == 1 and "not yet" in json.dumps(failures), failures


def test_a_program_that_dies_soon_after_it_lived_again_does_so_once_more(frozen):
    group = frozen()
    leave(group)
    pod = goes_on(group, 1)
    (program,) = children_of(*children_of(pod.pid))
    os.kill(program, signal.SIGKILL)
    group.until(lambda s: sum(e["event"] == "checkpointLoaded" for e in s["events"]) == 2, "it goes on once more")
    assert len(group.events("programFailed")) == 1, "nobody else had its number meanwhile"


def test_a_program_that_lives_again_ends_as_it_would_have(frozen, tmp_path):
    group = frozen(until=400)
    first, coordinator = leave(group)
    second = group.worker(0, attempt=2)
    assert coordinator.wait() == 0, group.tail()
    assert second.wait() == 0, group.tail()
    assert first.numbers() + second.numbers() == list(range(400))
    assert coordinator.last_word()["programExitCode"] == 0


def lines_of(log):
    return [int(line) for line in log.read_text(encoding="ascii").split()]


def test_a_folder_that_is_named_travels_and_is_of_the_same_moment_as_the_memory(frozen, tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    log = work / "log"
    group = frozen(command=[sys.executable, COUNTER, 1 << 40, log], every="1s", processPaths=[str(work)])
    first, _ = begin(group)
    group.until_saved(2)
    rig.until(lambda: len(lines_of(log)) > 20, "its log grows behind the snapshot", rig.DEADLINE_S)
    kill(first)
    shutil.rmtree(work)  # as with a pod's own disk
    second = goes_on(group, published(tmp_path)[-1])
    kill(second)
    assert lines_of(log) == list(range(len(lines_of(log)))), "no line twice, and none left out"
    assert lines_of(log)[-1] >= second.numbers()[-1] - 1


@pytest.mark.parametrize("path, sentence", [
    ("/dev/shm/mine", "has /dev/shm/mine, but /dev can't travel with a snapshot; name what the program writes"),
    ("{images}", "can't travel with a snapshot; name what the program writes"),
    ("{sealed}/work", "where nothing can be written; leave it out")])
def test_a_path_that_can_not_travel_is_a_sentence_before_anything_starts(frozen, tmp_path, path, sentence):
    sealed = tmp_path / "sealed"
    sealed.mkdir()
    group = frozen(processPaths=[path.format(images=tmp_path / "images", sealed=sealed)])
    group.coordinator()
    pod = group.worker(0, over=[(f"-o ro {sealed}", sealed)])
    assert pod.wait() == 2, group.tail()
    reason = pod.last_word()["reason"]
    assert "spec.checkpoint.processPaths has /" in reason and sentence in reason, reason
    assert not pod.numbers()


@pytest.mark.parametrize("point, whole", [("frozen-dumped", 1), ("image-sent", 1), ("frozen-published", 2)])
def test_a_pod_that_goes_on_the_way_to_a_snapshot_is_followed_from_the_newest_whole_one(frozen, tmp_path, point, whole):
    group = frozen(every="1s")
    first, _ = begin(group, attempt=0, env={"RINGMASTER_FAULT": f"{point}:2/stop"})
    rig.until(lambda: point in first.text(), f"it comes to {point}", rig.DEADLINE_S)
    kill(first)
    assert published(tmp_path) == list(range(1, whole + 1))
    second = goes_on(group, whole, attempt=1)
    assert second.numbers()[0] <= first.numbers()[-1] + 1
    group.until_saved(whole + 1)


def test_a_pod_that_goes_on_the_way_back_is_followed_from_the_same_snapshot(frozen, tmp_path):
    group = frozen()
    first, coordinator = leave(group)
    kill(coordinator)
    group.coordinator(term=2)  # which knows of no attempt: a fault is for a first one alone
    second = group.worker(0, attempt=0, env={"RINGMASTER_FAULT": "frozen-fetched/stop"})
    rig.until(lambda: "frozen-fetched" in second.text(), "it has fetched it", rig.DEADLINE_S)
    kill(second)
    third = goes_on(group, 1, attempt=1)
    assert third.numbers()[0] == first.numbers()[-1] + 1 and not second.numbers()


def change_byte(path, at):
    text = bytearray(path.read_bytes())
    text[at] ^= 1
    path.write_bytes(bytes(text))


def test_a_manifest_of_which_a_byte_is_another_is_never_restored(frozen, tmp_path):
    group = frozen(every="1s")
    first, _ = begin(group)
    group.until_saved(2)
    kill(first)
    *_, older, newest = published(tmp_path)
    change_byte(tmp_path / f"store/process-{newest:08}/manifest.json", 100)
    second = goes_on(group, older)
    assert f"process-{newest:08}" in second.text(), "what is passed over is named"
    kill(second)
    for number in set(published(tmp_path)) - {newest}:
        change_byte(tmp_path / f"store/process-{number:08}/manifest.json", 100)
    third = group.worker(0, attempt=3)
    assert third.wait() == 3, group.tail()
    assert "no snapshot in " in third.last_word()["reason"] and "is whole" in third.last_word()["reason"], third.last_word()
    assert not third.numbers()


def test_another_jobs_snapshots_are_refused_with_the_field_that_names_its_key(frozen, tmp_path):
    group = frozen()
    first, coordinator = leave(group)
    kill(coordinator)
    group.key.write_text("ab" * 32, encoding="ascii")
    second = group.worker(0, attempt=2)
    group.coordinator(term=2)
    assert second.wait() == 2, group.tail()
    assert "checkpoint.processKeyRef" in second.last_word()["reason"] and not second.numbers(), second.last_word()


def test_a_job_that_names_another_jobs_key_goes_on_from_its_snapshots(frozen, tmp_path):
    group = frozen(every="1s")
    first, coordinator = leave(group)
    kill(coordinator)
    older, newest = tmp_path / "older", published(tmp_path)[-1]
    older.write_text(group.key.read_text(encoding="ascii"), encoding="ascii")
    group.key.write_text("ab" * 32, encoding="ascii")
    group.coordinator(term=2)
    second = goes_on(group, newest, env={"RINGMASTER_POD_OLDER_KEY": str(older)})
    assert in_order(first.numbers() + second.numbers()), "none is left out, and none is there twice"
    group.until_saved(newest + 1)
    kill(second)
    goes_on(group, published(tmp_path)[-1], attempt=3)


def test_a_key_file_of_another_job_that_holds_no_key_is_a_sentence(frozen, tmp_path):
    group, older = frozen(), tmp_path / "older"
    older.write_text("none\n", encoding="ascii")
    group.coordinator()
    pod = group.worker(0, env={"RINGMASTER_POD_OLDER_KEY": str(older)})
    assert pod.wait() == 2, group.tail()
    assert "the job's key is 64 hex digits" in pod.last_word()["reason"], pod.last_word()


@by_the_standin
def test_what_is_missing_is_a_sentence_before_anything_starts(frozen, tmp_path):
    group = frozen()
    old, tool = tmp_path / "criu", tmp_path / "snapshot"
    old.write_text("criu 3.17\n", encoding="ascii")
    tool.write_text(f"#!/bin/sh\nexec {STANDIN} \"$@\" --criu {old}\n", encoding="ascii")
    tool.chmod(0o755)
    group.coordinator()
    without = group.worker(0, env={"RINGMASTER_SNAPSHOT": str(tmp_path / "none")})
    assert without.wait() == 4, group.tail()
    assert "there is no ringmaster-snapshot that runs beside this program" in without.last_word()["reason"], without.last_word()
    outdated = group.worker(0, attempt=2, env={"RINGMASTER_SNAPSHOT": str(tool)})
    assert outdated.wait() == 4, group.tail()
    assert "criu is 3.17, which is too old" in outdated.last_word()["reason"], outdated.last_word()
    assert not without.numbers() and not outdated.numbers()


@by_the_standin
def test_a_snapshot_that_can_not_be_made_is_told_and_the_program_goes_on(frozen, tmp_path):
    words = [sys.executable, "-c", "import itertools, time\nfor i in itertools.count():\n    print(i, flush=True)\n    time.sleep(0.01)"]
    group = frozen(command=words, every="1s")
    pod, _ = begin(group)
    status = group.until(lambda s: any(e["event"] == "checkpointSkipped" for e in s["events"]), "it is told")
    skipped = next(event for event in status["events"] if event["event"] == "checkpointSkipped")
    assert "has no ringmaster-state; there is none yet" in skipped["reason"], skipped
    pod.until_number(pod.numbers()[-1] + 50)
    assert in_order(pod.numbers()) and not published(tmp_path)
    pod.signal(signal.SIGTERM)
    assert pod.wait() == 0, group.tail()


def test_a_program_stands_still_while_no_coordinator_answers_and_goes_on_with_the_next_answer(frozen):
    group = frozen()
    pod, coordinator = begin(group)
    kill(coordinator)
    rig.until(lambda: "the program stands still" in pod.text(), "it stands still", rig.DEADLINE_S)
    (program,) = children_of(*children_of(pod.pid))
    rig.until(lambda: Path(f"/proc/{program}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[0] == "T", "it is stopped", rig.DEADLINE_S)
    told = len(pod.numbers())
    group.coordinator(term=2)
    pod.until_number(told + 20)
    assert in_order(pod.numbers()) and pod.numbers()[0] == 0
    status = group.ring((0, 1))
    assert status["failures"] == 0 and status["ring"]["generation"] == 1 and not group.events("workerLost"), status
    assert "stood_still_ms" in pod.text()
    assert status["goodput"]["waitingSeconds"] > 0, "all that it waited was else taken for work, as it trained on"
