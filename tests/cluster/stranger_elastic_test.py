"""A program of somebody else's that stays while others come and go (launch.mode: Elastic), in an image of theirs, on nodes."""

import json

import images
import node_rig
import processes
import pytest
from node_rig import SPREAD, name_of, prefer_node
from stranger_test import SHARED, evict, fixture_volume  # noqa: F401  (volume is a fixture)

STEPS = 3000
STORE = {"endpoint": "http://store:7070"}
PROGRAM = ["python3", "/program/elastic_numpy.py"]
# In front of a command that is started in the image of theirs: the programs of the worker image, and all that those load.
LOCAL = 'LD_PRELOAD= LD_LIBRARY_PATH=/cli/lib PATH=/cli/bin:$PATH exec ringmaster run /job/job.yaml --output json'


def elastic_job(name, command, checkpoint, steps=STEPS, **workers):
    return {"apiVersion": "ringmaster.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": name}, "spec": {
        "workers": {"min": 1, "max": 5, "target": 3, **workers}, "checkpoint": {"uri": f"s3://jobs/{name}", **STORE, **checkpoint},
        "launch": {"command": command, "mode": "Elastic", "steps": steps, "batch": {"lanes": 8, "laneSequences": 3}}}}


def a_training(place, volume, name, image, command, steps=STEPS, **container):
    """For a fixture: an elastic job of those words, with the volume; the template says what a user would."""
    container = {"name": "trainer", "image": image, "imagePullPolicy": "Never", "resources": node_rig.SMALL,
                 "volumeMounts": [{"name": "shared", "mountPath": SHARED}], **container}
    template = {"spec": {"containers": [container], "volumes": [{"name": "shared", "persistentVolumeClaim": {"claimName": volume.name}}], **SPREAD}}
    job = elastic_job(name, command, {"secretRef": {"name": "store"}}, steps, template=template)
    job["spec"].update(coordinator={"template": {"spec": prefer_node(1)}}, elasticity={"lostAfter": "10s", "joinWindow": "5s"})
    yield node_rig.Training(place, job)
    place("delete", "trainingjob", name, "--wait=true", "--ignore-not-found", timeout=300)


@pytest.fixture(name="training")
def fixture_training(place, volume):
    """A job of the numpy loop whose lanes take a while until there is the volume's file `hurry`."""
    yield from a_training(place, volume, "numpy", images.STRANGER, [*PROGRAM, "0.05", f"{SHARED}/hurry", "wait"])


def begin_locally(kubectl, name="numpy-alone", image=images.STRANGER, command=PROGRAM, steps=STEPS):
    """`ringmaster run` of the same loop, unhurried by nothing, in a pod of the same image: Ringmaster's programs come out of the worker image."""
    job = elastic_job(name, command, {}, steps, target=2)
    cli, scratch = {"name": "cli", "mountPath": "/cli"}, {"name": "tmp", "mountPath": "/tmp"}
    copy = "mkdir /cli/bin && cp /usr/bin/ringmaster /usr/bin/ringmaster-agent /usr/bin/ringmaster-trainer /cli/bin && cp -r /opt/ringmaster/lib /opt/ringmaster/share /cli && cp /usr/lib/*/libyaml-0.so.2 /cli/lib"
    kubectl.apply(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"job.yaml": json.dumps(job)}},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
         "spec": {"nodeName": "node-1", "restartPolicy": "Never", "securityContext": node_rig.POD_SECURITY, "terminationGracePeriodSeconds": 1,
                  "automountServiceAccountToken": False,
                  "volumes": [{"name": "job", "configMap": {"name": name}}, {"name": "cli", "emptyDir": {}}, {"name": "tmp", "emptyDir": {}}],
                  "initContainers": [node_rig.container("cli", images.WORKER, command=["sh", "-c", copy], volumeMounts=[cli])],
                  "containers": [node_rig.container("run", image, command=["sh", "-c", LOCAL], envFrom=[{"secretRef": {"name": "store"}}],
                                                    volumeMounts=[cli, scratch, {"name": "job", "mountPath": "/job"}])]}})


def end_locally(kubectl, name="numpy-alone"):
    """The last event of that run."""
    ended = kubectl.until(lambda pod: pod["status"].get("phase") in ("Succeeded", "Failed") and pod, "the end of `ringmaster run`", "pod", name)
    said = kubectl("logs", name)
    assert ended["status"]["phase"] == "Succeeded", said[-3000:]
    return json.loads([line for line in said.splitlines() if line.startswith("{")][-1])


def check_stayed(training, before):
    """The programs of pods that were there all along began once."""
    stayed = [pod for pod in training.workers() if pod["metadata"]["uid"] in {pod["metadata"]["uid"] for pod in before}]
    assert stayed, training.story()
    for pod in stayed:
        said = training.kubectl("logs", name_of(pod), "-c", "trainer")
        assert said.count("the program is here") == 1, said[-3000:]


def check_time_left(training):
    """`kubectl get` says how far it is and, once steps of a ring of this size are timed and told, how long it will take."""
    columns = processes.until(lambda: (said := training.status()["columns"]).get("eta") and said, f"the time left of {training.name}")
    assert columns["progress"].endswith("%"), columns


def check_ends_as_alone(training, volume, *local):
    """It ends with the weights of the local run; local: end_locally's arguments."""
    (volume.folder / "hurry").touch()
    status, alone = training.finish(), end_locally(*local)
    assert alone["event"] == "complete" and status["result"]["weightsSha256"] == alone["weightsSha256"], (status["result"], alone)
    assert status["result"]["exact"] and status["restarts"]["failure"] == 0, status


@pytest.mark.turns(0)
def test_a_numpy_loop_in_an_image_of_debians_python_ends_with_the_weights_of_a_local_run(training, volume, place):
    begin_locally(place)
    said = training.until_ring_of(3)
    pinned, first = training.status()["images"], training.workers()
    assert pinned["trainer"].startswith("localhost/stranger/python") and pinned["bundle"] == pinned["coordinator"], pinned
    evict(training)
    said = node_rig.next_ring(training, 3, said)
    check_time_left(training)
    place("scale", f"trainingjob/{training.name}", "--replicas=5")
    said = node_rig.next_ring(training, 5, said)
    place("scale", f"trainingjob/{training.name}", "--replicas=2")
    said = node_rig.next_ring(training, 2, said)
    assert said["stepsRedone"] == {"announced": 0, "sudden": 0}, said["stepsRedone"]
    check_stayed(training, first)
    check_ends_as_alone(training, volume, place)
