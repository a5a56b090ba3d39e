"""How fast the operator makes pods, beside a client that does nothing else, on one API server; each in turn, best of several.

Called by tools/bench operator. The cluster is the API tier of tests/cluster: no kubelet, so the API server is all there is to wait for.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/cluster"))

import cluster as clusters  # noqa: E402  (its folder is on the path only now)
import operator_rig  # noqa: E402
import processes  # noqa: E402
import rig  # noqa: E402

BIN = Path(os.environ["RINGMASTER_BIN"])
WORKERS = 8


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


def operator_round(kubectl, jobs):
    """Pods a second of an operator that finds `jobs` new jobs at its start, from its first write to its last pod; KiB a job."""
    names = [f"job{i}" for i in range(jobs)]
    kubectl.apply(*[operator_rig.job(name, {"min": 1, "max": WORKERS, "target": WORKERS}) for name in names])
    empty = operator_rig.Operator(kubectl, "--no-lease", "--namespace", "nobody-lives-here")
    empty.until_logged("the caches are complete")
    before = resident_kib(empty.process.pid)
    empty.stop()
    operator = operator_rig.Operator(kubectl, "--no-lease", "--qps", "100000", "--burst", "100000", log="info")
    wanted = jobs * (WORKERS + 1)
    until = time.monotonic() + 900
    while operator.metric("pods_created_total") < wanted:  # seldom: to ask costs the machine that is measured
        assert time.monotonic() < until, f"not {wanted} pods within 900 s"
        time.sleep(1)
    processes.until(lambda: len(kubectl.get("pods")) == wanted, "all of them on the server", 120)
    after = resident_kib(operator.process.pid)
    writes = [line["time"] for line in operator.lines("try")]
    creates = [line["time"] for line in operator.lines("create") if line["resource"] == "pods"]
    operator.stop()
    return wanted / ((max(creates) - min(writes)) / 1000), (after - before) / jobs


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


def measure(cluster, jobs, rounds):
    everywhere = rig.Kubectl(cluster)
    everywhere("apply", "-f", str(operator_rig.CRD))
    everywhere.until(lambda found: any(each["type"] == "Established" and each["status"] == "True"
                                       for each in found.get("status", {}).get("conditions") or []),
                     "TrainingJobs are known", "crd", "trainingjobs.ringmaster.dev")
    plain, ours, memory = [], [], []
    for number in range(rounds):
        kubectl = rig.Kubectl(cluster, f"round{number}")
        everywhere("create", "namespace", kubectl.namespace)
        processes.until(lambda k=kubectl: k.exists("serviceaccount", "default"), "the ServiceAccount")
        body = some_pod(kubectl)
        plain.append(plain_client(kubectl, jobs * (WORKERS + 1), body))
        kubectl("delete", "pods", "--all", "--grace-period=0", "--force")
        rate, kib = operator_round(kubectl, jobs)
        ours.append(rate)
        memory.append(kib)
        everywhere("delete", "namespace", kubectl.namespace, "--wait=false")
    return max(plain), max(ours), min(memory)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    cluster = clusters.Cluster(f"bench{os.getpid()}")
    rig.bring_up(cluster, 0, tied=True)
    try:
        plain, ours, kib = measure(cluster, arguments.jobs, arguments.rounds)
    finally:
        cluster.down()
    print(f"{arguments.jobs} jobs of {WORKERS} workers at one API server, best of {arguments.rounds}, each in turn:\n")
    print("| | |\n|---|---|")
    print(f"| pods a second, a client that does nothing but create pods | {plain:.0f} |")
    print(f"| pods a second, the operator (with ConfigMap, Secret, Service, budget, policies, status) | {ours:.0f} |")
    print(f"| the operator's share | {100 * ours / plain:.0f} % |")
    print(f"| memory a job | {kib:.0f} KiB |")


if __name__ == "__main__":
    main()
