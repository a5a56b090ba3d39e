"""A machine's end that is told before it comes: by the metadata of three clouds, through `ringmaster-agent node` or straight."""

import contextlib
import http.client
import json
import re
import select
import socket
import subprocess
import sys
import threading
import time
from email.utils import formatdate
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import pod_rig
import rig

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.append(str(Path(__file__).resolve().parents[2] / "tools"))

import bench_notice  # noqa: E402  (its folder is on the path only now)
from metadata_rig import stand_in  # noqa: E402
from metadata_rig.server import Metadata, event, iso  # noqa: E402

STEPS = 4000  # so many that the last notice comes before them on a quick machine, too
ENDLESS = 10 ** 9
NODE_PORT = 7072
WORD = '{"action": "terminate", "time": "2037-01-01T00:00:00Z"}'

pytestmark = pytest.mark.skipif(not pod_rig.can_be(), reason="no mount namespaces to be had here")


@pytest.fixture(name="pods")
def pods_of_a_job(launch, tmp_path, tmp_path_factory):
    with pod_rig.made_pods(launch, tmp_path, tmp_path_factory, STEPS) as make:
        yield make


@pytest.fixture(name="node")
def nodes():
    """node(address, url): `ringmaster-agent node` there, which asks that metadata; it listens."""
    started = []

    def node(address, url, port=NODE_PORT, env=None):
        process = subprocess.Popen([str(rig.BIN / "ringmaster-agent"), "node", "--listen", address, "--port", str(port), "--metadata", url],
                                   env={"RINGMASTER_LOG": "info", **(env or {})}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        started.append(process)
        process.said, process.port = [], port
        threading.Thread(target=lambda: process.said.extend(process.stderr), daemon=True).start()
        rig.until(lambda: any("listening" in line for line in process.said), "it listens", rig.DEADLINE_S)
        listening = next(line for line in process.said if "listening" in line)
        process.port = int(re.search(r"at=\S+:(\d+) ", listening).group(1))
        return process

    yield node
    for process in started:
        process.terminate()
        assert process.wait(timeout=30) == 0
        assert "Sanitizer" not in "".join(process.said)


def notices(address, after=None, port=NODE_PORT):
    connection = http.client.HTTPConnection(address, port, timeout=90)
    try:
        connection.request("GET", "/v1/notices" + ("" if after is None else f"?after={after}"))
        answer = connection.getresponse()
        text = answer.read()
        assert answer.status == 200 and len(text) <= 65536
        return json.loads(text)
    finally:
        connection.close()


def by_node(address):
    return {"RINGMASTER_POD_HOST_IP": address, "RINGMASTER_POD_NODE_PORT": str(NODE_PORT)}


def heard(worker):
    rig.until(lambda: "notices are heard" in worker.text(), "it knows what its machine is told", rig.DEADLINE_S)


@pytest.mark.turns
def test_on_each_cloud_who_is_given_notice_trains_on_until_another_one_has_its_place_and_nothing_is_done_again(pods, node):
    """Nobody sends a signal. AWS and GCE through the agent of the machine, Azure by a worker that has its machine's network.
    Each change is one ring: who comes and who goes in one."""
    group = pods()
    with Metadata("aws") as aws, Metadata("gce") as gce, Metadata("azure") as azure:
        places = [group.new_ip(), group.new_ip()]
        for place, metadata in zip(places, (aws, gce)):
            node(place, metadata.url)
            rig.until(lambda at=place: notices(at)["complete"], "it has asked", rig.DEADLINE_S)
        workers = [group.worker(0, env=by_node(places[0])), group.worker(1, env=by_node(places[1])),
                   group.worker(2, env={"RINGMASTER_METADATA": azure.url}), group.worker(3)]
        coordinator = group.coordinator()
        ring = {0: 1, 1: 1, 2: 1, 3: 1}
        group.ring(*ring.items())
        for worker in workers[:3]:
            heard(worker)
        for index, (metadata, who) in enumerate([(aws, "aws-spot"), (gce, "gce-preempted"), (azure, "azure-scheduled-event")]):
            generation = group.status()["ring"]["generation"]
            metadata.reclaim(100)
            status = group.until(lambda s, at=index: notice_of(s, at), "it is told")
            group.until_step(status["progress"]["step"] + 20)
            assert workers[index].process.poll() is None, group.tail()
            group.worker(4 + index)  # on another machine
            assert workers[index].wait() == 0, group.tail()
            assert workers[index].last_word() == {"left": True} and f'"notice":"{who}"' in workers[index].text(), group.tail()
            del ring[index]
            ring[4 + index] = 1
            status = group.ring(*ring.items())
            assert status["ring"]["generation"] == generation + 1, status
            assert status["lost"] == [] and status["stepsRedone"] == {"announced": 0, "sudden": 0}, status
        assert coordinator.wait() == 0, group.tail()
        assert coordinator.last_word()["weightsSha256"] == group.sha256


def test_the_bench_has_one_job_hear_a_notice_of_each_cloud_and_its_withdrawal_again_and_again():
    found = bench_notice.notices({"workers__target": 3, "workers__min": 1, "workers__max": 4}, 2, 1, print)
    assert {cloud: len(took) for cloud, took in found.items()} == {"aws": 2, "azure": 2, "gce": 2}
    assert all(seconds > -0.001 for took in found.values() for one in took for seconds in one if seconds is not None), "whole ms of one clock"


def silent(handler):
    handler.close_connection = True


def never_answers(handler):
    """It has taken the question, and the connection stands."""
    metadata = handler.metadata
    with metadata.news:
        metadata.news.wait_for(lambda: metadata.stopping)
    handler.close_connection = True


FAULTS = {
    "5xx": lambda h: h.say(503, WORD),
    "a redirect": lambda h: h.say(302, "", Location="/latest/meta-data/spot/instance-action"),
    "a mebibyte": lambda h: h.say(200, b" " * (1 << 20)),
    "no JSON": lambda h: h.say(200, "<html>terminate</html>"),
    "a token refused": lambda h: h.say(401),
    "nothing": silent,
    "silence": never_answers,
    "long past": lambda h: h.say(200, json.dumps({"action": "terminate", "time": "2017-09-18T08:22:00Z"})),
}
SAID = {"5xx": "status 503", "a redirect": "redirect", "a mebibyte": "more than 65536 bytes", "no JSON": "instance-action",
        "a token refused": "status 401", "nothing": "instance-action: ", "silence": "timed out", "long past": "long past"}


def test_what_is_no_notice_is_one_sentence_and_the_next_true_one_is_heard(node):
    with contextlib.ExitStack() as stack:
        places = {name: stack.enter_context(Metadata("aws")) for name in FAULTS}
        for name, metadata in places.items():
            metadata.faults.append(("spot/instance-action", FAULTS[name]))
        nodes = {name: node("127.0.0.1", metadata.url, port=0) for name, metadata in places.items()}
        for name, process in nodes.items():
            rig.until(lambda: any(SAID[name] in line for line in process.said), f"it says {name}", rig.DEADLINE_S)  # noqa: B023
            places[name].until_asked("instance-action")
            assert sum(SAID[name] in line for line in process.said) == 1, process.said
        for name, metadata in places.items():
            page = notices("127.0.0.1", port=nodes[name].port)
            assert page["notices"] == [] and page["cloud"] == "aws", page
            metadata.faults.clear()
            metadata.reclaim(100)
        for name, process in nodes.items():
            rig.until(lambda: notices("127.0.0.1", port=process.port)["notices"], f"a notice after {name}", rig.DEADLINE_S)  # noqa: B023
            told = notices("127.0.0.1", port=process.port)["notices"]
            assert [(n["source"], n["certainty"]) for n in told] == [("aws-spot", "will")]


@pytest.fixture(name="amazons", scope="module")
def fixture_amazons():
    """standing(home, *words): Amazon's own stand-in for its metadata."""
    try:
        stand_in.install()
    except stand_in.Offline as why:
        pytest.skip(str(why))
    return stand_in.standing


@pytest.mark.turns
def test_what_amazons_own_stand_in_tells_is_heard_and_a_moment_that_it_puts_off_stays_where_it_was(node, amazons, tmp_path):
    """Of a `spot` without a time it says at each question that there are two more minutes."""
    with amazons(tmp_path, "spot") as url:
        process = node("127.0.0.1", url, port=0)
        port = process.port

        def told():
            page = notices("127.0.0.1", port=port)
            return page, {n["source"]: (n["certainty"], n.get("leftMs")) for n in page["notices"]}
        rig.until(lambda: len(told()[1]) == 2 and told()[0]["complete"] and told()[0]["pool"], "it tells both, and of which type it is", rig.DEADLINE_S)
        page, first = told()
        assert first == {"aws-rebalance": ("may", None), "aws-spot": ("will", first["aws-spot"][1])} and first["aws-spot"][1] <= 121000, page
        rig.until(lambda: told()[1]["aws-spot"][1] < first["aws-spot"][1] - 5000, "the time runs", rig.DEADLINE_S)
        assert told()[0]["revision"] == page["revision"]
        assert sum("its time is put off" in line for line in process.said) == 1, process.said


@pytest.mark.parametrize("cloud, pool", [("aws", "p3.2xlarge/us-east-1a"), ("gce", "n1-standard-8/us-central1-a"), ("azure", "Standard_NC6s_v3/1")])
def test_each_cloud_says_of_which_type_a_machine_is_and_in_which_zone(node, cloud, pool):
    with Metadata(cloud) as metadata:
        port = node("127.0.0.1", metadata.url, port=0).port
        rig.until(lambda: notices("127.0.0.1", port=port)["pool"] == pool, "type and zone are told", rig.DEADLINE_S)


@pytest.mark.parametrize("off", [-600, 600])
def test_a_clock_that_is_ten_minutes_off_moves_no_deadline(node, off):
    with Metadata("azure", clock=lambda: time.time() + off) as metadata:
        process = node("127.0.0.1", metadata.url, port=0)
        port = process.port
        rig.until(lambda: (said := notices("127.0.0.1", port=port))["complete"] and said["pool"], "it has asked", rig.DEADLINE_S)
        page = notices("127.0.0.1", port=port)
        metadata.tell(event(metadata.clock() + 30, ["gpu_4"], ident="E-0"))  # another machine's: nothing
        metadata.until_asked("scheduledevents", times=2)
        assert notices("127.0.0.1", port=port) == page
        metadata.reclaim(100)
        told = notices("127.0.0.1", after=page["revision"], port=port)["notices"]
        assert len(told) == 1 and 0 < told[0]["leftMs"] <= 101000, told
        clock = "ahead of that of its metadata" if off < 0 else "behind that of its metadata"
        assert sum(clock in line for line in process.said) == 1, process.said


def test_azures_first_answer_is_waited_for_longer_than_any_other(node):
    """It may take two minutes: here longer than a question may else take."""
    with Metadata("azure", switched_on_in=7) as metadata:
        metadata.reclaim(100)
        process = node("127.0.0.1", metadata.url, port=0)
        rig.until(lambda: any("scheduledevents" in path for _, path in metadata.asked), "it has asked", rig.DEADLINE_S)
        assert not notices("127.0.0.1", port=process.port)["complete"]
        rig.until(lambda: notices("127.0.0.1", port=process.port)["complete"], "it is answered", rig.DEADLINE_S)
        assert [n["source"] for n in notices("127.0.0.1", port=process.port)["notices"]] == ["azure-scheduled-event"]
        assert "nothing to rely on" not in "".join(process.said), process.said


def test_planned_maintenance_whose_earliest_moment_is_over_moves_nobody_and_a_spot_machine_has_some_seconds(pods):
    """NotBefore is the earliest time alone, and an event of AWS stays active for hours after it."""
    group = pods(ENDLESS)
    with Metadata("aws") as metadata:
        workers = [group.worker(0, env={"RINGMASTER_METADATA": metadata.url}), group.worker(1)]
        group.coordinator()
        group.ring((0, 1), (1, 1))
        heard(workers[0])
        metadata.put("events/maintenance/scheduled", json.dumps([{
            "Code": "system-reboot", "State": "active", "EventId": "instance-event-1", "Description": "scheduled reboot",
            "NotBefore": formatdate(time.time() - 300, usegmt=True)[5:], "NotAfter": formatdate(time.time() + 6900, usegmt=True)[5:]}]))
        rig.until(lambda: "aws-maintenance" in workers[0].text(), "it is told", rig.DEADLINE_S)
        metadata.until_asked("maintenance/scheduled")
        assert "this machine may go (maintenance)" in workers[0].text() and "leaving" not in workers[0].text(), workers[0].text()
        metadata.reclaim(-10)
        assert workers[0].wait() == 0, group.tail()
        assert re.search(r'"notice":"aws-spot"[^\n]*"seconds":"?5\b', workers[0].text()), workers[0].text()


def told_of(status, worker):
    return [(e["event"], e["source"], e["certainty"]) for e in status["events"] if e["event"].startswith("notice") and e["worker"] == worker]


def notice_of(status, worker):
    return next(w for w in status["workers"] if w["worker"] == worker).get("notice")


def test_the_coordinator_shows_and_tells_once_what_may_come_what_will_and_what_is_withdrawn(pods):
    """AWS advises another place and then takes the machine; Azure's event is late, so that it only may come, and is cancelled."""
    group = pods(ENDLESS)
    with Metadata("aws") as aws, Metadata("azure") as azure:
        workers = [group.worker(0, env={"RINGMASTER_METADATA": aws.url}), group.worker(1, env={"RINGMASTER_METADATA": azure.url})]
        group.coordinator()
        group.ring((0, 1), (1, 1))
        for worker in workers:
            heard(worker)
        aws.put("events/recommendations/rebalance", json.dumps({"noticeTime": iso(time.time())}))
        status = group.until(lambda s: notice_of(s, 0), "worker 0 is under notice")
        assert notice_of(status, 0) == {"source": "aws-rebalance", "cause": "reclaim", "certainty": "may", "leftSeconds": None}, status
        azure.tell(event(azure.clock() - 10, [azure.name]))
        status = group.until(lambda s: notice_of(s, 1), "worker 1 is under notice")
        assert (notice_of(status, 1)["source"], notice_of(status, 1)["certainty"]) == ("azure-scheduled-event", "may"), status
        azure.tell()
        status = group.until(lambda s: not notice_of(s, 1), "its notice is withdrawn")
        assert [m["worker"] for m in status["ring"]["members"]] == [0, 1], "nobody left by what may come"
        azure_said = [("noticeReceived", "azure-scheduled-event", "may"), ("noticeWithdrawn", "azure-scheduled-event", "may")]
        assert told_of(status, 1) == azure_said, status
        aws.reclaim(9)  # so that little more than a leave's own time remains: nobody comes in its place
        assert workers[0].wait() == 0, group.tail()
        status = group.status()
        assert told_of(status, 0) == [("noticeReceived", "aws-rebalance", "may"), ("noticeReceived", "aws-spot", "will")], status
        will = next(e for e in status["events"] if e.get("source") == "aws-spot")
        assert 0 < will["leftSeconds"] <= 10 and will["cause"] == "reclaim", will
        assert told_of(status, 1) == azure_said and status["lost"] == [], status
        assert [e["event"] for e in status["events"]].count("checkpointSaved") == 2, "at the first word, and as one alone is too few"


def posted(metadata):
    return [path for method, path in metadata.asked if method == "POST"]


def test_azure_hears_once_that_a_machine_may_go_when_its_only_worker_has_left_and_all_is_saved(pods):
    """Not of an event that names another machine, not by a worker of whose machine nobody said that it is its alone, and never a second time."""
    group = pods(ENDLESS)
    with contextlib.ExitStack() as stack:
        own, shared, unasked, deaf = clouds = [stack.enter_context(Metadata("azure")) for _ in range(4)]
        deaf.faults.append(("scheduledevents", lambda h: h.say(500) if h.command == "POST" else h.azure(urlsplit(h.path))))
        alone = {"RINGMASTER_METADATA_START": "true"}
        workers = [group.worker(index, env={"RINGMASTER_METADATA": metadata.url, **({} if metadata is unasked else alone)})
                   for index, metadata in enumerate(clouds)]
        group.coordinator()
        group.ring(*[(index, 1) for index in range(4)])
        for worker in workers:
            heard(worker)
        shared.tell(event(shared.clock() + 9, [shared.name, "gpu_4"]))
        unasked.reclaim(9)
        deaf.reclaim(9)
        for worker in workers[1:]:
            assert worker.wait() == 0 and worker.last_word() == {"left": True}, group.tail()
        assert (posted(shared), posted(unasked), len(posted(deaf))) == ([], [], 1), group.tail()
        assert "it did not hear that it may" in workers[3].text(), workers[3].text()
        at = []
        own.starting = lambda ident: at.append((ident, group.status(), workers[0].last_word()))
        assert posted(own) == [], "nothing was planned for it"
        own.reclaim(9)
        assert workers[0].wait() == 0, group.tail()
        (ident, status, word), = at
        assert (ident, word, own.started) == ("E-1", {"left": True}, ["E-1"]) and len(posted(own)) == 1, group.tail()
        assert status["checkpoint"]["step"] == status["progress"]["step"] > 0, status
        assert "the machine may go now" in workers[0].text(), workers[0].text()


def test_who_is_to_let_its_machine_go_has_to_ask_the_metadata_itself(pods):
    group = pods(ENDLESS)
    for env, why in (({"RINGMASTER_METADATA_START": "true"}, "RINGMASTER_METADATA_START wants RINGMASTER_METADATA"),
                     ({"RINGMASTER_METADATA_START": "yes", "RINGMASTER_METADATA": "http://127.0.0.1:9"}, 'true or false, not "yes"')):
        worker = group.worker(len(group.programs), env=env)
        assert worker.wait() == 2 and why in worker.text(), worker.text()


def test_a_worker_to_whom_its_machine_does_not_belong_and_who_asks_nobody_works(pods):
    group = pods(20)
    workers = [group.worker(i, env={"RINGMASTER_METADATA_START": "false"}) for i in range(3)]
    group.coordinator()
    for worker in workers:
        assert worker.wait() == 0, group.tail()


def test_the_rig_begins_with_azures_events_by_its_own_words_alone():
    def says(metadata, body, headers):
        connection = http.client.HTTPConnection("127.0.0.1", metadata.server.server_port, timeout=30)
        try:
            connection.request("POST", "/metadata/scheduledevents?api-version=2020-07-01", body, headers)
            return connection.getresponse().status
        finally:
            connection.close()

    word, azures = {"StartRequests": [{"EventId": "E-1"}]}, {"Metadata": "true"}
    with Metadata("azure") as metadata:
        metadata.reclaim(100)
        other = {"StartRequests": [{"EventId": "E-2"}]}
        for body, headers in ((word, {}), (other, azures), ({"StartRequests": []}, azures), ({**word, "DocumentIncarnation": 2}, azures), ([], azures)):
            assert says(metadata, json.dumps(body), headers) == 400, body
        assert metadata.started == [] and metadata.events[0]["EventStatus"] == "Scheduled"
        assert says(metadata, json.dumps(word), azures) == 200
        assert metadata.started == ["E-1"] and (metadata.events[0]["EventStatus"], metadata.events[0]["NotBefore"]) == ("Started", "")


def test_a_stranger_where_the_nodes_agent_should_be_moves_nobody(pods):
    group = pods(ENDLESS)
    address = group.new_ip()
    said = [b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
            b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1/v1/notices\r\nContent-Length: 0\r\n\r\n"]
    asked = threading.Event()
    with socket.create_server((address, NODE_PORT)) as server:
        def stranger():
            for word in said:
                try:
                    with server.accept()[0] as caller:
                        caller.recv(4096)
                        caller.sendall(word)
                except OSError:
                    return
            asked.set()
        threading.Thread(target=stranger, daemon=True).start()
        workers = [group.worker(0, env=by_node(address)), group.worker(1)]
        group.coordinator()
        group.ring((0, 1), (1, 1))
        assert asked.wait(rig.DEADLINE_S)
        rig.until(lambda: workers[0].text().count("no notices are heard") >= 3, "it says so", rig.DEADLINE_S)
        at = group.status()["progress"]["step"]
        group.until_step(at + 20)
        text = workers[0].text()
    assert "leaving" not in text, text


def test_a_nodes_agent_that_starts_again_withdraws_nothing_before_it_has_asked(pods):
    """What the new one says first has no notices, and is not complete."""
    group = pods(ENDLESS)
    address = group.new_ip()
    may = {"source": "aws-rebalance", "cause": "reclaim", "certainty": "may", "id": ""}
    pages, answered = [(7, True, [may]), (8, False, []), (9, True, [may]), (10, True, [])], threading.Event()
    with socket.create_server((address, NODE_PORT)) as server:
        def machine():
            for revision, complete, told in pages:
                body = json.dumps({"revision": revision, "cloud": "aws", "complete": complete, "notices": told}).encode()
                with server.accept()[0] as caller:
                    caller.recv(4096)
                    caller.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            answered.set()
        threading.Thread(target=machine, daemon=True).start()
        worker = group.worker(0, env=by_node(address))
        assert answered.wait(rig.DEADLINE_S), worker.text()
        rig.until(lambda: "notice withdrawn" in worker.text(), "it hears that it is withdrawn", rig.DEADLINE_S)
        text = worker.text()
    assert text.count("notice withdrawn") == 1 and text.count('"certainty":"may"') == 1, text


def asks(port, after, address="127.0.0.1"):
    """A connection that has asked, and waits."""
    caller = socket.create_connection(("127.0.0.1", port), timeout=rig.DEADLINE_S, source_address=(address, 0))
    caller.sendall(f"GET /v1/notices?after={after} HTTP/1.1\r\nHost: here\r\n\r\n".encode())
    return caller


def is_answered(caller):
    return bool(select.select([caller], [], [], 0)[0])


def whole(caller):
    """The body: its head may have come alone."""
    with http.client.HTTPResponse(caller) as answer:
        answer.begin()
        return answer.read()


def test_sixty_four_callers_wait_for_news_and_who_comes_beside_them_is_answered_at_once(node):
    with Metadata("aws") as metadata, contextlib.ExitStack() as stack:
        port = node("127.0.0.1", metadata.url, port=0).port
        rig.until(lambda: (said := notices("127.0.0.1", port=port))["complete"] and said["pool"], "it has asked", rig.DEADLINE_S)
        revision = notices("127.0.0.1", port=port)["revision"]
        callers = [stack.enter_context(asks(port, revision, f"127.0.1.{1 + number // 4}")) for number in range(64 + 20)]
        rig.until(lambda: sum(map(is_answered, callers)) == 20, "all but 64 have an answer", rig.DEADLINE_S)
        assert notices("127.0.0.1", after=revision, port=port)["notices"] == []
        metadata.reclaim(100)
        rig.until(lambda: all(map(is_answered, callers)), "all have one", rig.DEADLINE_S)
        assert sum(b"aws-spot" in whole(caller) for caller in callers) == 64


def test_of_one_address_four_wait_and_whoever_asks_more_takes_no_place_from_others(node):
    with Metadata("aws") as metadata, contextlib.ExitStack() as stack:
        port = node("127.0.0.1", metadata.url, port=0).port
        rig.until(lambda: (said := notices("127.0.0.1", port=port))["complete"] and said["pool"], "it has asked", rig.DEADLINE_S)
        revision = notices("127.0.0.1", port=port)["revision"]
        greedy = [stack.enter_context(asks(port, revision, "127.0.1.1")) for _ in range(64)]
        rig.until(lambda: sum(map(is_answered, greedy)) == 60, "all but four have an answer", rig.DEADLINE_S)
        other = stack.enter_context(asks(port, revision, "127.0.1.2"))
        assert notices("127.0.0.1", port=port)["notices"] == [] and not is_answered(other)
        metadata.reclaim(100)
        assert b"aws-spot" in whole(other)


@pytest.fixture(name="later", scope="module")
def library_to_preload(tmp_path_factory):
    """What has a program believe that time has gone by (later.c)."""
    return rig.preloadable("later", tmp_path_factory.mktemp("later"))


def test_who_waits_for_news_that_do_not_come_has_an_answer_after_a_minute(node, later, tmp_path):
    gone_by = tmp_path / "gone by"
    with Metadata("gce") as metadata, contextlib.ExitStack() as stack:
        port = node("127.0.0.1", metadata.url, port=0, env={"LD_PRELOAD": str(later), "LATER_WHILE": str(gone_by), "LATER_S": "60"}).port
        rig.until(lambda: (said := notices("127.0.0.1", port=port))["complete"] and said["pool"], "it has asked", rig.DEADLINE_S)
        page = notices("127.0.0.1", port=port)
        callers = [stack.enter_context(asks(port, page["revision"])) for _ in range(5)]
        rig.until(lambda: any(map(is_answered, callers)), "one is too many, and so the others wait", rig.DEADLINE_S)
        assert sum(map(is_answered, callers)) == 1
        gone_by.touch()
        rig.until(lambda: all(map(is_answered, callers)), "all have an answer", rig.DEADLINE_S)
        assert [json.loads(whole(caller)) for caller in callers] == [page] * 5


def test_whatever_the_environment_says_no_proxy_is_asked_for_the_metadata(node):
    with Metadata("aws") as metadata, socket.create_server(("127.0.0.1", 0)) as proxy:
        proxy.setblocking(False)
        at = f"http://127.0.0.1:{proxy.getsockname()[1]}"
        port = node("127.0.0.1", metadata.url, port=0, env={"http_proxy": at, "HTTP_PROXY": at, "all_proxy": at}).port
        metadata.reclaim(100)
        rig.until(lambda: notices("127.0.0.1", port=port)["notices"], "a notice", rig.DEADLINE_S)
        with pytest.raises(BlockingIOError):
            proxy.accept()


def test_a_node_listens_at_no_address_that_stands_for_all_and_says_why():
    def refused(*words):
        done = subprocess.run([str(rig.BIN / "ringmaster-agent"), "node", *words], capture_output=True, text=True, timeout=30, check=False)
        return done.returncode, done.stderr
    for address in ("0.0.0.0", "::", "::ffff:0.0.0.0"):
        code, text = refused("--listen", address)
        assert code == 2 and "stands for all addresses" in text, text
    assert refused()[0] == 2
    code, text = refused("--listen", "here")
    assert code == 2 and 'not "here"' in text
    with socket.create_server(("127.0.0.1", 0)) as taken:
        code, text = refused("--listen", "127.0.0.1", "--port", str(taken.getsockname()[1]), "--metadata", "http://127.0.0.1:9")
    assert code == 4 and "127.0.0.1" in text, text
    done = subprocess.run([str(rig.BIN / "ringmaster-agent"), "node", "--help"], capture_output=True, text=True, timeout=30, check=True)
    assert "ringmaster-agent node --listen IP" in done.stdout


def test_the_rig_stands_in_nobodys_way():
    with socket.create_server(("127.0.0.1", 0)) as there:
        port = there.getsockname()[1]
        with pytest.raises(RuntimeError, match="answers on 127.0.0.1 already"):
            Metadata("aws", port=port)
    with Metadata("aws", port=port) as free:
        assert free.url.endswith(f":{port}")


IP_MINTTL = 21  # Linux: this socket takes no packet with less of its TTL left; a router in between takes one


def dropped_for_their_ttl():
    names, values = [line.split() for line in Path("/proc/net/netstat").read_text(encoding="ascii").splitlines() if line.startswith("TcpExt:")]
    return int(dict(zip(names[1:], values[1:]))["TCPMinTTLDrop"])


def test_a_token_of_aws_goes_no_further_than_the_machine_and_all_else_does():
    token = b"PUT /latest/api/token HTTP/1.1\r\nHost: metadata\r\nX-aws-ec2-metadata-token-ttl-seconds: 21600\r\n\r\n"
    with Metadata("aws") as metadata, socket.create_connection(metadata.server.server_address) as behind:
        behind.setsockopt(socket.IPPROTO_IP, IP_MINTTL, 2)
        behind.sendall(b"GET /latest/meta-data/spot/instance-action HTTP/1.1\r\nHost: metadata\r\n\r\n")
        answer = http.client.HTTPResponse(behind)
        answer.begin()
        assert (answer.status, answer.read()) == (401, b"")
        before = dropped_for_their_ttl()
        behind.sendall(token)
        rig.until(lambda: dropped_for_their_ttl() > before, "the token's answer has come no further", rig.DEADLINE_S)
        with pytest.raises(BlockingIOError):
            behind.recv(1, socket.MSG_DONTWAIT)
