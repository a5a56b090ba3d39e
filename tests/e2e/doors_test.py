"""As many as may come: the most workers that a job may have, and callers that nobody asked for."""

import json
import os
import resource
import select
import socket
import threading
from pathlib import Path

import pytest

import pod_rig
import rig

ENDLESS = 10 ** 9
STEPS = 300
MOST = 64  # workers of a job, in docs/job-file.md
NEWCOMERS = 40


@pytest.mark.turns
def test_sixty_four_workers_train_of_whom_forty_join_at_once(tmp_path, launch, reference):
    fields = {"workers__max": MOST, "trainer__batch__lanes": MOST, "trainer__batch__laneSequences": 1, "trainer__steps": 60,
              "trainer__model__layers": 1, "trainer__model__context": 16}
    patience = {"elasticity__lostAfter": "60s", "elasticity__formTimeout": "60s", "elasticity__joinWindow": "60s"}
    job = rig.make_job(tmp_path, workers__target=MOST - NEWCOMERS, **fields, **patience)
    run = launch(job, *["--drill", "join@3"] * NEWCOMERS)
    run.wait()
    complete = rig.check_complete(run, last=60)
    worlds = [ring["world"] for ring in run.of("ringFormed")]
    assert worlds[0] == MOST - NEWCOMERS and worlds[-1] == MOST, worlds
    assert not run.of("workerLost"), run.tail()
    assert all(e["stepsRedone"] == 0 for e in run.of("recovered")), run.of("recovered")
    assert complete["weightsSha256"] == reference(**fields)[0]


def open_files_of(pid):
    """The soft and the hard limit of a process."""
    line = next(l for l in Path(f"/proc/{pid}/limits").read_text(encoding="ascii").splitlines() if l.startswith("Max open files"))
    return line.split()[3:5]


@pytest.fixture(name="few_files")
def what_starts_may_open_few_files():
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def check_open_files(pids):
    for pid in pids:
        soft, hard = open_files_of(pid)
        assert soft == hard and int(hard) > 256, (pid, soft, hard)


@pytest.mark.usefixtures("few_files")
def test_every_program_of_a_run_may_open_as_many_files_as_the_system_lets_it(tmp_path, launch):
    run = launch(rig.make_job(tmp_path, trainer__steps=10 ** 6))
    pids = [run.pid, run.read_until("started")["coordinatorPid"]]
    (member,) = run.read_until("ringFormed")["members"]
    check_open_files([*pids, member["agentPid"], member["trainerPid"]])


@pytest.mark.usefixtures("few_files")
def test_an_operator_may_too(tmp_path):
    with rig.operator_at_work(tmp_path, os.environ) as operator:
        check_open_files([operator.pid])


@pytest.fixture(name="pods")
def pods_of_a_job(launch, tmp_path, tmp_path_factory):
    """pods(steps): see pod_rig.made_pods."""
    if not pod_rig.can_be():
        pytest.skip("no mount namespaces to be had here")
    with pod_rig.made_pods(launch, tmp_path, tmp_path_factory, STEPS) as make:
        yield make


class Crowd:
    """Connections that say nothing, always as many: who is sent away comes again."""

    def __init__(self, address, count):
        self.address, self.over = address, threading.Event()
        self.sockets = [socket.create_connection(address, timeout=20) for _ in range(count)]
        self.came_again = 0
        self.thread = threading.Thread(target=self._stay, daemon=True)
        self.thread.start()

    def _stay(self):
        while not self.over.is_set():
            poll = select.poll()
            places = {}
            for place, connection in enumerate(self.sockets):
                poll.register(connection, select.POLLIN)
                places[connection.fileno()] = place
            for fd, _ in poll.poll(20)[:50]:
                self.sockets[places[fd]].close()
                try:
                    self.sockets[places[fd]] = socket.create_connection(self.address, timeout=20)
                except OSError:  # who was asked has ended
                    return
                self.came_again += 1

    def leave(self):
        self.over.set()
        self.thread.join(timeout=30)
        for connection in self.sockets:
            connection.close()


def test_hundreds_who_say_nothing_keep_neither_a_joiner_nor_a_watcher_out(pods):
    group = pods(ENDLESS)
    for index in range(2):
        group.worker(index)
    group.coordinator()
    group.ring((0, 1), (1, 1))
    crowd = Crowd((group.coordinator_ip, pod_rig.PORT), 300)
    try:
        for _ in range(20):
            assert group.get("/healthz") == "ok\n"
        group.worker(2)
        group.ring((0, 1), (1, 1), (2, 1))  # asked for by GETs, through the same door
        rig.until(lambda: crowd.came_again > 300, "those who say nothing are sent away")
        assert len(group.status()["ring"]["members"]) == 3
    finally:
        crowd.leave()


def has_ipv6():
    try:
        with socket.socket(socket.AF_INET6) as one:
            one.bind(("::1", 0))
    except OSError:
        return False
    return True


@pytest.mark.skipif(not has_ipv6(), reason="no IPv6 here")
def test_a_job_whose_pods_have_addresses_of_ipv6_alone_trains_to_the_same_weights(pods):
    group = pods(STEPS)
    group.hosts.write_text("::1 localhost\n", encoding="ascii")
    coordinator = group.start("coordinator-1", "coordinate", "--pod", "--term", 1, "--job", group.spec, "--key-file", group.key,
                              "--listen", "::")
    address = json.loads(rig.until(lambda: next((l for l in coordinator.lines if '"listening"' in l), None), "it listens"))["address"]
    assert address.startswith("[::]:"), address
    port = int(address.rsplit(":", 1)[1])
    group.hosts.write_text(f"::1 localhost\n::1 {pod_rig.NAME}\n", encoding="ascii")
    workers = [group.start(f"worker-{index}-1", "work", "--pod", "--worker", index, "--attempt", 1, "--coordinator",
                           f"{pod_rig.NAME}:{port}", "--key-file", group.key, "--listen", "::1", "--port", 0)
               for index in range(3)]
    for index, worker in enumerate(workers):
        worker.index, worker.attempt = index, 1
    rig.until(lambda: len(group.trainers()) == 3, "three trainers", rig.DEADLINE_S)
    for family in ("::1", "127.0.0.1"):
        assert group.get("/healthz", ip=family, port=port) == "ok\n"
    assert coordinator.wait() == 0, group.tail()
    assert coordinator.last_word()["weightsSha256"] == group.sha256, group.tail()
    for worker in workers:
        assert worker.wait() == 0, group.tail()
