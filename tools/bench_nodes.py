"""How long a job stands still when a machine vanishes, phase by phase, beside a worker's death under `ringmaster run` in the same cluster."""

import json
import statistics
import time

import node as nodes
import node_rig
import rig
from bench_page import PHASES, PHASES_HEAD

HOME = 1  # the machine of coordinator and store stays
STEPS = 1_000_000  # more than it comes to
BETWEEN = 40
LOST_AFTER_S = 10


def job():
    """Three workers on three machines, the coordinator on the first."""
    made = node_rig.training_job("vanish", STEPS, workers={"target": 3, "min": 1, "max": 3}, pod=node_rig.SPREAD)
    made["spec"]["workers"]["template"]["spec"]["containers"][0]["resources"] = node_rig.SMALL
    made["spec"]["coordinator"]["template"]["spec"].update(node_rig.prefer_node(HOME))
    made["spec"]["elasticity"]["lostAfter"] = f"{LOST_AFTER_S}s"
    return made


def vanish_once(training, cluster):
    """The record of the loss, and how long it took until three trained again."""
    said = training.until_ring_of(3)
    said = training.until_step(said["progress"]["step"] + 20)
    places = {training.node_of(pod["metadata"]["name"]) for pod in training.workers()}
    ring, number = said["ring"]["generation"], max(places - {HOME})
    node = nodes.Node(cluster, number)
    node.kill()
    gone = time.monotonic()
    said = training.until(lambda now: now["ring"]["generation"] > ring and (now.get("lastRecovery") or {}).get("cause") == "WorkerLost",
                          "the survivors' next step")
    record = said["lastRecovery"]
    training.until_ring_of(3, beyond=ring + 1)
    whole = time.monotonic() - gone
    node.clean()
    rig.bring_node(cluster, number)
    return record, whole


def local_deaths(kubectl, kills):
    """The same training in one pod by `ringmaster run`, whose drills kill and start workers: the records of the losses."""
    drills, step = [], 60
    for number in range(kills):
        drills += ["--drill", f"kill:{number % 3}@{step}", "--drill", f"join@{step + BETWEEN}"]
        step += 2 * BETWEEN
    events = node_rig.run_events(kubectl, "deaths", json.dumps(node_rig.local_job("deaths", step)), "store", arguments=drills)
    return [event for event in events if event.get("event") == "recovered" and event["cause"] == "WorkerLost"]


def row(name, records):
    return f"| {name} | " + " | ".join(f"{statistics.median(each[phase] for each in records):.1f}" for phase in PHASES) + " |"


def measure(cluster, kills):
    node_rig.install_operator(cluster)
    kubectl = rig.make_namespace(cluster, "bench")
    node_rig.install_store(kubectl)
    dead = local_deaths(kubectl, 2 * kills)
    training = node_rig.Training(kubectl, job())
    vanished = [vanish_once(training, cluster) for _ in range(kills)]
    records = [record for record, _ in vanished]
    times = "once" if kills == 1 else f"{kills} times"
    return [f"{times} a machine of three vanished with the worker on it, at once and without a word; {2 * kills} times a worker under "
            f"`ringmaster run`, the same training in a pod of the same image, was killed. `lostAfter` is {LOST_AFTER_S} s. Medians, milliseconds:", "",
            *PHASES_HEAD,
            row("a machine vanishes", records), row("a worker dies under `ringmaster run`", dead), "",
            f"Steps redone: {sum(each['stepsRedone'] for each in records)}. Until as many workers as before trained again, one of them "
            f"in a new pod: {statistics.median(seconds for _, seconds in vanished):.0f} s."]
