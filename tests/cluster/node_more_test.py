"""What else may happen to a job on real nodes: a pod that is more urgent, a control plane that is away, operators and workers
whose machine dies or is cut off, and comes back when nobody needs them any more."""

import concurrent.futures
import json
import time

import control_plane
import images
import node_rig
import processes
import pytest
import rig
from node_rig import coordinator_on, hurry, name_of, next_ring

STEPS = 1200
AWAY_S = 30  # longer than a leader acts without its lease
SLOT = "ringmaster.test/slot"
SLOWER = {**node_rig.SMALL, "limits": {"cpu": "40m"}}  # until all has happened, also on an idle machine

# What the API server gives to pods that say nothing; the operator's own 30 s would take a silent node's pods away sooner.
PATIENT = {"tolerations": [{"key": f"node.kubernetes.io/{what}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
                           for what in ("not-ready", "unreachable")]}


def alone(place):
    """The weights of the undisturbed run in the same image, or None where the API server gave no answer."""
    try:
        return node_rig.run_locally(place, STEPS)["weightsSha256"]
    except RuntimeError:
        return None


@pytest.fixture(name="weights", scope="module")
def fixture_weights(place):
    """What the undisturbed run gives, some time: a job may begin meanwhile."""
    with concurrent.futures.ThreadPoolExecutor() as side:
        yield side.submit(processes.until, lambda: alone(place), "`ringmaster run`", node_rig.DEADLINE_S)


@pytest.fixture(name="start")
def fixture_start(place):
    """start(name, **fields) begins a job, which is deleted at the end."""
    begun = []

    def start(name, **fields):
        begun.append(name)
        return node_rig.Training(place, node_rig.training_job(name, STEPS, **fields))
    yield start
    for name in begun:
        place("delete", "trainingjob", name, "--wait=true", "--ignore-not-found", timeout=300)


class Slots:
    """Room for workers in a currency of its own: what the nodes' processors have to do does not count."""

    def __init__(self, cluster):
        self.everywhere = rig.Kubectl(cluster)
        self.nodes = [name_of(node) for node in self.everywhere.get("nodes")]

    def give(self, each):
        """So many to each node."""
        change = json.dumps({"status": {"capacity": {SLOT: each}, "allocatable": {SLOT: each}}})
        for name in self.nodes:
            self.everywhere("patch", "node", name, "--subresource=status", "--type=merge", "-p", change)


def with_slot(resources):
    """The same, and a slot."""
    return {"requests": {**resources["requests"], SLOT: "1"}, "limits": {**resources.get("limits", {}), SLOT: "1"}}


URGENT = (
    {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"}, "value": 1000},
    {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "urgent"},
     "spec": {"priorityClassName": "urgent", "securityContext": node_rig.POD_SECURITY, "terminationGracePeriodSeconds": 1,
              "automountServiceAccountToken": False,
              "containers": [node_rig.container("pause", images.PAUSE, resources=with_slot(node_rig.SMALL))]}})


def notes(training, reason):
    """What the job's events of that reason say."""
    return [event.get("note", "") for event in training.kubectl.get("events.events.k8s.io")
            if event.get("regarding", {}).get("name") == training.name and event["reason"] == reason]


def trainers(training):
    """The trainers that each worker had in the rings so far, as the coordinator told them."""
    found = {}
    log = training.kubectl("logs", name_of(training.pods("coordinator")[-1]))
    for line in log.splitlines():
        said = json.loads(line) if line.startswith("{") else {}
        for member in said.get("members", []) if said.get("event") == "ringFormed" else []:
            found.setdefault(member["worker"], set()).add((member["agentPid"], member["trainerPid"]))
    return found


def restarts_are(status, **wanted):
    counted = {kind: status["restarts"][kind] for kind in ("preemption", "infrastructure", "failure")}
    assert counted == {"preemption": 0, "infrastructure": 0, "failure": 0, **wanted}


def ended_well(training, weights):
    """The job's last status: the weights, a checkpoint that is described, and time of which all is accounted for."""
    status = training.finish()
    assert status["result"]["weightsSha256"] == weights
    assert status["checkpoint"]["step"] == STEPS and status["checkpoint"]["uri"].endswith("/final"), status["checkpoint"]
    assert status["checkpoint"]["bytes"] > 0 and status["checkpoint"]["savedTime"], status["checkpoint"]
    assert status["columns"]["progress"] == "100%" and status["progress"]["loss"], status
    node_rig.check_time(status)
    return status


def something_urgent_comes(training, said, slots):
    """A worker is preempted: it leaves at once, and another one comes when there is room again."""
    training.kubectl.apply(*URGENT)
    smaller = next_ring(training, 2, said)
    assert smaller["stepsRedone"] == {"announced": 0, "sudden": 0} and smaller["lastRecovery"]["cause"] == "WorkerLeft", smaller
    training.kubectl.until_condition("Ready", "pod", "urgent")
    processes.until(lambda: f"Insufficient {SLOT}" in training.status()["message"], "the status says what the third one waits for", 120)
    assert training.condition("Degraded") == "True" and training.condition("Training") == "True"
    training.kubectl("delete", "pod", "urgent")
    training.kubectl("delete", "priorityclass", "urgent")
    said = next_ring(training, 3, smaller)
    slots.give(5)  # from here on machines go, and others must have room for their workers
    stayed = {member["worker"] for member in smaller["ring"]["members"]}
    told = trainers(training)
    assert all(len(told[worker]) == 1 for worker in stayed), "no survivor's trainer was started again"
    assert any("PreemptionByScheduler" in note for note in notes(training, "Interruption")), training.story()
    return said


def leader(system):
    """The pod of the operator that acts, or None while none does."""
    holder = system.get("lease", "ringmaster-operator")["spec"].get("holderIdentity") or ""
    return next((pod for pod in system.get("pods") if holder.startswith(name_of(pod) + "_")), None)


def leader_away_from(system, node):
    """The node of the acting operator, once that is another one than `node`."""
    def elsewhere():
        pod = leader(system)
        if pod and pod["spec"].get("nodeName") == f"node-{node}":
            system("delete", "pod", name_of(pod), "--wait=true")
            return None
        return pod
    return int(processes.until(elsewhere, "an operator that leads on another node", 120)["spec"]["nodeName"].rpartition("-")[2])


def ask(cluster, address):
    """The coordinator's status, past the API server."""
    return json.loads(cluster.call("curl", "-sf", "-m", "10", f"http://{address}:7070/v1/status"))


def the_api_server_stays_away(training, cluster, said):
    """Training goes on without it, and the status catches up."""
    address = training.pods("coordinator")[-1]["status"]["podIP"]
    plane, begun = control_plane.ControlPlane(cluster), time.monotonic()
    plane.api_server_away()
    try:
        processes.until(lambda: time.monotonic() > begun + AWAY_S, "the API server away for a while", 2 * AWAY_S)
        away = ask(cluster, address)
    finally:
        plane.api_server_back()
    assert away["ring"] == said["ring"] and away["progress"]["step"] > said["progress"]["step"], away
    processes.until(lambda: training.status()["progress"]["step"] >= away["progress"]["step"], "the status catches up", 120)
    return training.until_step(away["progress"]["step"] + 1)


def workers_on(training, node):
    return [name_of(pod) for pod in training.workers() if pod["spec"].get("nodeName") == f"node-{node}"]


def the_leaders_machine_dies(training, system, machines, said):
    """Another operator leads, and replaces the workers; returns what the coordinator says, the node, and its workers' pods."""
    number = leader_away_from(system, 1)
    before, husks = name_of(leader(system)), workers_on(training, number)
    assert husks, training.story()
    machines[number].kill()
    said = training.until_ring_of(3, beyond=said["ring"]["generation"])
    assert name_of(leader(system)) != before
    for husk in husks:  # nobody waited for its kubelet, nor for 300 s
        assert "deletionTimestamp" in training.kubectl.get("pod", husk)["metadata"]
    return said, number, husks


def a_zombie_comes_back(training, machine, said):
    """A machine is cut off until its workers are replaced; returns what the coordinator says, and these workers' pods."""
    zombies = workers_on(training, machine.number)
    assert zombies, training.story()
    machine.cut(away=True)
    try:
        said = training.until_ring_of(3, beyond=said["ring"]["generation"])
        assert all(training.kubectl.exists("pod", zombie) for zombie in zombies)
    finally:
        machine.cut(away=False)
    processes.until(lambda: not any(training.kubectl.exists("pod", zombie) for zombie in zombies), "the zombies' pods gone", 300)
    after = training.until_step(said["progress"]["step"] + 1)
    assert after["ring"] == said["ring"], "who came back too late did no harm"
    return after, zombies


@pytest.mark.turns(1)
def test_one_is_preempted_the_api_server_is_away_the_leaders_machine_dies_and_a_zombie_comes_back(start, weights, place, node_cluster, machines):
    system, slots = rig.Kubectl(node_cluster, node_rig.SYSTEM), Slots(node_cluster)
    slots.give(1)
    trainer = node_rig.container("trainer", images.WORKER, resources=with_slot(SLOWER))
    training = start("unlucky", pod={"containers": [trainer], **PATIENT}, coordinator=coordinator_on(1))
    said = training.until_ring_of(3)
    said = something_urgent_comes(training, said, slots)
    said = the_api_server_stays_away(training, node_cluster, said)
    said, number, husks = the_leaders_machine_dies(training, system, machines, said)
    said, zombies = a_zombie_comes_back(training, machines[5 - number], said)
    hurry(training)
    status = ended_well(training, weights.result())
    lost = len(husks) + len(zombies)
    restarts_are(status, preemption=1, infrastructure=lost)
    assert sum(slot["attempt"] for slot in status["workers"]["slots"]) == 3 + 1 + lost, "none was made twice"
    assert status["ring"]["term"] == 1, "the coordinator was not disturbed"
    assert {"Interruption", "NodeLost", "WorkerLeft", "WorkerLost", "WorkerJoined", "Recovered", "Complete"} <= set(training.events())


def elsewhere_than(number):
    """What a pod's spec has beside the rest, so that it is put on another node."""
    term = {"matchExpressions": [{"key": "ringmaster.test/node", "operator": "NotIn", "values": [str(number)]}]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}}


@pytest.mark.turns(3)
def test_a_coordinators_machine_is_cut_off_and_its_workers_go_to_the_next_one_though_nobody_ends_their_connections(fourth, start, weights, place):
    apart = fourth()
    training = start("unheard", pod=elsewhere_than(4), coordinator=coordinator_on(4))
    said = training.until_ring_of(3)
    assert training.node_of(name_of(training.pods("coordinator")[0])) == 4, training.story()
    said = training.until_step(said["progress"]["step"] + 1)
    apart.cut(away=True)
    try:
        after = training.until(lambda now: now["term"] > said["term"] and now["state"] == "Training", "a coordinator elsewhere, under whom they train")
        assert after["ring"]["generation"] == said["ring"]["generation"] and after["ring"]["size"] == 3, after
        assert after["lost"] == [] and after["stepsRedone"] == {"announced": 0, "sudden": 0}, after
    finally:
        apart.cut(away=False)
    hurry(training)
    ended_well(training, weights.result())
