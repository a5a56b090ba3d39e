"""TrainingJobs on three nodes: whatever happens during training, the weights are those of an undisturbed `ringmaster run`."""

import node_rig
import processes
import pytest
import rig

STEPS = 300


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
