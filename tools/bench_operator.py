"""How fast the operator makes pods, beside a client that does nothing else, on one API server, in turns; what a job takes of its memory;
and how soon a change leads to a request. With --nodes: how long a job stands still when a machine vanishes. With --running N: what N running
jobs take, with their coordinators.

Called by tools/bench operator. Without --nodes the cluster is the API tier of tests/cluster: no kubelet, so the API server is all there
is to wait for.
"""

import argparse
import json
import os
import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests/cluster")]

import bench_nodes  # noqa: E402  (its folder is on the path only now)
import bench_page  # noqa: E402
import bench_running  # noqa: E402
import cluster as clusters  # noqa: E402
import operator_rig  # noqa: E402
import processes  # noqa: E402
import rig  # noqa: E402

BIN = Path(os.environ["RINGMASTER_BIN"])
WORKERS = 8
PODS = WORKERS + 1  # and a coordinator
CALM, HARMED = 30, 60  # jobs that lose a pod one after the other, and while new jobs come
MORE = 100  # such new jobs
REACTIONS = "ringmaster_operator_change_to_request_seconds_bucket"


def plain_client(kubectl, pods, body):
    """Pods a second of kube_tool, which has 32 requests under way at any time."""
    text = kubectl.cluster.call(str(BIN.parent / "tests/kube_tool"), "many", str(pods), kubectl.namespace, stdin=json.dumps(body), timeout=600)
    answer = json.loads(text.splitlines()[-1])
    assert answer["failed"] == 0, text
    return answer["per_second"]


def resident_kib(pid):
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1])
    raise RuntimeError(f"no memory of process {pid}")


def apply_jobs(kubectl, prefix, count):
    kubectl("apply", "-f", "-", timeout=600, stdin="\n---\n".join(
        json.dumps(operator_rig.job(f"{prefix}{i}", {"min": 1, "max": WORKERS, "target": WORKERS})) for i in range(count)))


def until_pods(operator, wanted):
    """Asked seldom: to ask costs the machine that is measured."""
    until = time.monotonic() + 900
    while operator.metric("pods_created_total") < wanted:
        assert time.monotonic() < until, f"not {wanted} pods within 900 s"
        time.sleep(1)


def settle(operator):
    """Until nothing is under way any more."""
    def still():
        return operator.metric("jobs_in_work") == 0 and operator.metric("api_requests_waiting") == 0
    calm = 0
    until = time.monotonic() + 300
    while calm < 3:
        assert time.monotonic() < until, "the operator does not settle"
        calm = calm + 1 if still() else 0
        time.sleep(1)


class Round:
    """An operator that finds `jobs` new jobs at its start: pods a second from its first write to the answer to the last pod, requests and KiB a job.
    It goes on running, for more questions."""

    def __init__(self, kubectl, jobs):
        apply_jobs(kubectl, "job", jobs)
        empty = operator_rig.Operator(kubectl, "--no-lease", "--namespace", "nobody-lives-here")
        empty.until_logged("the caches are complete")
        before = resident_kib(empty.process.pid)
        empty.stop()
        self.operator = operator_rig.Operator(kubectl, "--no-lease", "--qps", "100000", "--burst", "100000", log="info")
        until_pods(self.operator, jobs * PODS)
        answer_s = self.operator.metric("api_request_seconds_sum") / self.operator.metric("api_request_seconds_count")
        settle(self.operator)
        self.kib = (resident_kib(self.operator.process.pid) - before) / jobs
        writes = [line["time"] for line in self.operator.lines() if line["message"] in ("try", "create", "write status of")]
        creates = [line["time"] for line in self.operator.lines("create") if line["resource"] == "pods"]
        self.rate = jobs * PODS / ((max(creates) - min(writes)) / 1000 + answer_s)
        self.requests = self.operator.metric("api_requests_total{verb=\"create\"") + self.operator.metric("api_requests_total{verb=\"update\"") \
            + self.operator.metric("api_requests_total{verb=\"patch\"")
        self.requests /= jobs


def some_pod(kubectl):
    """What the operator would make, for the plain client; its name is the server's business."""
    operator = operator_rig.Operator(kubectl, "--no-lease")
    kubectl.apply(operator_rig.job("model"))
    found = processes.until(lambda: kubectl.get("pods", "-l", "ringmaster.dev/role=worker"), "a pod", 120)[0]
    operator.stop()
    kubectl("delete", "trainingjob", "model")
    for field in ("nodeName", "serviceAccount", "serviceAccountName"):
        found["spec"].pop(field, None)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "plain-", "labels": {"bench": "plain"}}, "spec": found["spec"]}


def reactions(operator):
    """The histogram as a list of (bound in ms, reactions up to it)."""
    found = []
    for line in operator.get("/metrics")[1].splitlines():
        if line.startswith(REACTIONS) and "+Inf" not in line:
            found.append((float(line.split('"')[1]) * 1000, int(line.split()[-1])))
    return found


def share_below(before, after, share):
    """The bound in ms that this share of what came between two readings stayed below."""
    total = after[-1][1] - before[-1][1]
    assert total > 0, "nothing was reacted to"
    return next(bound for (bound, now), (_, then) in zip(after, before) if now - then >= share * total)


def reaction_times(kubectl, operator):
    """From a watch's word of a change to the request: median and 99 %, calm and while new jobs come."""
    workers = {pod["metadata"]["labels"]["ringmaster.dev/job"]: pod["metadata"]["name"]
               for pod in kubectl.get("pods", "-l", "ringmaster.dev/role=worker")}
    names = sorted(workers.values())[:CALM + HARMED]
    start = reactions(operator)
    for name in names[:CALM]:
        kubectl("delete", "pod", name, "--grace-period=0", "--force")
    settle(operator)
    calm = reactions(operator)
    made = operator.metric("pods_created_total")
    apply_jobs(kubectl, "more", MORE)
    kubectl("delete", "pods", *names[CALM:], "--grace-period=0", "--force", "--wait=false", timeout=300)
    until_pods(operator, made + MORE * PODS + len(names[CALM:]))
    loaded = reactions(operator)
    return [[share_below(a, b, share) for share in (0.5, 0.99)] for a, b in ((start, calm), (calm, loaded))]


def measure(cluster, jobs, rounds):
    everywhere = rig.Kubectl(cluster)
    everywhere("apply", "-f", str(operator_rig.CRD))
    everywhere.until_served()
    body = some_pod(rig.make_namespace(cluster, "model"))
    plain, ours = [], []
    for number in range(rounds):
        plain.append(plain_client(rig.make_namespace(cluster, f"plain{number}"), jobs * PODS, body))
        kubectl = rig.make_namespace(cluster, f"round{number}")
        ours.append(Round(kubectl, jobs))
        if number < rounds - 1:
            ours[-1].operator.stop()
    times = reaction_times(kubectl, ours[-1].operator)
    ours[-1].operator.stop()
    return plain, ours, times


def table(jobs, rounds, plain, ours, times):
    rate, best = max(each.rate for each in ours), max(plain)
    pairs = ", ".join(f"{100 * our.rate / their:.0f} %" for our, their in zip(ours, plain))
    calm, loaded = times
    return [f"{jobs} jobs of {WORKERS} workers at one API server, best of {rounds}, in turns (each turn's share: {pairs}):", "",
            "| | |", "|---|---|",
            f"| pods a second, a client that does nothing but create pods | {best:.0f} |",
            f"| pods a second, the operator | {rate:.0f} |",
            f"| the operator's share | {100 * rate / best:.0f} % |",
            f"| writes a job, pods included | {statistics.mean(each.requests for each in ours):.1f} |",
            f"| the operator's memory a job | {min(each.kib for each in ours):.0f} KiB |",
            f"| from a watch's word to the request, calm: half, 99 % within | {calm[0]:g} ms, {calm[1]:g} ms |",
            f"| the same while {MORE} new jobs come | {loaded[0]:g} ms, {loaded[1]:g} ms |"]


def show(name, options, lines, write):
    lines = [f"`tools/bench operator{options}` on {bench_page.machine()}:", "", *lines]
    print("\n".join(lines))
    if write:
        bench_page.write_section(name, lines)


def main():
    parser = argparse.ArgumentParser(prog="tools/bench operator")
    parser.add_argument("--jobs", type=int, default=300, help="at least 40")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--nodes", action="store_true", help="machines that vanish, on the node tier, instead")
    parser.add_argument("--running", type=int, metavar="N", help="what an operator takes that comes to N running jobs, instead")
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="put the result into docs/benchmarks.md")
    arguments = parser.parse_args()
    if arguments.running:
        show("running", f" --running {arguments.running}", bench_running.table(arguments.running), arguments.write)
        return
    cluster = clusters.Cluster(f"bench{os.getpid()}")
    rig.bring_up(cluster, 3 if arguments.nodes else 0, tied=True)
    try:
        if arguments.nodes:
            name, lines = "nodes", bench_nodes.measure(cluster, arguments.kills)
        else:
            name, lines = "operator", table(arguments.jobs, arguments.rounds, *measure(cluster, arguments.jobs, arguments.rounds))
    finally:
        cluster.down()
    show(name, " --nodes" if arguments.nodes else "", lines, arguments.write)


if __name__ == "__main__":
    main()
