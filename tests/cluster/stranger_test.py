"""Programs of somebody else's in images of theirs, on three nodes: nothing of ours is in them, and what they write is there once whoever comes and goes."""

import json

import images
import node_rig
import processes
import pytest
from node_rig import SPREAD, a_worker, name_of, prefer_node

SHARED = "/shared"


class Volume:
    """A folder of this machine, which all nodes see, as a volume that all pods of a namespace write to."""

    def __init__(self, kubectl, folder, name):
        self.kubectl, self.folder, self.name = kubectl, folder, name
        folder.mkdir()
        folder.chmod(0o777)
        size = {"storage": "1Mi"}
        kubectl.apply(
            {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
             "spec": {"capacity": size, "accessModes": ["ReadWriteMany"], "storageClassName": "", "persistentVolumeReclaimPolicy": "Retain",
                      "claimRef": {"namespace": kubectl.namespace, "name": name}, "hostPath": {"path": str(folder), "type": "Directory"}}},
            {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
             "spec": {"accessModes": ["ReadWriteMany"], "storageClassName": "", "volumeName": name, "resources": {"requests": size}}})

    def lines(self):
        """The numbers of each whole line."""
        try:
            text = (self.folder / "lines").read_text(encoding="ascii")
        except FileNotFoundError:
            return []
        return [tuple(map(int, line.split())) for line in text.splitlines(keepends=True) if line.endswith("\n")]

    def each_is_there_once(self, least):
        numbers = [line[0] for line in self.lines()]
        assert len(numbers) == len(set(numbers)), sorted(number for number in set(numbers) if numbers.count(number) > 1)
        assert set(range(least)) <= set(numbers), sorted(set(range(least)) - set(numbers))

    def forget(self):
        self.kubectl("delete", "persistentvolumeclaim", self.name, "--wait=false", "--ignore-not-found")
        self.kubectl("delete", "persistentvolume", self.name, "--wait=false", "--ignore-not-found")


@pytest.fixture(name="volume")
def fixture_volume(place, tmp_path, request):
    made = Volume(place, tmp_path / "shared", f"lines-{node_rig.mark_of(request)}")
    yield made
    made.forget()


@pytest.fixture(name="begin")
def fixture_begin(place, volume):
    """begin(image, command, **fields): a job whose template says what a user would, and no more."""
    begun = []

    def begin(image, command, **workers):
        container = {"name": "trainer", "image": image, "imagePullPolicy": "Never", "resources": node_rig.SMALL,
                     "volumeMounts": [{"name": "shared", "mountPath": SHARED}]}
        template = {"spec": {"containers": [container], "volumes": [{"name": "shared", "persistentVolumeClaim": {"claimName": volume.name}}], **SPREAD}}
        spec = {"workers": {"min": 1, "max": 5, "target": 3, "template": template, **workers},
                "coordinator": {"template": {"spec": prefer_node(1)}},
                "launch": {"command": command, "mode": "Restart", "gracePeriod": "5s"}, "elasticity": {"lostAfter": "10s", "joinWindow": "10s"}}
        begun.append(volume.name)
        return node_rig.Training(place, {"apiVersion": "ringmaster.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": volume.name}, "spec": spec})
    yield begin
    for name in begun:
        place("delete", "trainingjob", name, "--wait=true", "--ignore-not-found", timeout=300)


def until_written_by(training, volume, world, beyond):
    """Until ranks of such a world, of a later generation than that, have written; returns how many generations there were before theirs."""
    def written():
        found = [line[1] for line in volume.lines() if line[2] == world and line[1] > beyond]
        if not found and training.condition("Finished") == "True":
            raise AssertionError(f"the job ended before a world of {world} wrote: {training.story()}")
        return max(found) if found else None
    try:
        return processes.until(lambda: written() is not None, f"lines of a world of {world}", node_rig.DEADLINE_S) and written()
    except TimeoutError as late:
        raise AssertionError(f"{late}\n{training.story()}") from None


def evict(training):
    """A worker of it, as soon as its budget allows that."""
    kubectl, pod = training.kubectl, name_of(a_worker(training))
    processes.until(lambda: kubectl.get("poddisruptionbudget", f"{training.name}-workers")["status"].get("disruptionsAllowed"), "one may go", 120)
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": kubectl.namespace}}
    kubectl("create", "--raw", f"/api/v1/namespaces/{kubectl.namespace}/pods/{pod}/eviction", "-f", "-", stdin=json.dumps(body))


def set_spec(training, **fields):
    training.kubectl("patch", "trainingjob", training.name, "--type=merge", "-p", json.dumps({"spec": fields}))


def suspended_and_resumed(training, volume, beyond):
    """With nothing written meanwhile."""
    set_spec(training, suspend=True)
    processes.until(lambda: training.condition("Suspended") == "True" and not training.workers(), "suspended", 300)
    before = volume.lines()
    assert "images" not in training.status()
    set_spec(training, suspend=False)
    seen = until_written_by(training, volume, 2, beyond)
    assert volume.lines()[:len(before)] == before and all(line[1] > beyond for line in volume.lines()[len(before):])
    return seen


@pytest.mark.turns(1)
def test_each_line_is_there_once_in_an_image_of_debians_python_whatever_happens_to_the_workers(begin, volume, place, machines):
    training = begin(images.STRANGER, ["python3", "/program/lines.py", SHARED])
    seen = until_written_by(training, volume, 3, -1)
    pinned = training.status()["images"]
    assert pinned["trainer"].startswith("localhost/stranger/python") and pinned["bundle"] == pinned["coordinator"], pinned
    assert pinned["bundle"].startswith("localhost/ringmaster/worker"), pinned
    evict(training)
    seen = until_written_by(training, volume, 3, seen)
    number = training.node_of(name_of(a_worker(training, away_from=[1])))
    machines[number].kill()
    seen = until_written_by(training, volume, 3, seen)
    place("scale", f"trainingjob/{training.name}", "--replicas=5")
    seen = until_written_by(training, volume, 5, seen)
    place("scale", f"trainingjob/{training.name}", "--replicas=2")
    seen = until_written_by(training, volume, 2, seen)
    suspended_and_resumed(training, volume, seen)
    least = max(line[0] for line in volume.lines()) + 10
    (volume.folder / "last.new").write_text(str(least), encoding="ascii")
    (volume.folder / "last.new").rename(volume.folder / "last")
    status = training.finish()
    assert status["result"] == {"exitCode": 0}, status
    assert status["restarts"]["preemption"] == 1 and status["restarts"]["infrastructure"] >= 1 and status["restarts"]["failure"] == 0, status["restarts"]
    volume.each_is_there_once(least)


@pytest.mark.turns(2)
def test_an_image_of_musl_runs_its_program(begin, volume):
    training = begin(images.STRANGER_MUSL, ["/bin/lines", SHARED, "500"], target=2, max=2)
    assert training.finish()["result"] == {"exitCode": 0}
    volume.each_is_there_once(500)
