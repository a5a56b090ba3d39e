"""Programs that save nothing, on nodes: CRIU out of our own image freezes them, and another pod goes on from that very instruction.

With --all and by hand: the image that has CRIU is too much for every check."""

import hashlib
import json
import subprocess

import images
import node as nodes
import node_rig
import processes
import pytest
import rig
from cluster import ROOT
from node_rig import name_of, prefer_node
from stranger_test import SHARED, Volume

pytestmark = pytest.mark.turns("all")

SPACE = "frozen"
LEAVES = "aws-node-termination-handler/spot-itn=soon:NoSchedule"
# Two threads count, each by itself; each number is a line of a file in the pod, and none of the volume's until the end.
THREADS = """
import hashlib, json, sys, threading, time
until, out = int(sys.argv[1]), sys.argv[2]
logs = [open(f"/tmp/log-{k}", "a", buffering=1) for k in range(2)]
def count(k):
    for n in range(until):
        logs[k].write(f"{n}\\n")
        if k == 0: print(n, flush=True)
        time.sleep(0.05)
threads = [threading.Thread(target=count, args=[k]) for k in range(2)]
[t.start() for t in threads]; [t.join() for t in threads]
found = [hashlib.sha256(open(f"/tmp/log-{k}", "rb").read()).hexdigest() for k in range(2)]
open(out, "w").write(json.dumps(found))
"""
# A pipeline of three processes, the last of which appends to a file that it keeps open: one that is not open stays behind.
PIPELINE = """n=0; while [ $n -lt $0 ]; do echo $n; n=$((n+1)); sleep 0.05; done |
while read n; do echo $n; done | while read n; do echo $n >&3; echo $n; done 3>> /tmp/log
a=$(sha256sum < /tmp/log); echo "[\\"${a%% *}\\"]" > $1"""
PROGRAMS = {"threads": (images.STRANGER, ["python3", "-c", THREADS]), "pipeline": (images.STRANGER, ["sh", "-c", PIPELINE]),
            "counter": (images.STRANGER_MUSL, ["/bin/counter"])}


def digest_of(until):
    """Of a file with each number once, in order: what a run that nobody disturbs leaves."""
    return hashlib.sha256("".join(f"{n}\n" for n in range(until)).encode()).hexdigest()


@pytest.fixture(name="frozen", scope="module")
def fixture_frozen(node_cluster):
    """kubectl in a namespace that takes such pods, with an object store; the chart allows them, and the nodes have the image with CRIU."""
    subprocess.run([ROOT / "tests/cluster/load-image", "--name", node_cluster.name, images.snapshots_archive()], check=True)
    node_rig.install_operator(node_cluster, more={"processSnapshots.enabled": "true", "image.snapshots": images.SNAPSHOTS})
    kubectl = rig.make_namespace(node_cluster, SPACE)
    node_rig.install_store(kubectl)
    yield kubectl
    rig.Kubectl(node_cluster)("delete", "namespace", SPACE, "--wait=true", timeout=300)


class Frozen(node_rig.Training):
    """A job of one program that saves nothing."""

    def __init__(self, kubectl, tmp_path, name, until):
        self.volume, self.until_count = Volume(kubectl, tmp_path / name, name), until
        image, command = PROGRAMS[name]
        container = {"name": "trainer", "image": image, "imagePullPolicy": "Never",
                     "resources": {"requests": node_rig.SMALL["requests"], "limits": {"memory": "256Mi"}},
                     "volumeMounts": [{"name": "shared", "mountPath": SHARED}]}
        template = {"spec": {"terminationGracePeriodSeconds": 60, "containers": [container],
                             "volumes": [{"name": "shared", "persistentVolumeClaim": {"claimName": name}}]}}
        super().__init__(kubectl, {
            "apiVersion": "ringmaster.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": name}, "spec": {
                "workers": {"min": 1, "max": 1, "target": 1, "template": template}, "coordinator": {"template": {"spec": prefer_node(1)}},
                "launch": {"command": [*command, str(until), f"{SHARED}/result"], "mode": "Restart", "gracePeriod": "30s"},
                "checkpoint": {"uri": f"s3://jobs/{name}", "endpoint": "http://store:7070", "secretRef": {"name": "store"}, "process": "CRIU", "every": "5s"},
                "elasticity": {"lostAfter": "5s"}}})

    def pod(self):
        return next(iter(reversed(self.workers())), None)

    def said(self, pod):
        """The numbers that the program has written in that pod."""
        try:
            lines = self.kubectl("logs", name_of(pod), "-c", "trainer").splitlines()
        except RuntimeError:
            return []  # not begun
        return [int(word) for word in (line.rpartition(" ")[2] for line in lines) if word.isdigit()]

    def counts(self, beyond=None):
        """Until a pod other than that one has written some numbers, each one more than the one before; returns (that pod, the first one)."""
        def there():
            pod = self.pod()
            if not pod or beyond and pod["metadata"]["uid"] == beyond["metadata"]["uid"]:
                assert self.condition("Finished") != "True", self.story()
                return None
            numbers = self.said(pod)
            return len(numbers) > 40 and (pod, numbers)
        try:
            pod, numbers = processes.until(there, f"{self.name} counts", node_rig.DEADLINE_S)
        except TimeoutError as late:
            raise AssertionError(f"{late}\n{self.story()}") from None
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers))), numbers
        return pod, numbers[0]

    def newest(self):
        return (self.status().get("checkpoint") or {}).get("step", 0)

    def ends(self):
        status = self.finish()
        result = (self.volume.folder / "result").read_text(encoding="ascii")
        digests = json.loads(result) if result.startswith("[") else [hashlib.sha256(result.encode()).hexdigest()]  # of its files, or the file
        assert digests and set(digests) == {digest_of(self.until_count)}, "a number is missing, or there twice"
        return status


@pytest.fixture(name="begin")
def fixture_begin(frozen, tmp_path):
    begun = []

    def begin(name, until):
        begun.append(Frozen(frozen, tmp_path, name, until))
        return begun[-1]
    yield begin
    for each in begun:
        frozen("delete", "trainingjob", each.name, "--wait=true", "--ignore-not-found", timeout=300)
        each.volume.forget()


def evict(kubectl, pod):
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name_of(pod), "namespace": kubectl.namespace}}
    kubectl("create", "--raw", f"/api/v1/namespaces/{kubectl.namespace}/pods/{name_of(pod)}/eviction", "-f", "-", stdin=json.dumps(body))


def goes_on(training, before):
    """In another pod, and not from the beginning; returns that."""
    pod, first = training.counts(before)
    assert first > 0, training.story()
    return pod


def test_threads_are_evicted_told_by_a_taint_suspended_and_drained_and_each_number_is_there_once(begin, frozen):
    training = begin("threads", 4000)
    pod, first = training.counts()
    assert first == 0
    evict(frozen, pod)
    pod = goes_on(training, pod)
    node = pod["spec"]["nodeName"]
    frozen("taint", "node", node, LEAVES)
    try:
        pod = goes_on(training, pod)
        assert pod["spec"]["nodeName"] != node
    finally:
        frozen("taint", "node", node, f"{LEAVES.partition('=')[0]}-")
    frozen("patch", "trainingjob", training.name, "--type=merge", "-p", '{"spec":{"suspend":true}}')
    processes.until(lambda: training.condition("Suspended") == "True" and not training.workers(), "suspended", 300)
    frozen("patch", "trainingjob", training.name, "--type=merge", "-p", '{"spec":{"suspend":false}}')
    pod = goes_on(training, pod)
    node = pod["spec"]["nodeName"]
    frozen("drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--force",
           "--pod-selector=ringmaster.dev/role=worker", "--timeout=120s", timeout=150)
    try:
        goes_on(training, pod)
    finally:
        frozen("uncordon", node)
    status = training.ends()
    assert status["restarts"]["failure"] == 0, status["restarts"]


def test_a_program_of_c_in_an_image_that_has_nothing_else_is_evicted_and_told_by_a_taint(begin, frozen):
    training = begin("counter", 2000)
    pod, first = training.counts()
    assert first == 0
    evict(frozen, pod)
    pod = goes_on(training, pod)
    node = pod["spec"]["nodeName"]
    frozen("taint", "node", node, LEAVES)
    try:
        pod = goes_on(training, pod)
        assert pod["spec"]["nodeName"] != node
    finally:
        frozen("taint", "node", node, f"{LEAVES.partition('=')[0]}-")
    status = training.ends()
    assert status["restarts"]["failure"] == 0, status["restarts"]


def test_a_pipeline_whose_machine_vanishes_goes_on_from_the_last_interval(begin, node_cluster, machines):
    training = begin("pipeline", 3000)
    pod, first = training.counts()
    assert first == 0
    if training.node_of(name_of(pod)) == 1:  # where its coordinator and the store are
        training.kubectl("cordon", "node-1")
        evict(training.kubectl, pod)
        pod = goes_on(training, pod)
        training.kubectl("uncordon", "node-1")
    newest = training.newest()
    processes.until(lambda: training.newest() > newest, "a snapshot by the interval", 120)
    number = training.node_of(name_of(pod))
    machines[number].kill()
    pod = goes_on(training, pod)
    machines[number].clean()
    rig.bring_node(node_cluster, number)
    status = training.ends()
    assert status["restarts"]["failure"] == 0, status["restarts"]
