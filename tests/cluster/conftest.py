"""Fixtures: a cluster of each tier for the whole run, a namespace of its own for each test, and what several files' tests begin with."""

import itertools
import os
import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "prometheus_rig"), str(Path(__file__).resolve().parents[1])]  # for the tests

import cluster as clusters
import node as nodes
import node_rig
import operator_rig
import rig
from addresses import IPV4

_numbers = itertools.count(1)


def pytest_configure(config):
    config.addinivalue_line("markers", "turns: takes turns in tools/check, see tests/turns.py")


# In a check, by measured seconds: the two whose few stories take minutes each, two that take half a minute, the other long ones, and then all
# others. (Whoever has two stories left to run gets its next file with them: that should not be one of the long ones.)
FIRST = ("node_test.py", "notice_node_test.py", "life_test.py", "autoscaler_test.py", "node_more_test.py", "field_test.py", "install_test.py",
         "stranger_test.py")


def pytest_collection_modifyitems(items):
    """Files are handed out one by one to two clusters: those that take longest come first, so that in the end neither waits for the other."""
    items.sort(key=lambda item: FIRST.index(item.path.name) if item.path.name in FIRST else len(FIRST))


def bring_up(tier, node_count, network=IPV4):
    """For a fixture: a cluster of that tier, with addresses of that network.

    RINGMASTER_TEST_API and RINGMASTER_TEST_NODE name clusters that are up already, and stay up; others live as long as the tests do.
    """
    named = os.environ.get(f"RINGMASTER_TEST_{tier.upper()}")
    cluster = clusters.Cluster(named or f"{tier}{os.getpid()}", network)
    if named and cluster.is_up():
        yield cluster
        return
    try:
        rig.bring_up(cluster, node_count, tied=True)
    except clusters.Offline as why:
        pytest.skip(str(why))
    except clusters.Missing as why:
        pytest.fail(str(why))
    try:
        yield cluster
    finally:
        cluster.down()


@pytest.fixture(name="api_cluster", scope="session")
def fixture_api_cluster():
    yield from bring_up("api", 0)


@pytest.fixture(name="fresh_api_cluster", scope="module")
def fixture_fresh_api_cluster():
    """An API tier of its own, for a test that installs what others install, too, under the names that the pages have."""
    yield from bring_up("docs", 0)


@pytest.fixture(name="node_cluster", scope="session")
def fixture_node_cluster():
    yield from bring_up("node", 3)


def _namespace(cluster):
    kubectl = rig.make_namespace(cluster, f"t{next(_numbers)}-{os.getpid()}")
    yield kubectl
    rig.Kubectl(cluster)("delete", "namespace", kubectl.namespace, "--wait=false")


@pytest.fixture(name="api")
def fixture_api(api_cluster):
    """kubectl in an empty namespace of the API tier."""
    yield from _namespace(api_cluster)


@pytest.fixture(name="other")
def fixture_other(api_cluster):
    """kubectl in one more namespace of the API tier, whose pods go whatever finalizers they have."""
    for kubectl in _namespace(api_cluster):
        yield kubectl
        for pod in kubectl.get("pods"):
            let_go(kubectl, pod["metadata"]["name"])


def let_go(kubectl, name):
    """Whatever finalizers a pod has; it may be gone meanwhile."""
    try:
        kubectl("patch", "pod", name, "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    except RuntimeError as error:
        if "NotFound" not in str(error):
            raise


@pytest.fixture(name="stage")
def fixture_stage(api):
    """A namespace of the API tier that knows TrainingJobs, for operators and a test that plays the kubelet."""
    api("apply", "-f", str(operator_rig.CRD))
    api.until_served()
    stage = operator_rig.Stage(api)
    yield stage
    stage.close()


@pytest.fixture(name="kube")
def fixture_kube(node_cluster):
    """kubectl in an empty namespace of the node tier."""
    yield from _namespace(node_cluster)


@pytest.fixture(name="place", scope="module")
def fixture_place(node_cluster):
    """kubectl in a restricted namespace with an object store; the operator is installed."""
    yield from node_rig.a_place(node_cluster)


@pytest.fixture(name="fourth")
def fixture_fourth(place):
    """A machine more, without metadata: fourth() brings that node. Asked for before `start`, whose jobs so end first."""
    extra = nodes.Node(place.cluster, 4)

    def bring():
        rig.bring_node(place.cluster, 4)
        return extra
    yield bring
    if extra.first():
        extra.kill()
        extra.clean()
    place("delete", "node", "node-4", "--wait=false", "--ignore-not-found")


@pytest.fixture(name="machines")
def fixture_machines(node_cluster):
    """Nodes that may be killed; all are back afterwards."""
    found = {number: nodes.Node(node_cluster, number) for number in (2, 3)}
    yield found
    for number, node in found.items():
        if not node.first():
            node.clean()
            rig.bring_node(node_cluster, number)
