"""A machine's end that its cloud tells before it comes: each node has the metadata of another cloud, and asks them by the chart's DaemonSet.

Whatever is told, and whenever, the weights are those of an undisturbed `ringmaster run`."""

import concurrent.futures
import contextlib
import itertools
import json
import os
import signal
import subprocess
from pathlib import Path

import control_plane
import images
import machine_metadata
import node as nodes
import node_rig
import processes
import pytest
import rig
from node_rig import SPREAD, coordinator_on, hurry, name_of

STEPS = 400  # they hurry in the end
MANY_STEPS = 2000  # of stories that take longer, also on a fast machine
CLOUDS = {1: "aws", 2: "gce", 3: "azure"}  # by node
SOURCES = {1: "aws-spot", 2: "gce-preempted", 3: "azure-scheduled-event"}
AGENTS = "ringmaster-node"  # their namespace
PORT = 7072
FULL, FULL_GONE = "full=yes:NoSchedule", "full-"  # takes no pods; that is no word of the node's end
SAVED_EACH = 20  # steps, where notices come during a save
NUMBERS = itertools.count(1)
NOTHING_REDONE = {"announced": 0, "sudden": 0}


@pytest.fixture(name="metadata", scope="module")
def fixture_metadata(node_cluster):
    """By node. They are there before its agent is, which so need not look for them again and again."""
    with contextlib.ExitStack() as stack:
        yield {number: stack.enter_context(machine_metadata.MachineMetadata(cloud, machine(node_cluster, number).first(), machine(node_cluster, number).address))
               for number, cloud in CLOUDS.items()}


@pytest.fixture(name="place", scope="module")
def fixture_place(node_cluster, metadata):
    """As elsewhere, and the chart has put an agent on each node."""
    yield from node_rig.a_place(node_cluster, {"nodeAgent.enabled": "true"})


@pytest.fixture(name="weights_after", scope="module")
def fixture_weights_after(place):
    """weights_after(steps) is what the undisturbed run in the same image gives, some time: a job may begin meanwhile."""
    runs = {}
    with concurrent.futures.ThreadPoolExecutor() as side:
        def weights_after(steps):
            if steps not in runs:
                runs[steps] = side.submit(lambda: node_rig.run_locally(place, steps, f"alone-unnoticed-{steps}")["weightsSha256"])
            return runs[steps]
        yield weights_after


@pytest.fixture(name="weights")
def fixture_weights(weights_after):
    return weights_after(STEPS)


@pytest.fixture(name="weights_of_many")
def fixture_weights_of_many(weights_after):
    return weights_after(MANY_STEPS)


@pytest.fixture(name="start")
def fixture_start(place, metadata):
    """start(**fields) begins a job on machines of which nothing is told; it is deleted at the end, and the machines stay."""
    begun = []
    until_nothing_is_told(place)

    def start(steps=STEPS, **fields):
        name = f"told-{next(NUMBERS)}"  # of its own: where its checkpoints are, none is of another job
        begun.append(name)
        return node_rig.Training(place, node_rig.training_job(name, steps, pod=SPREAD, **fields))
    yield start
    for name in begun:
        place("delete", "trainingjob", name, "--wait=true", "--ignore-not-found", timeout=300)
    for number in CLOUDS:
        spare(place, metadata, number)


def machine(cluster, number):
    return nodes.Node(cluster, number)


def told_at(cluster, number):
    """What the agent of that node answers."""
    return json.loads(cluster.call("curl", "-sf", "-m", "10", f"http://{machine(cluster, number).address}:{PORT}/v1/notices"))


def until_nothing_is_told(place):
    def nothing():
        pages = [told_at(place.cluster, number) for number in CLOUDS]
        return all(page["complete"] and not page["notices"] for page in pages)
    processes.until(nothing, "all agents have asked, and nothing is told", 120)


def reclaim(place, metadata, numbers, seconds=120):
    """Those machines are taken back, and their pools have no place left."""
    place("taint", "node", *(f"node-{number}" for number in numbers), FULL, "--overwrite")
    for number in numbers:
        metadata[number].reclaim(seconds)


def spare(place, metadata, number):
    """It stays after all."""
    metadata[number].spare()
    place("taint", "node", f"node-{number}", FULL, "--overwrite")
    place("taint", "node", f"node-{number}", FULL_GONE)


def workers_on(training, numbers):
    names = {f"node-{number}" for number in numbers}
    return [pod for pod in training.workers() if pod["spec"].get("nodeName") in names]


def index_of(pod):
    return int(pod["metadata"]["labels"]["ringmaster.dev/worker"])


def until_all_listen(training):
    """Each worker has had a first word of its machine's agent: a notice that it heard in that word would be of a machine to which it came when that was going."""
    def listen():
        try:
            return all("notices are heard" in training.kubectl("logs", name_of(pod), "-c", "trainer") for pod in workers_on(training, CLOUDS))
        except RuntimeError:
            return False  # one of them has not begun yet
    processes.until(listen, "all workers listen", 120)


def a_ring_that_listens(training, size=3):
    said = training.until_ring_of(size)
    until_all_listen(training)
    return said


def until_moved(training, before, numbers, size=3):
    """A later ring of that size, and nobody of the job is on those machines any more."""
    def moved(now):
        return (now["state"] == "Training" and now["ring"]["size"] == size and now["ring"]["generation"] > before["ring"]["generation"]
                and not workers_on(training, numbers))
    return training.until(moved, f"a ring of {size}, none of it on {numbers}")


def in_one_change(training, before, said, going):
    """Those are out of the ring and as many others in it, with no ring between that was smaller."""
    stayed, members = ({member["worker"] for member in page["ring"]["members"]} for page in (before, said))
    assert stayed - members == {index_of(pod) for pod in going} and len(members - stayed) == len(going), training.story()
    assert before["ring"]["generation"] < said["ring"]["generation"] <= before["ring"]["generation"] + len(going), training.story()


def told_of(said, worker):
    """Of which sources that worker was told, as its coordinator says."""
    return [(event["source"], event["certainty"]) for event in said["events"] if event["event"] == "noticeReceived" and event["worker"] == worker]


def nothing_was_lost(said):
    assert said["stepsRedone"] == NOTHING_REDONE and said["lost"] == [], said


def ends_well(training, weights):
    hurry(training)
    status = training.finish()
    assert status["result"]["weightsSha256"] == weights.result()
    assert status["restarts"] == {**status["restarts"], "failure": 0, "infrastructure": 0}
    return status


# ---- the agents ----

def agent_in(node):
    """The number of the process that is the agent of that node."""
    def is_agent(pid):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        return words[0].endswith(b"ringmaster-agent") and words[1] == b"node"
    found = [pid for pid in processes.descendants(node.first()) if is_agent(pid)]
    assert len(found) == 1, found
    return found[0]


def status_of(pid):
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return {name: value.split() for name, _, value in (line.partition(":") for line in lines)}


def check_confined(pid, node):
    """As the kernel sees it: the machine's network, and nothing else of it."""
    status = status_of(pid)
    assert status["Uid"] == ["65532"] * 4 and status["Gid"] == ["65532"] * 4
    assert {int(status[name][0], 16) for name in ("CapEff", "CapPrm", "CapBnd", "CapInh", "CapAmb")} == {0}
    assert status["NoNewPrivs"] == ["1"] and status["Seccomp"] == ["2"], "a filter of system calls"
    assert os.readlink(f"/proc/{pid}/ns/net") == os.readlink(f"/proc/{node.first()}/ns/net")
    for other in ("mnt", "pid", "ipc"):
        assert os.readlink(f"/proc/{pid}/ns/{other}") != os.readlink(f"/proc/{node.first()}/ns/{other}")
    mounts = {fields[4]: fields[5].split(",") for fields in (line.split() for line in Path(f"/proc/{pid}/mountinfo").read_text(encoding="utf-8").splitlines())}
    assert "ro" in mounts["/"]
    assert not [path for path in mounts if "secrets" in path], "a token of its ServiceAccount"


# Asks from where a pod is: its machine's agent, and the metadata with and without a token.
PROBE = """
import http.client, json, os
def ask(host, method, path, headers={}):
    try:
        connection = http.client.HTTPConnection(host, timeout=5)
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    except OSError as error:
        return type(error).__name__, ""
LINK_LOCAL = "169.254.169.254"
print(json.dumps({
    "agent": ask(os.environ["HOST_IP"] + ":%d", "GET", "/v1/notices"),
    "notice": ask(LINK_LOCAL, "GET", "/latest/meta-data/spot/instance-action"),
    "token": ask(LINK_LOCAL, "PUT", "/latest/api/token?by=pod", {"X-aws-ec2-metadata-token-ttl-seconds": "60"})}))
""" % PORT


def asked_from_a_pod(kubectl, number):
    host = {"name": "HOST_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}}
    cleared = [{"name": name, "value": ""} for name in ("LD_PRELOAD", "LD_LIBRARY_PATH")]
    kubectl.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "asks"}, "spec": {
        "nodeName": f"node-{number}", "restartPolicy": "Never", "securityContext": node_rig.POD_SECURITY, "terminationGracePeriodSeconds": 1,
        "automountServiceAccountToken": False, "containers": [node_rig.container("asks", images.STRANGER, command=["python3", "-c", PROBE], env=[host, *cleared])]}})
    try:
        ended = kubectl.until(lambda pod: pod["status"].get("phase") in ("Succeeded", "Failed") and pod, "the pod has asked", "pod", "asks")
        said = kubectl("logs", "asks")
        assert ended["status"]["phase"] == "Succeeded", said
        return json.loads(said)
    finally:
        kubectl("delete", "pod", "asks", "--wait=false")


def test_the_agent_of_a_machine_has_its_network_alone_and_tells_pods_what_they_cannot_ask(place, metadata, node_cluster):
    pods = rig.Kubectl(node_cluster, AGENTS).get("pods")
    assert sorted(pod["spec"]["nodeName"] for pod in pods) == ["node-1", "node-2", "node-3"]
    for pod in pods:
        assert pod["status"]["phase"] == "Running" and pod["spec"]["hostNetwork"] and not pod["spec"].get("volumes"), pod
    until_nothing_is_told(place)
    for number, cloud in CLOUDS.items():
        node = machine(node_cluster, number)
        check_confined(agent_in(node), node)
        listening = subprocess.run([*node.enter(), "ss", "-Hltn", f"sport = :{PORT}"], capture_output=True, text=True, check=True).stdout.splitlines()
        assert [line.split()[3] for line in listening] == [f"{node.address}:{PORT}"], "no other address of the machine"
        assert told_at(node_cluster, number)["cloud"] == cloud
    metadata[1].reclaim(120)
    try:
        processes.until(lambda: told_at(node_cluster, 1)["notices"], "it is told", 60)
        said = asked_from_a_pod(place, 1)
    finally:
        metadata[1].spare()
    status, page = said["agent"]
    assert status == 200 and [notice["source"] for notice in json.loads(page)["notices"]] == ["aws-spot"], said
    assert said["notice"] == [401, ""], "it is reached from there"
    assert ("PUT", "/latest/api/token?by=pod") in metadata[1].asked
    assert said["token"] == ["TimeoutError", ""], "the token has gone no further than the machine"


# ---- jobs ----

@pytest.mark.parametrize("number", [pytest.param(number, id=cloud, marks=pytest.mark.turns(number - 1)) for number, cloud in CLOUDS.items()])
def test_who_is_on_a_machine_of_that_cloud_goes_elsewhere_in_time_and_nothing_is_done_again(start, weights, metadata, place, number):
    training = start(coordinator=coordinator_on(number % 3 + 1))
    said = a_ring_that_listens(training)
    going = workers_on(training, [number])
    assert going, training.story()
    reclaim(place, metadata, [number])
    before, said = said, until_moved(training, said, [number])
    in_one_change(training, before, said, going)
    nothing_was_lost(said)
    for pod in going:
        assert told_of(said, index_of(pod)) == [(SOURCES[number], "will")], said
    processes.until(lambda: "NoticeReceived" in training.events(), "the event that says so", 60)
    ends_well(training, weights)


@pytest.mark.turns(3)
def test_of_three_machines_of_four_that_go_at_once_all_workers_come_together_on_the_last(fourth, start, weights, metadata, place):
    fourth()
    training = start(workers={"target": 4}, coordinator=coordinator_on(4))
    said = a_ring_that_listens(training, 4)
    assert workers_on(training, [4]), training.story()
    reclaim(place, metadata, CLOUDS)
    said = until_moved(training, said, CLOUDS, 4)
    nothing_was_lost(said)
    ends_well(training, weights)


@pytest.mark.turns(0)
def test_what_all_machines_take_along_within_15_s_is_saved_before_and_goes_on_where_another_one_comes(fourth, start, weights_of_many, metadata):
    """Google's machines tell no time: it has its 30 s. There are steps enough for whoever is one too many to leave."""
    training = start(MANY_STEPS)
    said = a_ring_that_listens(training)
    before = training.until_step(said["progress"]["step"] + 20)
    first = {name_of(pod) for pod in training.workers()}
    for each in metadata.values():
        each.reclaim(15)
    processes.until(lambda: not first & {name_of(pod) for pod in training.workers()}, "all who were there have left", 60)
    fourth()
    said = training.until(lambda now: now["state"] == "Training" and now["ring"]["size"] == 3 and now["ring"]["generation"] > before["ring"]["generation"],
                          "a ring of three again")
    nothing_was_lost(said)
    assert all(event["step"] >= before["progress"]["step"] for event in said["events"] if event["event"] == "checkpointLoaded"), said
    assert said["progress"]["step"] >= before["progress"]["step"], said
    ends_well(training, weights_of_many)


@contextlib.contextmanager
def store_that_stands_still(cluster):
    """So that whatever is on its way there stays on its way."""
    store = next(pid for pid in processes.descendants(machine(cluster, 1).first()) if Path(f"/proc/{pid}/comm").read_text(encoding="ascii").strip() == "versitygw")
    os.kill(store, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(store, signal.SIGCONT)


def notice_while_a_checkpoint_is_being_saved(training, metadata, before, number):
    """It is under way as long as its store stands still: the one of this step, or one before that."""
    going = {index_of(pod) for pod in workers_on(training, [number])}
    with store_that_stands_still(training.kubectl.cluster):
        said = training.until_step((before["progress"]["step"] // SAVED_EACH + 1) * SAVED_EACH)
        reclaim(training.kubectl, metadata, [number])
        training.until(lambda now: all(told_of(now, worker) for worker in going), "the coordinator is told")
    said = until_moved(training, said, [number])
    nothing_was_lost(said)
    return said


def notice_while_somebody_joins(training, metadata, before, number):
    training.kubectl("scale", f"trainingjob/{training.name}", "--replicas=4")
    training.until(lambda now: len(now["workers"]) == 4, "a newcomer says hello")
    reclaim(training.kubectl, metadata, [number])
    said = until_moved(training, before, [number], 4)
    nothing_was_lost(said)
    return said


def notice_while_the_coordinator_ends(training, metadata, before, number):
    training.kubectl("delete", "pod", name_of(training.pods("coordinator")[0]), "--force", "--grace-period=0", "--wait=false")
    reclaim(training.kubectl, metadata, [number])
    said = training.until(lambda now: now["term"] > before["term"] and now["state"] == "Training" and now["ring"]["size"] == 4
                          and not workers_on(training, [number]), "moved under the next coordinator")
    nothing_was_lost(said)
    return said


@pytest.mark.turns(2)
def test_a_notice_may_come_during_a_save_a_join_and_a_coordinators_end(fourth, start, weights_of_many, metadata, place):
    fourth()
    store = {**node_rig.local_job("x", 1)["spec"]["checkpoint"], "secretRef": {"name": "store"}}
    training = start(MANY_STEPS, coordinator=coordinator_on(4), checkpoint={**store, "uri": "s3://jobs/in-the-midst", "everySteps": SAVED_EACH})
    said = a_ring_that_listens(training)
    number = next(number for number in CLOUDS if workers_on(training, [number]))
    said = notice_while_a_checkpoint_is_being_saved(training, metadata, said, number)
    spare(place, metadata, number)
    number = next(each for each in CLOUDS if each != number and workers_on(training, [each]))
    said = notice_while_somebody_joins(training, metadata, said, number)
    spare(place, metadata, number)
    until_all_listen(training)
    number = next(each for each in CLOUDS if each != number and workers_on(training, [each]))
    notice_while_the_coordinator_ends(training, metadata, said, number)
    ends_well(training, weights_of_many)


def ask(cluster, address):
    """The coordinator's status, past the API server; how long a machine with other work takes for it is no matter."""
    return json.loads(cluster.call("curl", "-sf", "-m", "60", f"http://{address}:7070/v1/status"))


@pytest.mark.turns(3)
def test_a_notice_is_heard_and_a_leave_made_while_the_api_server_is_away(start, weights_of_many, metadata, place, node_cluster):
    weights_of_many.result()  # its run is watched through the API server; a job that began beside it would be over as soon
    training = start(MANY_STEPS, coordinator=coordinator_on(1))
    said = a_ring_that_listens(training)
    address = training.pods("coordinator")[-1]["status"]["podIP"]
    going = [index_of(pod) for pod in workers_on(training, [3])]
    assert going, training.story()
    place("taint", "node", "node-3", FULL)
    plane = control_plane.ControlPlane(node_cluster)
    plane.api_server_away()
    try:
        metadata[3].reclaim(20)

        def went_on():
            now = ask(node_cluster, address)
            stayed = {member["worker"] for member in now["ring"]["members"]}
            return now["state"] == "Training" and stayed and not stayed & set(going) and now["progress"]["step"] > said["progress"]["step"] and now
        away = processes.until(went_on, "the others train on", 60)
        assert [told_of(away, worker) for worker in going] == [[(SOURCES[3], "will")]] * len(going), away
        nothing_was_lost(away)
    finally:
        plane.api_server_back()
    said = until_moved(training, away, [3])
    nothing_was_lost(said)
    ends_well(training, weights_of_many)
