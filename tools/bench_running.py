"""What an operator takes that looks after thousands of running jobs, on a real API server: memory, descriptors, processor time.

Called by tools/bench operator --running. One job is made by the operator itself, its pods run, its coordinator speaks; then its objects are
written into etcd once a job, for no API server makes a hundred thousand pods in minutes. So the operator that is measured is one that
comes to jobs that run, as after a failover. One process answers for all coordinators (tools/running_jobs.py).
"""

import contextlib
import json
import os
import resource
import statistics
import sys
import time
from pathlib import Path

import cluster as clusters
import control_plane
import operator_rig
import processes
import rig
import running_jobs

WORKERS = (2, 8)
STEADY_S = 60
FEW_IN_WORK = 8  # jobs, of 64 at most: twenty statuses a second are always under way
NAMESPACE = "running"
KINDS = "trainingjobs,pods,services,poddisruptionbudgets,networkpolicies"
SCRIPT = str(Path(running_jobs.__file__).resolve())
TICK = os.sysconf("SC_CLK_TCK")


def memory_mib(pid, field):
    text = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith(f"{field}:")) / 1024


def cpu_s(pid):
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def counts(cluster):
    return json.loads(cluster.call("curl", "-s", f"http://127.0.0.1:{running_jobs.COUNTS_PORT}/"))


def make_model(stage, workers):
    """The job that all others are copies of; returns its objects as the API server shows them."""
    kubectl = stage.kubectl
    kubectl.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": running_jobs.NODE}})
    kubectl.create_status("node", running_jobs.NODE, {"conditions": [
        {"type": "Ready", "status": "True", "lastTransitionTime": operator_rig.now(), "lastHeartbeatTime": operator_rig.now()}]})
    kubectl.apply(operator_rig.job(running_jobs.MODEL, {"min": 1, "max": workers, "target": workers}))
    stage.cluster_start_coordinators()
    operator = stage.operator("--no-lease")
    for name in [*stage.until_pods("coordinator", 1), *stage.until_pods("worker", workers)]:
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": {"apiVersion": "v1", "kind": "Node", "name": running_jobs.NODE}}
        kubectl("create", "--raw", f"/api/v1/namespaces/{NAMESPACE}/pods/{name}/binding", "-f", "-", stdin=json.dumps(binding))
        stage.run_pod(name)
    processes.until(lambda: stage.job(running_jobs.MODEL)["status"].get("progress", {}).get("step"), "the model trains", 120)
    operator.stop()
    return [kubectl.get("node", running_jobs.NODE), *kubectl.get(KINDS)]


class Stage(operator_rig.Stage):
    """The model's namespace, with the coordinators of all."""

    def __init__(self, kubectl, jobs, workers):
        super().__init__(kubectl)
        self.jobs, self.workers = jobs, workers

    def cluster_start_coordinators(self):
        uid = self.job(running_jobs.MODEL)["metadata"]["uid"]
        self.kubectl.cluster.start("coordinators", [sys.executable, SCRIPT, "coordinators", str(self.jobs), str(self.workers), uid])


def keep(folder, objects):
    folder.mkdir()
    for number, each in enumerate(objects):
        (folder / f"{number:02d}.json").write_text(json.dumps(each), encoding="utf-8")


def is_ready(plane):
    try:
        plane.cluster.call("curl", "-sf", "--cacert", plane.key("ca.crt"), f"{clusters.SERVER}/readyz")
    except RuntimeError:
        return False
    return True


def start_api_server(plane):
    """With a hundred thousand objects it takes long to read them."""
    try:
        plane.start_api_server()
    except TimeoutError:
        calm_until(lambda: is_ready(plane), "the API server with all these objects")


class Rig:
    """A cluster's API server with that many running jobs, and the operator beside it."""

    def __init__(self, cluster, jobs, workers):
        self.cluster, self.jobs, self.workers = cluster, jobs, workers
        everywhere = rig.Kubectl(cluster)
        everywhere("apply", "-f", str(operator_rig.CRD))
        everywhere.until_served()
        self.stage = Stage(rig.make_namespace(cluster, NAMESPACE), jobs, workers)
        self.plane = control_plane.ControlPlane(cluster)
        folder = cluster.run / "model"
        keep(folder, make_model(self.stage, workers))
        self.plane.api_server_away()  # and the controllers, which would find nobody's objects
        self.seeded = json.loads(cluster.call(sys.executable, SCRIPT, "seed", str(folder), str(jobs), timeout=1800))
        start_api_server(self.plane)
        self.operator = None

    def start(self, *arguments):
        """Until the operator has asked each coordinator; returns what that took."""
        begun = time.monotonic()
        self.operator = self.stage.operator("--no-lease", *arguments, log="info")
        processes.until(lambda: self.operator.lines("the caches are complete"), "the caches are complete", 600)
        cached = time.monotonic() - begun
        calm_until(lambda: counts(self.cluster)["seen"] >= self.jobs, "all coordinators are asked")
        return cached, time.monotonic() - begun

    @property
    def pid(self):
        return self.operator.process.pid

    def writes(self):
        return sum(self.operator.metric(f'api_requests_total{{verb="{verb}"') for verb in ("create", "update", "patch", "delete"))


def calm_until(condition, what, seconds=1800):
    """Asked seldom: to ask costs the machine that is measured."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, f"{what}: not within {seconds} s"
        time.sleep(1)


def answer_s(it):
    """How long the kubelet would wait for its word that it lives."""
    begun = time.monotonic()
    status, _ = it.operator.get("/healthz")
    assert status == 200, f"/healthz answers with status {status}"
    return time.monotonic() - begun


def steady(it):
    """What a minute takes in which nothing happens but training."""
    before, asked, writes = cpu_s(it.pid), counts(it.cluster)["questions"], it.writes()
    begun = time.monotonic()
    healthy = []
    while time.monotonic() < begun + STEADY_S:
        healthy.append(answer_s(it))
        time.sleep(1)
    took = time.monotonic() - begun
    return {"healthy": healthy, "cpu": (cpu_s(it.pid) - before) / took, "questions": (counts(it.cluster)["questions"] - asked) / took, "writes": (it.writes() - writes) / took,
            "rss": memory_mib(it.pid, "VmRSS"), "peak": memory_mib(it.pid, "VmHWM"), "open": counts(it.cluster)["open"], "files": descriptors(it.pid)}


def list_anew(it):
    """The API server starts anew: all watches begin with lists. Returns the peak of memory, and the seconds until all was listed."""
    lists = it.operator.metric("relists_total")
    Path(f"/proc/{it.pid}/clear_refs").write_text("5", encoding="ascii")
    it.cluster.stop("api-server")
    start_api_server(it.plane)
    begun = time.monotonic()
    calm_until(lambda: it.operator.metric("relists_total") >= lists + 6, "everything is listed anew")
    calm_until(lambda: it.operator.metric("jobs_in_work") < FEW_IN_WORK, "the jobs are looked at")
    return memory_mib(it.pid, "VmHWM"), time.monotonic() - begun


def measure(jobs, workers):
    """In a cluster of its own."""
    os.environ["ETCD_QUOTA_BACKEND_BYTES"] = str(8 << 30)
    cluster = clusters.Cluster(f"bench{os.getpid()}")
    rig.bring_up(cluster, 0, tied=True)
    with contextlib.ExitStack() as ends:
        ends.callback(cluster.down)
        it = Rig(cluster, jobs, workers)
        ends.callback(it.stage.close)
        found = {"seeded": it.seeded}
        found["cached"], found["seen"] = it.start()
        found["healthy_start"] = max(answer_s(it) for _ in range(5))
        found["start_peak"], found["start_writes"] = memory_mib(it.pid, "VmHWM"), it.writes()
        calm_until(lambda: it.operator.metric("jobs_in_work") < FEW_IN_WORK, "what a new operator writes is written")
        found.update(steady(it))
        print(found, flush=True)  # what comes takes long, and may not come
        found["listed_peak"], found["listed"] = list_anew(it)
        status, page = it.operator.get("/metrics")
        assert status == 200, f"/metrics answers with status {status}"
        assert it.operator.metric("pods_created_total") == it.operator.metric("pods_deleted_total") == 0, "a running job lost its pods"
        found["page"], found["limit"] = len(page), resource.prlimit(it.pid, resource.RLIMIT_NOFILE)[0]
        it.operator.stop()
    return found


ROWS = [
    ("objects in etcd; GB", lambda f, jobs: f"{f['seeded']['objects']:,}; {f['seeded']['bytes'] / 1e9:.1f}"),
    ("from its start until all lists are there", lambda f, jobs: f"{f['cached']:.0f} s"),
    ("until each coordinator was asked", lambda f, jobs: f"{f['seen']:.0f} s"),
    ("/healthz right behind that, longest of 5", lambda f, jobs: f"{1000 * f['healthy_start']:.0f} ms"),
    ("writes until then", lambda f, jobs: f"{f['start_writes']:.0f}"),
    ("most memory until then", lambda f, jobs: f"{f['start_peak']:.0f} MiB"),
    ("memory of the operator after a minute of training alone; a job", lambda f, jobs: f"{f['rss']:.0f} MiB; {1024 * f['rss'] / jobs:.0f} KiB"),
    ("connections to coordinators; descriptors, of so many", lambda f, jobs: f"{f['open']:,}; {f['files']:,}, {f['limit']:,}"),
    ("coordinators' answers a second", lambda f, jobs: f"{f['questions']:.0f}"),
    ("of a processor, of that an answer", lambda f, jobs: f"{100 * f['cpu']:.0f} %, {1e6 * f['cpu'] / f['questions']:.0f} us"),
    ("/healthz, median and longest of a minute's", lambda f, jobs: f"{1000 * statistics.median(f['healthy']):.0f} ms, {1000 * max(f['healthy']):.0f} ms"),
    ("writes a second", lambda f, jobs: f"{f['writes']:.0f}"),
    ("most memory while the API server starts anew and all is listed again", lambda f, jobs: f"{f['listed_peak']:.0f} MiB"),
]


def table(jobs):
    found = [measure(jobs, workers) for workers in WORKERS]
    lines = [f"An operator that comes to {jobs:,} running jobs, with the chart's limits of requests:", "",
             f"| | {' | '.join(f'{workers} workers each' for workers in WORKERS)} |", "|---|" + "---|" * len(WORKERS)]
    return lines + [f"| {name} | {' | '.join(show(each, jobs) for each in found)} |" for name, show in ROWS]
