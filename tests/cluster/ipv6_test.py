"""A job in a cluster that has no address of IPv4: machines, pods, Services and names."""

import ipaddress
import json

import addresses
import conftest
import node as nodes
import node_rig
import pytest
import rig
from node_rig import SPREAD, coordinator_on, name_of

STEPS = 600
AGENT_PORT = 7072


@pytest.fixture(name="place", scope="module")
def fixture_place():
    """As elsewhere, on two nodes; the chart has put an agent on each."""
    for cluster in conftest.bring_up("six", 2, addresses.IPV6):
        yield from node_rig.a_place(cluster, {"nodeAgent.enabled": "true"})


def families_of(*objects):
    """Of all addresses that these pods, machines and Services have."""
    found = []
    for each in objects:
        found += [a["ip"] for a in each.get("status", {}).get("podIPs", [])] + each["spec"].get("clusterIPs", [])
        found += [a["address"] for a in each.get("status", {}).get("addresses", []) if a["type"] == "InternalIP"]
    return {ipaddress.ip_address(address).version for address in found if address != "None"}


@pytest.mark.turns(3)
def test_where_all_addresses_are_of_ipv6_a_job_loses_a_worker_and_its_coordinator_and_ends_with_the_same_weights(place):
    training = node_rig.Training(place, node_rig.training_job("six", STEPS, pod=SPREAD, coordinator=coordinator_on(1)))
    said = training.until_ring_of(3)
    everywhere = rig.Kubectl(place.cluster)
    assert families_of(*place.get("pods"), *place.get("services"), *everywhere.get("nodes"), *everywhere.get("pods", "-A"),
                       *everywhere.get("services", "-A")) == {6}
    for number in (1, 2):
        address = addresses.host(nodes.Node(place.cluster, number).address)
        assert "notices" in json.loads(place.cluster.call("curl", "-sf", "-m", "10", f"http://{address}:{AGENT_PORT}/v1/notices"))
    place("delete", "pod", name_of(node_rig.a_worker(training)), "--wait=false")
    said = node_rig.next_ring(training, 3, said)
    place("delete", "pod", name_of(training.pods("coordinator")[-1]), "--wait=false")
    said = training.until(lambda now: now["term"] > said["term"] and now["state"] == "Training" and now["ring"]["size"] == 3, "the ring in the next term")
    status = training.finish()
    assert status["result"]["weightsSha256"] == node_rig.run_locally(place, STEPS)["weightsSha256"]
    assert status["restarts"]["failure"] == 0, status["restarts"]
