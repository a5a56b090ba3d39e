"""The test cluster itself: both tiers come up, faults do what their names say, and nothing stays behind."""

import json
import os
import subprocess
from pathlib import Path

import pytest

import cluster as clusters
import node as nodes
import processes
import rig

POD_SECURITY = {"runAsNonRoot": True, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}}
CONTAINER_SECURITY = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": True}


def sleeper(name, node, command=("sleep", "infinity"), **spec):
    """A pod of the worker image on one node; it waits, or runs a command to its end."""
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}},
            "spec": {"nodeName": f"node-{node}", "restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
                     "securityContext": POD_SECURITY,
                     "containers": [{"name": "c", "image": "localhost/ringmaster/worker:test", "imagePullPolicy": "Never",
                                     "command": list(command), "securityContext": CONTAINER_SECURITY}], **spec}}


def phase_is(*phases):
    return lambda pod: pod["status"].get("phase") in phases and pod


def test_the_api_tier_collects_what_its_owner_left(api):
    api.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owner"}})
    owner = api.get("configmap", "owner")
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    api.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owned", "ownerReferences": [reference]}})
    api("delete", "configmap", "owner")
    processes.until(lambda: not api.exists("configmap", "owned"), "what was owned is gone")


def test_on_the_api_tier_the_test_is_the_kubelet(api):
    api.apply(sleeper("p", 1))
    api.create_status("pod", "p", {"phase": "Running", "podIP": "10.0.0.1"})
    assert api.get("pod", "p")["status"]["phase"] == "Running"


def test_the_programs_of_the_image_are_there_and_nobody_can_write_to_its_root(kube):
    script = "set -e; ringmaster --version; test -x /usr/bin/ringmaster-agent; test -x /usr/bin/ringmaster-trainer; ! touch /x; ! which gcc; id -u"
    kube.apply(sleeper("look", 1, ("sh", "-c", script)))
    pod = kube.until(phase_is("Succeeded", "Failed"), "the pod's end", "pod", "look")
    said = kube("logs", "look")
    assert pod["status"]["phase"] == "Succeeded", said
    assert said.split()[-1] == "65532"


def test_a_pod_reaches_a_service_on_another_node_by_its_name(kube):
    kube.apply(sleeper("server", 1, ("perl", "-MIO::Socket::INET", "-e",
                                     'my $s = IO::Socket::INET->new(LocalPort => 8080, Listen => 8) or die;'
                                     'while (my $c = $s->accept) { print $c "hello\\n"; close $c }')),
               {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "hello"},
                "spec": {"selector": {"app": "server"}, "ports": [{"port": 80, "targetPort": 8080}]}})
    kube.until(phase_is("Running"), "the server", "pod", "server")
    ask = ('use IO::Socket::INET; for (1 .. 600) { my $s = IO::Socket::INET->new(PeerAddr => "hello:80", Timeout => 5);'
           'if ($s && <$s> =~ /hello/) { exit 0 } select(undef, undef, undef, 0.1) } exit 1')
    kube.apply(sleeper("client", 2, ("perl", "-e", ask)))
    pod = kube.until(phase_is("Succeeded", "Failed"), "the client's end", "pod", "client")
    assert pod["status"]["phase"] == "Succeeded", kube("logs", "client")


def test_a_node_that_vanishes_takes_its_pods_along_and_can_come_back(node_cluster, kube):
    node = nodes.Node(node_cluster, 3)
    kube.apply(sleeper("there", 3))
    kube.until(phase_is("Running"), "the pod", "pod", "there")
    inside = set(processes.descendants(node.first()))
    node.kill()
    processes.until(lambda: not [pid for pid in inside if processes.start_time(pid)], "every process of the node gone")
    kube.until(lambda found: any(c["type"] == "Ready" and c["status"] == "Unknown" for c in found["status"]["conditions"]),
               "the node's silence noticed", "node", "node-3")
    assert kube.get("pod", "there")["status"]["phase"] == "Running", "nobody can tell what became of it"
    kube("delete", "pod", "there", "--force", "--grace-period=0")
    node.clean()
    rig.bring_node(node_cluster, 3)


def test_clusters_lie_side_by_side_and_leave_nothing(node_cluster):
    before = {name: Path(f"/proc/sys/{name}").read_text(encoding="ascii") for name in nodes.SYSCTLS}
    links = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout.count("\n")
    other = clusters.Cluster(f"side{os.getpid()}")
    rig.bring_up(other, 1, tied=True)
    try:
        named = {item["metadata"]["name"] for item in json.loads(other.call("kubectl", "get", "nodes", "-o", "json"))["items"]}
        assert named == {"node-1"}
        assert node_cluster.call("kubectl", "get", "node", "node-2", "-o", "name").strip() == "node/node-2"
        anchor = other.anchor()
        tree = {anchor, *processes.descendants(anchor)}
    finally:
        other.down()
    assert not [pid for pid in tree if processes.start_time(pid)]
    assert not other.run.exists() and not other.cgroups()
    assert subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout.count("\n") == links
    assert before == {name: Path(f"/proc/sys/{name}").read_text(encoding="ascii") for name in nodes.SYSCTLS}


@pytest.mark.parametrize("name", ["", "a/b", "a-node-1", "x" * 21])
def test_a_name_that_is_no_name_is_refused(name):
    with pytest.raises(ValueError):
        clusters.Cluster(name)
