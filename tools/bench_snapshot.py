"""What it takes that a program which saves nothing is frozen by CRIU, and lives again on another machine, on the node tier.

Called by tools/bench snapshot. The program fills so much memory and then tells the time ten times a second. In each pod it writes that memory plainly into the
folder of images, so that both writes are of one pod, one disk and one run; then a snapshot by the interval is waited for, and the pod is deleted: its successor is
on another machine, where curl fetches the same object behind it. Before that the same program starts again as often in a job without snapshots.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests/cluster")]

import bench_page  # noqa: E402  (its folder is on the path only now)
import cluster as clusters  # noqa: E402
import images  # noqa: E402
import node as nodes  # noqa: E402
import node_rig  # noqa: E402
import processes  # noqa: E402
import rig  # noqa: E402

SPACE = "frozen"
HOME, AWAY = 1, (2, 3)  # of coordinator and store; of the program
PATIENCE_S = 900
PROGRAM = r"""
import mmap, os, sys, time
MIB = 1 << 20
size = int(sys.argv[1]) * MIB
memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
block = os.urandom(MIB)
for at in range(0, size, MIB):
    memory[at:at + MIB] = block
def plain():
    folder = "/var/lib/ringmaster/snapshots"
    if not os.path.isdir(folder):
        return
    view, begun = memoryview(memory), time.monotonic()
    out = os.open(folder + "/plain", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    for at in range(0, size, MIB):
        os.write(out, view[at:at + MIB])
    os.close(out)
    took = time.monotonic() - begun
    os.unlink(folder + "/plain")
    print(f"plain {took:.4f} {time.time():.3f}", flush=True)
pod, n, gap, last, told = "", 0, 0, time.time(), 0
while True:
    now = time.time()
    gap, last = max(gap, now - last), now
    if now - told > 0.1:
        print(f"tick {n} {now:.3f} {gap:.4f}", flush=True)
        n, gap, told = n + 1, 0, now
    if os.uname().nodename != pod:
        pod = os.uname().nodename
        plain()
        last = time.time()
    time.sleep(0.001)
"""


def install(cluster):
    """kubectl in a namespace that takes such pods, with an object store; the nodes have the image with CRIU."""
    subprocess.run([ROOT / "tests/cluster/load-image", "--name", cluster.name, images.snapshots_archive()], check=True)
    node_rig.install_operator(cluster, more={"processSnapshots.enabled": "true", "image.snapshots": images.SNAPSHOTS})
    kubectl = rig.make_namespace(cluster, SPACE)
    node_rig.install_store(kubectl, HOME)
    return kubectl


def job(name, mib, frozen):
    """With room for its memory and a GiB more, which is for the kernel's copies of files and for what is beside."""
    container = {"name": "trainer", "image": images.STRANGER, "imagePullPolicy": "Never",
                 "resources": {"requests": node_rig.SMALL["requests"], "limits": {"memory": f"{mib + 1024}Mi"}}}
    term = {"matchExpressions": [{"key": "ringmaster.test/node", "operator": "In", "values": [str(number) for number in AWAY]}]}
    pod = {"terminationGracePeriodSeconds": 600, "containers": [container],
           "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}}
    spec = {"workers": {"min": 1, "max": 1, "target": 1, "template": {"spec": pod}}, "coordinator": {"template": {"spec": node_rig.prefer_node(HOME)}},
            "launch": {"command": ["python3", "-c", PROGRAM, str(mib)], "mode": "Restart", "gracePeriod": "300s"}, "elasticity": {"lostAfter": "10s"}}
    if frozen:
        spec["checkpoint"] = {"uri": f"s3://jobs/{name}", "endpoint": "http://store:7070", "secretRef": {"name": "store"}, "process": "CRIU",
                              "every": f"{15 + 8 * mib // 1024}s", "keep": 1}
    return {"apiVersion": "ringmaster.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": name}, "spec": spec}


class Pod:
    """A worker's pod with what it has said: followed, for a pod that is gone takes its log along."""

    def __init__(self, training, beyond=None):
        self.training, self.kubectl = training, training.kubectl

        def runs():
            found = [pod for pod in training.workers() if pod["status"].get("phase") == "Running" and node_rig.name_of(pod) != (beyond and beyond.name)]
            assert training.condition("Finished") != "True", training.story()
            return found and found[-1]
        pod = processes.until(runs, f"a pod of {training.name} runs", PATIENCE_S)
        self.name, self.node = node_rig.name_of(pod), pod["spec"]["nodeName"]
        cluster = self.kubectl.cluster
        self.log = cluster.run / f"{self.name}.log"
        with open(self.log, "wb") as out:
            self.follower = subprocess.Popen([*cluster.enter(), "kubectl", "-n", SPACE, "logs", "-f", self.name, "-c", "trainer"], stdin=subprocess.DEVNULL,
                                             stdout=out, stderr=subprocess.STDOUT, env=cluster.environment())

    def lines(self, pattern):
        return [tuple(map(float, found)) for found in re.findall(pattern, self.log.read_text(encoding="utf-8", errors="replace"), re.MULTILINE)]

    def ticks(self):
        """(when, the longest pause before it) of each, in seconds."""
        return self.lines(r"tick \d+ ([\d.]+) ([\d.]+)$")

    def plain(self):
        """(seconds that the plain write took, when it was done)."""
        return self.until(lambda: self.lines(r"plain ([\d.]+) ([\d.]+)$"), "the plain write")[-1]

    def said(self, message):
        """Of the agent's lines with that message what they tell in numbers."""
        found = [json.loads(line) for line in self.log.read_text(encoding="utf-8", errors="replace").splitlines() if f'"{message}"' in line]
        return [{name: float(value) for name, value in line.items() if re.fullmatch(r"[\d.]+", str(value))} for line in found]

    def until(self, condition, what):
        try:
            return processes.until(condition, what, PATIENCE_S)
        except TimeoutError as late:
            raise AssertionError(f"{late}\n{self.log.read_text(encoding='utf-8', errors='replace')[-3000:]}\n{self.training.story()}") from None

    def delete(self):
        """Its successor, which is on another machine; and how long it took until the program ran there."""
        begun = time.time()
        self.kubectl("cordon", self.node)
        self.kubectl("delete", "pod", self.name, "--wait=false")
        after = Pod(self.training, self)
        assert after.node != self.node, (after.node, self.node)
        first = after.until(after.ticks, "it runs there")[0][0]
        self.kubectl("uncordon", self.node)
        self.follower.wait(PATIENCE_S)
        return after, first - begun


def interval_snapshot(pod):
    """The first that was made while the program went on, and for how long it stood still by its own clock."""
    made = pod.until(lambda: pod.said("a snapshot is published"), "a snapshot by the interval")[0]
    ended = made["time"] / 1000 - made["send_ms"] / 1000
    begun = ended - made["dump_ms"] / 1000
    assert begun > pod.plain()[1], "the plain write was not over when the snapshot was made"
    pod.until(lambda: pod.ticks()[-1][0] > ended + 1, "it ticks behind that")
    return made, max(gap for when, gap in pod.ticks() if begun <= when <= ended + 1)


def curl_s(kubectl, node, name):
    """Seconds that curl takes for the newest snapshot's object, into a file of that machine."""
    cluster, machine = kubectl.cluster, nodes.Node(kubectl.cluster, int(node.rpartition("-")[2]))
    address = f"http://{kubectl.get('service', 'store')['spec']['clusterIP']}:7070/jobs"
    curl = [*machine.enter(), "curl", "-sSf", "-H", "x-amz-content-sha256: UNSIGNED-PAYLOAD", "--aws-sigv4", "aws:amz:us-east-1:s3", "--user", ":".join(node_rig.STORE_KEYS.values())]
    keys = re.findall(r"<Key>([^<]*/image-[^<]*)</Key>", cluster.call(*curl, f"{address}?list-type=2&prefix={name}%2F"))
    to = machine.disk / "fetched"
    took = cluster.call(*curl, "-o", str(to), "-w", "%{time_total}", f"{address}/{max(keys)}", timeout=PATIENCE_S)
    to.unlink()
    return float(took)


def frozen_round(pod, name):
    """(what was found, the pod that goes on)."""
    made, paused = interval_snapshot(pod)
    plain, _ = pod.plain()
    after, whole = pod.delete()
    left, back = pod.said("a snapshot is published")[-1], after.said("a snapshot lives again")[0]
    after.plain()
    return {"bytes": back["bytes"], "plain": plain, "frozen": made["frozen_ms"] / 1000, "paused": paused, "dump": left["dump_ms"] / 1000,
            "send": left["send_ms"] / 1000, "fetch": back["fetch_ms"] / 1000, "restore": back["restore_ms"] / 1000, "whole": whole,
            "curl": curl_s(after.kubectl, after.node, name)}, after


def measure(kubectl, mib, rounds):
    """What each round found."""
    name, found = f"frozen-{mib}", [{} for _ in range(rounds)]
    for each in (f"again-{mib}", name):  # not at once: a machine that takes no pods any more is left by all
        training = node_rig.Training(kubectl, job(each, mib, each == name))
        pod = Pod(training)
        for one in found:
            pod.until(pod.ticks, "it runs")
            if each == name:
                more, pod = frozen_round(pod, name)
                one.update(more)
            else:
                pod, one["again"] = pod.delete()
            print(json.dumps({"mib": mib, **one}), file=sys.stderr, flush=True)
        kubectl("delete", "trainingjob", each, "--wait=true", timeout=PATIENCE_S)
    return found


def seconds(name):
    return lambda found: f"{statistics.median(each[name] for each in found):.2f} s"


def ratio(of, to):
    return lambda found: f"{statistics.median(of(each) / to(each) for each in found):.2f}"


ROWS = [
    ("bytes of the snapshot", lambda found: f"{found[0]['bytes'] / 1e6:,.0f} MB"),
    ("the memory written plainly into the same folder", seconds("plain")),
    ("frozen, by CRIU, of a snapshot by the interval", seconds("frozen")),
    ("... the longest pause by the program's own clock", seconds("paused")),
    ("**frozen, in plain writes** (aim: 1.2 at most)", ratio(lambda each: each["frozen"], lambda each: each["plain"])),
    ("the pod is deleted: dump", seconds("dump")),
    ("... upload", seconds("send")),
    ("in the next pod: download, with its hashes", seconds("fetch")),
    ("... restore", seconds("restore")),
    ("the same object by curl, into a file of that machine", seconds("curl")),
    ("**speed of download and restore, of curl's** (aim: 0.8)", ratio(lambda each: each["curl"], lambda each: each["fetch"] + each["restore"])),
    ("... of that of our own download alone", ratio(lambda each: each["fetch"], lambda each: each["fetch"] + each["restore"])),
    ("from the deletion until it runs on another machine", seconds("whole")),
    ("the same without snapshots: until its memory is filled again", seconds("again")),
    ("**gone on, in starts from nothing**", ratio(lambda each: each["whole"], lambda each: each["again"])),
]


def table(sizes, rounds, found):
    return [f"CRIU out of our own image, versitygw on the first of three nodes; the program moves between the others. Medians of {rounds} rounds, of ratios within each:", "",
            f"| | {' | '.join(f'{mib / 1024:.2g} GiB' for mib in sizes)} |", "|---|" + "---|" * len(sizes),
            *(f"| {name} | {' | '.join(show(each) for each in found)} |" for name, show in ROWS)]


def main():
    parser = argparse.ArgumentParser(prog="tools/bench snapshot")
    parser.add_argument("--mib", type=int, nargs="+", default=[102, 1024, 4096], help="of memory")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="put the result into docs/benchmarks.md")
    arguments = parser.parse_args()
    cluster = clusters.Cluster(f"bench{os.getpid()}")
    rig.bring_up(cluster, 3, tied=True)
    try:
        kubectl = install(cluster)
        found = [measure(kubectl, mib, arguments.rounds) for mib in arguments.mib]
    finally:
        cluster.down()
    lines = [f"`tools/bench {' '.join(['snapshot', *(word for word in sys.argv[1:] if word != '--write')])}` on {bench_page.machine()}:", "",
             *table(arguments.mib, arguments.rounds, found)]
    print("\n".join(lines))
    if arguments.write:
        bench_page.write_section("snapshot", lines)


if __name__ == "__main__":
    main()
