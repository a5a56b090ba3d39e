"""torch on nodes: programs of PyTorch's in an image of Debian's python3-torch that has nothing of ours. The image is too large for every check: with --all and by hand."""

import subprocess

import images
import node_rig
import processes
import pytest
from cluster import ROOT
from node_rig import SPREAD, prefer_node
from stranger_elastic_test import a_training, begin_locally, check_ends_as_alone, check_stayed
from stranger_test import SHARED, evict, fixture_volume  # noqa: F401  (volume is a fixture)

pytestmark = pytest.mark.turns("all")

NAME = "ddp"
STEPS = 600
LANE_S = "0.2"  # unhurried: the changes of members come long before the end
ODD = ["python3", "/program/elastic_odd.py", "sgd"]
ONE_THREAD = [{"name": "OMP_NUM_THREADS", "value": "1"}]
NO_LIBUV = {"name": "USE_LIBUV", "value": "0"}  # Debian's torch is built without it, and asks for it all the same


@pytest.fixture(name="image", scope="module")
def fixture_image(node_cluster):
    """That of torch, on all nodes."""
    subprocess.run([ROOT / "tests/cluster/load-image", "--name", node_cluster.name, images.torch_archive()], check=True)
    return images.STRANGER_TORCH


@pytest.fixture(name="ddp")
def fixture_ddp(place, volume, image):
    """A job of two ranks a worker that make a step in a second until there is the volume's file `hurry`."""
    container = {"name": "trainer", "image": image, "imagePullPolicy": "Never", "resources": node_rig.SMALL, "env": [*ONE_THREAD, NO_LIBUV],
                 "volumeMounts": [{"name": "shared", "mountPath": SHARED}]}
    template = {"spec": {"containers": [container], "volumes": [{"name": "shared", "persistentVolumeClaim": {"claimName": volume.name}}], **SPREAD}}
    spec = {"workers": {"min": 1, "max": 4, "target": 3, "template": template}, "coordinator": {"template": {"spec": prefer_node(1)}},
            "launch": {"command": ["python3", "/program/ddp.py", SHARED, str(STEPS), "1"], "mode": "Restart", "numProcPerNode": 2, "gracePeriod": "5s"},
            "elasticity": {"lostAfter": "10s", "joinWindow": "10s"}}
    yield node_rig.Training(place, {"apiVersion": "ringmaster.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": NAME}, "spec": spec})
    place("delete", "trainingjob", NAME, "--wait=true", "--ignore-not-found", timeout=300)


def steps(volume):
    """[(step, generations before it)], as rank 0 wrote them."""
    try:
        text = (volume.folder / "steps").read_text(encoding="ascii")
    except FileNotFoundError:
        return []
    return [tuple(map(int, line.split())) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def trains_as(training, volume, world, beyond=0):
    """Until a ring of that many workers, of a generation later than that, has made steps; returns its generation."""
    said = training.until_ring_of(world, beyond)
    there = len(steps(volume))
    processes.until(lambda: len(steps(volume)) > there + 1, f"steps of {world} workers", node_rig.DEADLINE_S)
    return said["ring"]["generation"]


def test_data_parallel_training_of_torch_goes_on_through_each_change_of_members(ddp, volume, place):
    generation = trains_as(ddp, volume, 3)
    evict(ddp)
    generation = trains_as(ddp, volume, 3, generation)
    place("scale", f"trainingjob/{NAME}", "--replicas=2")
    generation = trains_as(ddp, volume, 2, generation)
    place("delete", "pod", node_rig.name_of(ddp.workers()[-1]), "--grace-period=0", "--force")
    trains_as(ddp, volume, 2, generation)
    (volume.folder / "hurry").touch()
    assert ddp.finish()["result"] == {"exitCode": 0}, ddp.story()
    made = [step for step, _ in steps(volume)]
    assert sorted(set(made)) == list(range(1, STEPS + 1))
    # rank 0 writes the line, then saves: whoever stops it between the two lets one step be made again
    assert len(made) <= STEPS + max(before for _, before in steps(volume)), made


@pytest.fixture(name="odd")
def fixture_odd(place, volume, image):
    """A job of the torch loop that has some of everything, whose lanes take a while until there is the volume's file `hurry`."""
    command = [*ODD, LANE_S, f"{SHARED}/hurry", "wait"]
    yield from a_training(place, volume, "torch", image, command, STEPS, env=ONE_THREAD)


def test_a_torch_loop_with_the_library_ends_with_the_weights_of_a_local_run(odd, volume, place):
    begin_locally(place, "torch-alone", images.STRANGER_TORCH, ["env", "OMP_NUM_THREADS=1", *ODD], STEPS)
    said, first = odd.until_ring_of(3), odd.workers()
    evict(odd)
    said = node_rig.next_ring(odd, 3, said)
    place("scale", f"trainingjob/{odd.name}", "--replicas=2")
    said = node_rig.next_ring(odd, 2, said)
    assert said["stepsRedone"] == {"announced": 0, "sudden": 0}, said["stepsRedone"]
    check_stayed(odd, first)
    check_ends_as_alone(odd, volume, place, "torch-alone")
