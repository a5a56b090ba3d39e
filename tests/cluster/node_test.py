"""TrainingJobs on three nodes: whatever happens during training, the weights are those of an undisturbed `ringmaster run`."""

import node as nodes
import node_rig
import processes
import pytest
import rig

STEPS = 500
SPREAD = {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway",
                                         "labelSelector": {"matchLabels": {"ringmaster.dev/role": "worker"}}}]}


@pytest.fixture(name="place", scope="module")
def fixture_place(node_cluster):
    """kubectl in a restricted namespace with an object store; the operator is installed."""
    node_rig.install_operator(node_cluster)
    everywhere = rig.Kubectl(node_cluster)
    if not everywhere.exists("namespace", "jobs"):
        everywhere("create", "namespace", "jobs")
    everywhere("label", "namespace", "jobs", "pod-security.kubernetes.io/enforce=restricted", "--overwrite")
    kubectl = rig.Kubectl(node_cluster, "jobs")
    processes.until(lambda: kubectl.exists("serviceaccount", "default"), "the namespace's ServiceAccount")
    node_rig.install_store(kubectl)
    yield kubectl
    everywhere("delete", "namespace", "jobs", "--wait=true", timeout=300)


@pytest.fixture(name="weights", scope="module")
def fixture_weights(place):
    """What the undisturbed run in the same image gives."""
    return node_rig.run_locally(place, STEPS)["weightsSha256"]


@pytest.fixture(name="start")
def fixture_start(place, request):
    """start(**fields) begins a job of the test's own name; it is deleted at the end."""
    begun = []

    def start(**fields):
        name = f"job{len(request.node.name)}-{len(begun)}"
        begun.append(name)
        return node_rig.Training(place, node_rig.training_job(name, STEPS, **fields))
    yield start
    for name in begun:
        place("delete", "trainingjob", name, "--wait=true", "--ignore-not-found", timeout=300)


def test_a_job_is_applied_shows_its_progress_and_ends_with_the_weights_of_a_local_run(start, weights):
    training = start()
    training.until_step(1)
    status = training.finish()
    assert status["result"]["weightsSha256"] == weights
    assert status["result"]["step"] == STEPS
    assert status["restarts"] == {**status["restarts"], "failure": 0, "preemption": 0, "infrastructure": 0}
    assert {"WorkersCreated", "Complete"} <= set(training.events())


def name_of(pod):
    return pod["metadata"]["name"]


def prefer_node(number):
    term = {"weight": 100, "preference": {"matchExpressions": [{"key": "ringmaster.test/node", "operator": "In", "values": [str(number)]}]}}
    return {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}}


def coordinator_on(number):
    pod = node_rig.training_job("x", 1)["spec"]["coordinator"]["template"]["spec"]
    return {"template": {"spec": {**pod, **prefer_node(number)}}}


@pytest.fixture(name="machines")
def fixture_machines(node_cluster):
    """Nodes that may be killed; all are back afterwards."""
    found = {number: nodes.Node(node_cluster, number) for number in (2, 3)}
    yield found
    for number, node in found.items():
        if not node.first():
            node.clean()
            rig.bring_node(node_cluster, number)


def test_machines_that_vanish_with_a_worker_or_with_the_coordinator_cost_nothing_but_time(start, weights, machines, node_cluster):
    training = start(pod=SPREAD, coordinator=coordinator_on(2))
    said = training.until_ring_of(3)
    assert training.node_of(name_of(training.pods("coordinator")[0])) == 2
    machines[3].kill()
    said = training.until(lambda now: now["state"] == "Training" and now["ring"]["size"] == 3 and now["ring"]["generation"] > said["ring"]["generation"] + 1,
                          "a ring of three after a machine is gone")
    machines[3].clean()
    rig.bring_node(node_cluster, 3)
    step = training.until_step(said["progress"]["step"] + 20)["progress"]["step"]
    term = said["term"]
    machines[2].kill()
    said = training.until(lambda now: now["term"] > term and now["state"] == "Training" and now["ring"]["size"] == 3, "a ring of three in the next term")
    assert said["progress"]["step"] >= step - 500, "no further back than a checkpoint"
    status = training.finish()
    assert status["result"]["weightsSha256"] == weights
    assert status["restarts"]["infrastructure"] >= 2, status["restarts"]
