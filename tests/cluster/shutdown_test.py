"""A machine that goes down in order: logind says so, its kubelet delays that until its pods have ended, and gives them less time than they ask for.

The kubelet and what it does are real; logind is python3-dbusmock's, on a bus of the node's own (logind.py)."""

import json

import cluster as clusters
import node as nodes
import node_rig
import processes
import pytest
import rig
from node_rig import SPREAD, coordinator_on, hurry, name_of, prefer_node

STEPS = 600  # they hurry in the end
GOING = 4  # the machine
GRACE_S = 20  # node.SHUTDOWN's, less what is for critical pods; the pods ask for 30
NOTHING_REDONE = {"announced": 0, "sudden": 0}

pytestmark = pytest.mark.turns("all")


@pytest.fixture(name="machine")
def fixture_machine(place):
    """One more than the others, with logind. For each story a new one: a kubelet that is told that the machine stays after all takes a new lock, closes its old
    one for the second time, and with that, often enough, the new one (1.36.3)."""
    try:
        clusters.build("--logind")
    except clusters.Offline as why:
        pytest.skip(str(why))
    machine = nodes.Node(place.cluster, GOING)
    rig.bring_node(place.cluster, GOING, logind=True)
    yield machine
    machine.kill()
    machine.clean()
    place("delete", "node", machine.name)


@pytest.fixture(name="weights", scope="module")
def fixture_weights(place):
    return node_rig.run_locally(place, STEPS, "alone-stays")["weightsSha256"]


@pytest.fixture(name="start")
def fixture_start(place, machine, request):
    """start(**fields) begins a job, which is deleted at the end, before its machine."""
    begun = []

    def start(**fields):
        begun.append(f"down-{node_rig.mark_of(request)}")
        return node_rig.Training(place, node_rig.training_job(begun[-1], STEPS, coordinator=coordinator_on(1), **fields))
    yield start
    for name in begun:
        place("delete", "trainingjob", name, "--wait=true", timeout=300)


def inhibitors(machine):
    return json.loads(machine.logind("inhibitors"))


def until_delayed(machine):
    """The kubelet has a word in whether the machine goes down."""
    found = processes.until(lambda: inhibitors(machine), "somebody delays a shutdown", 60)
    assert [(what, who, mode) for what, who, _, mode in found] == [("shutdown", "kubelet", "delay")]


def graces(machine, pod):
    """How long the kubelet said that it would wait for that pod."""
    log = (machine.disk / "log/kubelet.log").read_text(encoding="utf-8", errors="replace")
    lines = [line for line in log.splitlines() if "killing pod with gracePeriod" in line and name_of(pod) in line]
    return [int(line.rpartition("gracePeriod=")[2].split()[0]) for line in lines]


def workers_there(training, machine):
    return [pod for pod in training.workers() if pod["spec"].get("nodeName") == machine.name]


@pytest.mark.parametrize("workers, where, there", [(4, SPREAD, 1), (2, prefer_node(GOING), 2)], ids=["some stay", "all go"])
def test_a_machine_that_goes_down_in_order_costs_no_step(start, weights, machine, workers, where, there):
    """The state is handed over, or is saved where nobody stays."""
    training = start(workers={"target": workers}, pod=where)
    before = training.until_ring_of(workers)
    going = workers_there(training, machine)
    assert len(going) == there, training.story()
    until_delayed(machine)
    machine.logind("shutdown")
    processes.until(lambda: not inhibitors(machine), "the kubelet has nothing against it any more", 120)
    assert [graces(machine, pod) for pod in going] == [[GRACE_S]] * there
    said = training.until_ring_of(workers, beyond=before["ring"]["generation"])
    assert not workers_there(training, machine)
    assert said["stepsRedone"] == NOTHING_REDONE and said["lost"] == [], said
    hurry(training)
    status = training.finish()
    assert status["result"]["weightsSha256"] == weights
    assert status["restarts"] == {**status["restarts"], "failure": 0, "infrastructure": 0, "preemption": there}, status["restarts"]
