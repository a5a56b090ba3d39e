"""The programs as pods of a cluster: nobody commands them, and whatever happens to them is a signal or a death."""

import contextlib
import hashlib
import json
import os
import secrets
import shutil
import signal
import socket
import sys
import urllib.parse
from pathlib import Path

import pytest

import cpu_rig
import pod_rig
import rig

STEPS = 3000  # long enough that a replacement comes before the end
ENDLESS = 10 ** 9

pytestmark = pytest.mark.skipif(not pod_rig.can_be(), reason="no mount namespaces to be had here")


@pytest.fixture(name="pods")
def pods_of_a_job(launch, tmp_path, tmp_path_factory):
    """pods(steps): see pod_rig.made_pods. With ENDLESS steps there is no run to compare with, and no end."""
    with pod_rig.made_pods(launch, tmp_path, tmp_path_factory, STEPS) as make:
        yield make


def begin(group, count):
    """Workers and their coordinator, some steps into training."""
    workers = [group.worker(i) for i in range(count)]
    coordinator = group.coordinator()
    group.ring(*((i, 1) for i in range(count)))
    group.until_step(20)
    return workers, coordinator


def test_pods_train_to_the_same_weights_as_a_run_and_leave_the_result_behind(pods):
    group = pods()
    workers = [group.worker(i) for i in range(3)]  # before their coordinator: they wait for it
    coordinator = group.coordinator()
    status = group.ring((0, 1), (1, 1), (2, 1))
    assert status["job"] == "the-job-k2v4x" and status["term"] == 1 and status["state"] == "Training"
    assert coordinator.wait() == 0, group.tail()
    result = coordinator.last_word()
    assert result["weightsSha256"] == group.sha256, result
    assert result["exitCode"] == 0 and result["step"] == STEPS and not result["interrupted"]
    for worker in workers:
        assert worker.wait() == 0, group.tail()
        assert worker.last_word() == {"exitCode": 0, "reason": ""}
    for line in coordinator.text().splitlines():
        json.loads(line)
    events = [json.loads(line) for line in coordinator.text().splitlines() if "event" in json.loads(line)]
    assert [e["event"] for e in events if e["event"] in ("ringFormed", "complete", "step")] == ["ringFormed", "complete"]


def test_a_pod_whose_volume_is_not_mounted_takes_no_part_and_the_others_train_to_the_same_weights(pods, tmp_path):
    shared, alone = tmp_path / "checkpoints", tmp_path / "alone"
    shared.mkdir()
    alone.mkdir()
    group = pods()
    for i in range(3):
        group.worker(i, over=[(alone, shared)] if i == 2 else [])
    coordinator = group.coordinator()
    assert coordinator.wait() == 0, group.tail()
    assert coordinator.last_word()["weightsSha256"] == group.sha256
    events = [json.loads(line) for line in coordinator.text().splitlines() if "event" in json.loads(line)]
    rings = [e for e in events if e["event"] == "ringFormed"]
    assert rings and all(m["worker"] != 2 for ring in rings for m in ring["members"]), rings
    said = [e["reason"] for e in events if e["event"] == "waiting"]
    assert any("worker 2 is not to take part: the folder of checkpoints on its machine is another one" in text for text in said), said
    assert not list(alone.glob("step-*")) and not (alone / "final").exists(), "nothing is saved where nobody finds it"


@pytest.fixture(name="one_core")
def fixture_one_core():
    """one_core(pid): from now on this process and those that it starts have a CPU quota of one core, as from a container's limit."""
    with cpu_rig.quota(100000) as put:
        yield put


def computing_threads(pid):
    """Those of a trainer's pool, and itself."""
    return 1 + sum(task.read_text(encoding="utf-8") == "pool\n" for task in Path(f"/proc/{pid}/task").glob("*/comm"))


def test_threads_auto_in_a_pod_are_all_that_its_cpu_quota_leaves_it(pods, one_core):
    group = pods(ENDLESS)
    spec = json.loads(group.spec.read_text(encoding="utf-8"))
    spec["spec"]["trainer"]["threads"] = "Auto"
    group.spec.write_text(json.dumps(spec), encoding="utf-8")
    workers = [group.worker(i) for i in range(3)]
    one_core(workers[0].pid)
    group.coordinator()
    group.ring((0, 1), (1, 1), (2, 1))
    cores = len(os.sched_getaffinity(0))
    found = {index: computing_threads(pid) for (index, _), pid in group.trainers().items()}
    assert found == {0: 1, 1: cores, 2: cores}, "not divided by workers.target"


def test_a_coordinator_takes_no_spec_but_that_of_its_hash(pods):
    group = pods()
    sha256 = hashlib.sha256(group.spec.read_bytes()).hexdigest()
    refused = group.coordinator(env={"RINGMASTER_POD_SPEC_SHA256": sha256[::-1]})
    assert refused.wait() == 2, group.tail()
    word = refused.last_word()
    assert word["exitCode"] == 2 and "is not the job's spec" in word["reason"], word
    group.coordinator(env={"RINGMASTER_POD_SPEC_SHA256": sha256})
    group.until(lambda status: status["state"] == "Gathering", "the coordinator with the right hash takes it")


def test_a_successor_at_another_address_takes_over_and_training_goes_on(pods):
    group = pods()
    workers, first = begin(group, 3)
    trainers = group.trainers()
    assert len(trainers) == 3
    first.signal(signal.SIGKILL)
    first.wait()
    second = group.coordinator(term=2)
    status = group.ring((0, 1), (1, 1), (2, 1))
    assert status["term"] == 2 and status["ring"]["generation"] == 1, "the ring is the one that was there"
    assert status["time"] >= status["events"][-1]["time"] > 0, "both are by the coordinator's clock"
    assert group.trainers() == trainers
    assert second.wait() == 0, group.tail()
    assert second.last_word()["weightsSha256"] == group.sha256
    assert [worker.wait() for worker in workers] == [0, 0, 0], group.tail()


def callers_of(ip):
    """Local ports of those whose calls to that address nobody answers."""
    wanted = f"{int.from_bytes(socket.inet_aton(ip), sys.byteorder):08X}:{pod_rig.PORT:04X}"
    lines = [line.split() for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]]
    return {fields[1] for fields in lines if fields[2] == wanted and fields[3] == "02"}  # SYN_SENT


@contextlib.contextmanager
def nobody_at(ip):
    """Who calls there hears nothing, as at the address of a pod that is gone: the queue is full."""
    with socket.create_server((ip, pod_rig.PORT), backlog=0), socket.create_connection((ip, pod_rig.PORT)):
        yield


def test_a_name_that_led_nowhere_for_a_while_keeps_nobody_from_the_successor(pods):
    """A Service leads to a pod that is gone until its cluster has heard; a call that was made then stays on its way there.

    The successor waits for lostAfter from its beginning, which here is before theirs: nobody may call in vain for as long."""
    group = pods()
    spec = json.loads(group.spec.read_text(encoding="utf-8"))
    spec["spec"]["elasticity"]["lostAfter"] = "12s"
    group.spec.write_text(json.dumps(spec), encoding="utf-8")
    workers, first = begin(group, 3)
    trainers = group.trainers()
    gone = group.new_ip()
    with nobody_at(gone):
        group.point_name_at(gone)
        second = group.coordinator(term=2, named=False)
        rig.until(lambda: "listening" in second.text(), "the successor has begun")
        first.signal(signal.SIGKILL)
        first.wait()
        rig.until(lambda: len(callers_of(gone)) == 3, "all three call where nobody is")
        group.point_name_at(second.ip)
        group.coordinator_ip = second.ip
        status = group.until(lambda now: now["state"] == "Training", "training goes on")
        assert status["term"] == 2 and status["ring"]["generation"] == 1 and status["lost"] == [], status
        assert group.trainers() == trainers
        assert [worker.wait() for worker in workers] == [0, 0, 0], group.tail()
        assert second.last_word()["weightsSha256"] == group.sha256


def test_a_coordinator_whose_workers_obey_a_later_one_says_so_and_ends(pods):
    group = pods(ENDLESS)
    for i in range(3):
        group.worker(i)
    later = group.coordinator(term=3)
    group.until(lambda s: s["state"] == "Training", "term 3 trains")
    stale = group.coordinator(term=2)
    later.signal(signal.SIGKILL)
    assert stale.wait() == 4, group.tail()
    assert "term 3" in stale.last_word()["reason"]


def test_a_worker_that_vanished_is_replaced_by_its_next_attempt(pods):
    group = pods()
    workers, coordinator = begin(group, 3)
    survivors = {k: v for k, v in group.trainers().items() if k[0] != 1}
    workers[1].signal(signal.SIGKILL)
    workers[1].wait()
    status = group.ring((0, 1), (2, 1))
    assert [(w["worker"], w["attempt"]) for w in status["lost"]] == [(1, 1)]
    group.worker(1, attempt=2)
    status = group.ring((0, 1), (1, 2), (2, 1))
    assert status["lost"] == []
    assert {k: v for k, v in group.trainers().items() if k[0] != 1} == survivors, "no survivor's trainer restarts"
    assert coordinator.wait() == 0, group.tail()
    assert coordinator.last_word()["weightsSha256"] == group.sha256


def test_of_two_attempts_the_lower_one_is_sent_away(pods):
    group = pods(ENDLESS)
    workers = [group.worker(i) for i in range(3)]
    group.coordinator()
    group.ring((0, 1), (1, 1), (2, 1))
    group.worker(1, attempt=2)
    group.ring((0, 1), (1, 2), (2, 1))
    assert workers[1].wait() == 4, group.tail()
    assert "replaced by attempt 2" in workers[1].last_word()["reason"]


def test_who_may_go_leaves_in_the_change_in_which_another_one_takes_its_place(pods):
    group = pods()
    workers, coordinator = begin(group, 3)
    group.get("/v1/status?relieve=1.1&stay=3")
    group.worker(3)
    status = group.ring((0, 1), (2, 1), (3, 1))
    assert [e["world"] for e in status["events"] if e["event"] == "ringFormed"] == [3, 3], "one change of the two"
    assert workers[1].wait() == 0, group.tail()
    assert workers[1].last_word() == {"left": True}
    assert coordinator.wait() == 0, group.tail()
    assert coordinator.last_word()["weightsSha256"] == group.sha256


def test_who_will_go_by_its_node_is_told_how_long_a_leave_takes_and_leaves_as_another_one_comes(pods):
    group = pods()
    workers, _ = begin(group, 3)
    group.get("/v1/status?relieve=1.1&will=1.1.300&stay=3")
    status = group.until(lambda s: any("leaveSeconds" in w for w in s["workers"]), "it says what a leave takes")
    takes = {w["worker"]: w.get("leaveSeconds") for w in status["workers"]}
    assert takes == {0: None, 1: takes[1], 2: None} and takes[1] > 0, "two others hold what it holds"
    group.until(lambda s: s["checkpoint"], "a save is begun")
    group.worker(3)
    status = group.ring((0, 1), (2, 1), (3, 1))
    assert [e["world"] for e in status["events"] if e["event"] == "ringFormed"] == [3, 3], "one change of the two"
    assert workers[1].wait() == 0, group.tail()
    assert workers[1].last_word() == {"left": True}


def test_all_leave_at_once_with_one_stop_and_a_checkpoint_and_come_back(pods):
    group = pods()
    workers, coordinator = begin(group, 3)
    for worker in workers:
        worker.signal(signal.SIGTERM)
    assert [worker.wait() for worker in workers] == [0, 0, 0], group.tail()
    assert [worker.last_word() for worker in workers] == [{"left": True}] * 3
    status = group.until(lambda s: s["state"] == "Gathering" and len(s["left"]) == 3, "it waits for workers")
    saved = status["checkpoint"]["step"]
    assert saved == status["progress"]["step"] >= 20
    formed = [e for e in status["events"] if e["event"] == "ringFormed"]
    assert len(formed) == 1, "they all left in one stop"
    coordinator.signal(signal.SIGTERM)
    assert coordinator.wait() == 0, group.tail()
    assert coordinator.last_word() == {"left": True}
    second = group.coordinator(term=2)
    for i in range(3):
        group.worker(i, attempt=2)
    status = group.ring((0, 2), (1, 2), (2, 2))
    assert [e["step"] for e in status["events"] if e["event"] == "checkpointLoaded"] == [saved]
    assert second.wait() == 0, group.tail()
    assert second.last_word()["weightsSha256"] == group.sha256


def test_the_last_who_hold_what_is_not_to_be_saved_hand_it_over_to_who_comes_before_their_time_is_over(pods):
    group = pods()
    spec = json.loads(group.spec.read_text(encoding="utf-8"))
    spec["spec"]["checkpoint"]["onPreemption"] = False
    group.spec.write_text(json.dumps(spec), encoding="utf-8")
    workers, coordinator = begin(group, 3)
    for worker in workers:
        worker.signal(signal.SIGTERM)
    status = group.until(lambda s: [e for e in s["events"] if e["event"] == "checkpointSkipped"], "that nothing is saved")
    held = next(e["step"] for e in status["events"] if e["event"] == "checkpointSkipped")
    for index in (3, 4):
        group.worker(index)
    status = group.ring((3, 1), (4, 1))
    assert [worker.wait() for worker in workers] == [0, 0, 0], group.tail()
    assert [worker.last_word() for worker in workers] == [{"left": True}] * 3
    assert [e["step"] for e in status["events"] if e["event"] == "ringFormed"][1:] == [held], "they go on from what they were given"
    assert status["stepsRedone"] == {"announced": 0, "sudden": 0}, status
    assert coordinator.wait() == 0, group.tail()
    assert coordinator.last_word()["weightsSha256"] == group.sha256


def test_one_that_has_to_go_hands_over_to_its_successor_at_once_and_the_ring_trains_on(pods):
    group = pods()
    _, first = begin(group, 3)
    trainers = group.trainers()
    first.signal(signal.SIGTERM)
    second = group.coordinator(term=2)
    assert first.wait() == 0, group.tail()  # its grace of 135 s is longer than this test may take
    assert first.last_word() == {"left": True}
    status = group.ring((0, 1), (1, 1), (2, 1))
    assert status["term"] == 2 and status["ring"]["generation"] == 1, "no ring was formed for it"
    assert group.trainers() == trainers
    assert second.wait() == 0, group.tail()
    assert second.last_word()["weightsSha256"] == group.sha256


def test_a_machine_that_is_drained_with_its_coordinator_leaves_nobody_waiting_below_min(pods):
    group = pods()
    workers, first = begin(group, 3)
    for program in (first, workers[1], workers[2]):  # min is 2
        program.signal(signal.SIGTERM)
    second = group.coordinator(term=2)
    for i in (1, 2):
        group.worker(i, attempt=2)
    assert [worker.wait() for worker in workers[1:]] == [0, 0], group.tail()
    assert first.wait() == 0, group.tail()
    group.ring((0, 1), (1, 2), (2, 2))
    assert second.wait() == 0, group.tail()
    assert second.last_word()["weightsSha256"] == group.sha256


def test_without_a_successor_one_that_has_to_go_serves_those_who_are_told_later(pods):
    group = pods(ENDLESS)
    workers, coordinator = begin(group, 3)
    coordinator.signal(signal.SIGTERM)
    told = group.until(lambda _: "told to go" in coordinator.text(), "it knows")
    group.until_step(told["progress"]["step"] + 200)
    for worker in workers:
        worker.signal(signal.SIGTERM)
    assert [worker.wait() for worker in workers] == [0, 0, 0], group.tail()
    assert [worker.last_word() for worker in workers] == [{"left": True}] * 3
    assert coordinator.wait() == 0, group.tail()


def test_a_coordinator_that_nobody_needs_goes_when_it_is_told_to(pods):
    """Several of them: what it looked for under its own name was still under way when its sockets were closed."""
    group = pods(ENDLESS)
    for term in range(1, 7):
        coordinator = group.coordinator(term=term)
        rig.until(lambda told=coordinator: "the job may begin" in told.text(), "it is there", rig.DEADLINE_S)
        coordinator.signal(signal.SIGTERM)
        assert coordinator.wait() == 0, group.tail()
        assert coordinator.last_word() == {"left": True}


def test_below_min_it_saves_and_waits_instead_of_ending(pods):
    group = pods()
    workers, coordinator = begin(group, 3)
    for worker in workers[1:]:
        worker.signal(signal.SIGKILL)
        worker.wait()
    status = group.until(lambda s: "workers here: 1, needed: 2" in s["message"], "it says what it waits for")
    assert status["checkpoint"]["step"] == status["progress"]["step"] >= 20
    assert status["state"] == "Gathering" and coordinator.process.poll() is None
    group.worker(2, attempt=2)
    group.ring((0, 1), (2, 2))
    assert coordinator.wait() == 0, group.tail()
    assert coordinator.last_word()["weightsSha256"] == group.sha256


OLDER = {"RINGMASTER_TRAINER_ISA": "SSE41"}  # as on a machine of another kind


def test_a_machine_that_computes_other_bits_is_refused_and_another_one_takes_its_place(pods):
    group = pods()
    group.worker(0)
    group.worker(1)
    coordinator = group.coordinator()
    group.ring((0, 1), (1, 1))
    misfit = group.worker(2, env=OLDER)
    assert misfit.wait() == 3, group.tail()
    word = misfit.last_word()
    assert word["elsewhere"] is True and word["reason"].count("numerics") == 2 and "sse41" in word["reason"], word
    assert group.status()["mixedHardware"] is False
    group.worker(2, attempt=2)
    group.ring((0, 1), (1, 1), (2, 2))
    assert coordinator.wait() == 0, group.tail()
    assert coordinator.last_word()["weightsSha256"] == group.sha256


def stale_copy(group, tmp_path):
    """What binds last week's training data over today's, for one worker."""
    today = Path(urllib.parse.urlparse(json.loads(group.spec.read_text(encoding="utf-8"))["spec"]["trainer"]["data"]["uri"]).path)
    stale = shutil.copytree(today, tmp_path / "last-week")
    victim = next(path for path in sorted(stale.rglob("*")) if path.is_file())
    victim.write_bytes(victim.read_bytes().swapcase())
    return [(stale, today)]


def sent_for_its_data(worker, group):
    assert worker.wait() == 3, group.tail()
    word = worker.last_word()
    return word["elsewhere"] is True and "sees other training data" in word["reason"], word


def test_a_machine_with_another_copy_of_the_data_is_refused_and_another_one_takes_its_place(pods, tmp_path):
    group = pods()
    stale = stale_copy(group, tmp_path)
    group.worker(0)
    group.worker(1)
    coordinator = group.coordinator()
    group.ring((0, 1), (1, 1))
    refused, word = sent_for_its_data(group.worker(2, over=stale), group)
    assert refused, word
    group.worker(2, attempt=2)
    group.ring((0, 1), (1, 1), (2, 2))
    assert coordinator.wait() == 0, group.tail()
    assert coordinator.last_word()["weightsSha256"] == group.sha256


def test_the_first_that_comes_may_be_the_machine_with_another_copy_of_the_data(pods, tmp_path):
    group = pods()
    coordinator = group.coordinator()
    first = group.worker(0, over=stale_copy(group, tmp_path))
    group.until(lambda s: [w for w in s["workers"] if w["phase"] not in ("expected", "starting")], "the first has its trainer")
    refused, word = sent_for_its_data(group.worker(1), group)
    assert refused, word
    group.worker(2)
    refused, word = sent_for_its_data(first, group)
    assert refused, word
    group.worker(0, attempt=2)
    group.worker(1, attempt=2)
    group.ring((0, 2), (1, 2), (2, 1))
    assert coordinator.wait() == 0, group.tail()
    assert coordinator.last_word()["weightsSha256"] == group.sha256


def test_data_that_changed_for_all_while_nothing_ran_end_the_job_with_a_sentence(pods, tmp_path):
    group = pods()
    workers, first = begin(group, 3)
    for worker in workers:
        worker.signal(signal.SIGTERM)
    assert [worker.wait() for worker in workers] == [0, 0, 0], group.tail()
    first.signal(signal.SIGKILL)
    first.wait()
    stale = stale_copy(group, tmp_path)
    second = group.coordinator(term=2)
    for attempt in (2, 3):
        refused = [group.worker(i, attempt=attempt, over=stale) for i in range(2)]
        assert [worker.wait() for worker in refused] == [3, 3], group.tail()
        if second.process.poll() is not None:
            break
    assert second.wait() == 3, group.tail()
    assert "is not what the checkpoint was trained on" in second.last_word()["reason"], second.last_word()


def test_when_all_machines_went_only_those_of_the_same_kind_go_on(pods):
    group = pods()
    workers, first = begin(group, 2)
    for worker in workers:
        worker.signal(signal.SIGTERM)
    assert [worker.wait() for worker in workers] == [0, 0], group.tail()
    first.signal(signal.SIGKILL)
    first.wait()
    second = group.coordinator(term=2)
    others = [group.worker(i, attempt=2, env=OLDER) for i in range(3)]
    assert [worker.wait() for worker in others] == [3, 3, 3], group.tail()
    assert [worker.last_word()["elsewhere"] for worker in others] == [True] * 3
    for i in range(3):
        group.worker(i, attempt=3)
    group.ring((0, 3), (1, 3), (2, 3))
    assert second.wait() == 0, group.tail()
    assert second.last_word()["weightsSha256"] == group.sha256


def test_another_jobs_key_is_refused_on_both_sides(pods, tmp_path):
    group = pods(ENDLESS)
    other = tmp_path / "other-key"
    other.write_text(secrets.token_hex(32), encoding="ascii")
    coordinator = group.coordinator()
    group.worker(0)
    group.worker(1)
    stranger = group.worker(2, key=other)
    assert stranger.wait() == 4, group.tail()
    assert "its key is another one" in stranger.last_word()["reason"]
    status = group.ring((0, 1), (1, 1))
    assert [w["worker"] for w in status["workers"]] == [0, 1]
    assert "a stranger is refused" in coordinator.text()


def test_without_its_key_a_pod_ends_with_a_sentence(pods, tmp_path):
    group = pods()
    for program in (group.worker(0, key=tmp_path / "absent"), group.coordinator(key=tmp_path / "absent")):
        assert program.wait() != 0
        assert "absent" in program.last_word()["reason"]


def test_a_worker_that_is_told_to_go_while_nobody_releases_it_goes_within_its_grace(pods):
    group = pods(ENDLESS)
    workers = [group.worker(i, grace=4) for i in range(3)]
    coordinator = group.coordinator()
    group.ring((0, 1), (1, 1), (2, 1))
    coordinator.signal(signal.SIGKILL)
    coordinator.wait()
    workers[0].signal(signal.SIGTERM)
    assert workers[0].wait() == 4, group.tail()
    assert "not released" in workers[0].last_word()["reason"]
    assert [worker.process.poll() for worker in workers[1:]] == [None, None], "the others wait for a successor"


def test_the_port_for_metrics_is_what_the_environment_says_and_has_nothing_else(pods):
    group = pods(ENDLESS)
    workers = [group.worker(i) for i in range(3)]
    group.coordinator()
    group.ring((0, 1), (1, 1), (2, 1))
    assert "ringmaster_ring_size 3\n" in group.get("/metrics", port=pod_rig.METRICS)
    for path in ("/v1/status", "/healthz"):
        with pytest.raises(AssertionError, match="404"):
            group.get(path, port=pod_rig.METRICS)
    refused = group.coordinator(named=False, env={"RINGMASTER_POD_METRICS_PORT": "many"})
    assert refused.wait() == 2
    assert "RINGMASTER_POD_METRICS_PORT wants a port" in refused.last_word()["reason"]
    assert [worker.process.poll() for worker in workers] == [None] * 3


def test_the_pages_of_workers_answer(pods):
    group = pods(ENDLESS)
    workers = [group.worker(i) for i in range(3)]
    group.coordinator()
    group.ring((0, 1), (1, 1), (2, 1))
    group.until_step(5)
    for worker in workers:
        assert group.get("/healthz", worker.ip, pod_rig.PAGES) == "ok\n"
        assert "ringmaster_worker_steps_total" in group.get("/metrics", worker.ip, pod_rig.PAGES)
