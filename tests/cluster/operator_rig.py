"""An operator of this tree's build beside a test cluster's API server, and who plays the kubelet and the coordinator for it."""

import collections
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import control_plane
import processes

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(os.environ.get("RINGMASTER_BIN", ROOT / "build/test/bin"))
CRD = ROOT / "crds/trainingjob.yaml"

SHA = "5f2b" * 16


def job(name, workers=None, **spec):
    """A TrainingJob that the operator takes."""
    template = {"spec": {"containers": [{"name": "trainer", "image": "worker:1"}]}}
    return {"apiVersion": "ringmaster.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": name},
            "spec": {"workers": {"min": 2, "max": 4, "target": 3, "template": template, **(workers or {})},
                     "trainer": {"model": {"layers": 2, "heads": 2, "width": 32, "context": 32}, "data": {"uri": "s3://bucket/data"}, "steps": 100},
                     "checkpoint": {"uri": "s3://bucket/run", "secretRef": {"name": "credentials"}}, **spec}}


def program_job(name, **spec):
    """One that runs a program of its own."""
    made = job(name, launch={"command": ["sh", "-c", "train"], "mode": "Restart"}, **spec)
    del made["spec"]["trainer"], made["spec"]["checkpoint"]
    return made


class Operator:
    """One replica, looking after one namespace or all. Its log is kept in `log`."""

    def __init__(self, kubectl, *arguments, fault=None, kubeconfig=None, log="debug", everywhere=False):
        cluster = kubectl.cluster
        assert (BIN / "ringmaster-operator").exists(), f"no operator in {BIN}: build first"
        number = sum(1 for _ in cluster.logs.glob("operator-*.log"))
        self.log_path = cluster.logs / f"operator-{number}.log"
        environment = {**cluster.environment(), "KUBECONFIG": str(kubeconfig or cluster.kubeconfig), "RINGMASTER_LOG": log}
        if fault:
            environment["RINGMASTER_FAULT"] = fault
        with open(self.log_path, "wb") as output:
            scope = [] if everywhere else ["--namespace", kubectl.namespace]
            self.process = subprocess.Popen([*cluster.enter(), str(BIN / "ringmaster-operator"), *scope, "--port", "0",
                                             "--lease-namespace", kubectl.namespace, *arguments], stdout=output, stderr=output, env=environment,
                                            preexec_fn=processes.die_with_parent)
        self.cluster = cluster

    def lines(self, message=None):
        """What it has logged, as dictionaries; a line that is no JSON is a fault point's."""
        text = self.log_path.read_text(encoding="utf-8")
        found = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
        return [line for line in found if message in (None, line["message"])]

    def until_logged(self, message, **pairs):
        def matches():
            if self.process.poll() is not None and not self.lines(message):
                raise RuntimeError(f"the operator has ended with {self.process.returncode}: {self.log_path.read_text(encoding='utf-8')[-2000:]}")
            return next((line for line in self.lines(message) if pairs.items() <= line.items()), None)
        return processes.until(matches, f'"{message}" in {self.log_path}', 120)

    def get(self, path, accept="*/*"):
        """The answer of its HTTP server: (status, body)."""
        port = self.until_logged("listening")["port"]
        text = self.cluster.call("curl", "-s", "-H", f"Accept: {accept}", "-w", "\n%{http_code}", f"http://127.0.0.1:{port}{path}")
        body, _, status = text.rpartition("\n")
        return int(status), body

    def metric(self, name):
        return sum(float(line.split()[-1]) for line in self.get("/metrics")[1].splitlines() if line.startswith(f"ringmaster_operator_{name}"))

    def counted(self, name, labels):
        """One sample, by its whole name and its labels; None where there is none."""
        found = [line for line in self.get("/metrics")[1].splitlines() if line.startswith(f"{name}{labels} ")]
        assert len(found) < 2, found
        return float(found[0].split()[-1]) if found else None

    def send(self, signo):
        self.process.send_signal(signo)

    def wait(self, seconds=120):
        return self.process.wait(seconds)

    def stop(self):
        """Told to end; returns its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
        return self.wait()

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


class PodHistory:
    """Every pod that is stored in a namespace from here on, as a watch tells. (The audit log calls a creation a timeout if its client was gone
    when the pod had been stored.)"""

    MARK = "the-end-of-history"

    def __init__(self, kubectl):
        self.kubectl = kubectl
        pods = f"/api/v1/namespaces/{kubectl.namespace}/pods"
        version = json.loads(kubectl("get", "--raw", pods))["metadata"]["resourceVersion"]
        self.path = kubectl.cluster.logs / f"pods-{kubectl.namespace}.jsonl"
        with open(self.path, "wb") as output:
            self.process = subprocess.Popen([*kubectl.cluster.enter(), "kubectl", "get", "--raw", f"{pods}?watch=1&resourceVersion={version}"],
                                            stdout=output, env=kubectl.cluster.environment(), preexec_fn=processes.die_with_parent)

    def creations(self):
        """Names by how many pods had them. What the test creates now comes after all that there is to tell."""
        self.kubectl.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": self.MARK},
                            "spec": {"containers": [{"name": "none", "image": "none:1"}]}})
        told = processes.until(lambda: (found := self._told()) and self.MARK in found and found, "the watch tells of the last pod", 120)
        del told[self.MARK]
        return told

    def newest(self):
        """Each of them as it was told last, also those that are gone."""
        return list({event["object"]["metadata"]["uid"]: event["object"] for event in self._events()}.values())

    def _told(self):
        return collections.Counter(event["object"]["metadata"]["name"] for event in self._events() if event["type"] == "ADDED")

    def _events(self):
        """What has been told in whole lines."""
        for line in self.path.read_text(encoding="utf-8").splitlines(keepends=True):
            if line.endswith("\n"):
                event = json.loads(line)
                assert event["type"] != "ERROR", line
                yield event

    def close(self):
        self.process.kill()
        self.process.wait()


class Stage:
    """A namespace in which a test plays the kubelet."""

    def __init__(self, kubectl):
        self.kubectl = kubectl
        self.operators = []
        self.histories = []

    def history(self):
        self.histories.append(PodHistory(self.kubectl))
        return self.histories[-1]

    def operator(self, *arguments, **options):
        operator = Operator(self.kubectl, *arguments, **options)
        self.operators.append(operator)
        return operator

    def close(self):
        for operator in self.operators:
            operator.kill()
        for history in self.histories:
            history.close()

    def pods(self, role=None):
        """Those that don't end, by name."""
        items = self.kubectl.get("pods", "-l", f"ringmaster.dev/role={role}" if role else "ringmaster.dev/job")
        return {item["metadata"]["name"]: item for item in items if "deletionTimestamp" not in item["metadata"]}

    def until_pods(self, role, count):
        return processes.until(lambda: (found := self.pods(role)) and len(found) == count and found, f"{count} pods in the role {role}", 120)

    def indices(self):
        """Worker index -> attempts of its pods that don't end."""
        found = {}
        for item in self.pods("worker").values():
            labels = item["metadata"]["labels"]
            found.setdefault(int(labels["ringmaster.dev/worker"]), []).append(int(labels["ringmaster.dev/attempt"]))
        return found

    def run_pod(self, name, digest=None):
        """The pod runs and is ready; digest: of its images, as the kubelet tells it."""
        def image(made):
            return f"{made['image'].partition('@')[0].partition(':')[0]}@sha256:{digest}" if digest else ""
        spec = self.kubectl.get("pod", name)["spec"]
        (ours, *_) = spec["containers"]
        ended = {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": now(), "finishedAt": now()}}
        self.kubectl.create_status("pod", name, {
            "phase": "Running", "podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}],
            "conditions": [{"type": kind, "status": "True", "lastTransitionTime": now()} for kind in ("PodScheduled", "Ready", "ContainersReady")],
            "initContainerStatuses": [container(init["name"], ended, image(init)) for init in spec.get("initContainers", [])],
            "containerStatuses": [container(ours["name"], {"running": {"startedAt": now()}}, image(ours))]})

    def fail_init(self, name, code, word):
        """Its first init container has failed with that last word, and nothing else of it ran."""
        spec = self.kubectl.get("pod", name)["spec"]
        ended = {"terminated": {"exitCode": code, "reason": "Error", "message": json.dumps(word), "startedAt": now(), "finishedAt": now()}}
        self.kubectl.create_status("pod", name, {
            "phase": "Failed", "initContainerStatuses": [container(spec["initContainers"][0]["name"], ended)],
            "containerStatuses": [container(self.container_of(name), {"waiting": {"reason": "PodInitializing"}})]})

    def container_of(self, name):
        return self.kubectl.get("pod", name)["spec"]["containers"][0]["name"]

    def end_pod(self, name, code, message="", beside=None):
        """Its container has ended; `beside` is the state of another one in the pod."""
        state = {"terminated": {"exitCode": code, "reason": "Completed" if code == 0 else "Error", "message": message,
                                "startedAt": now(), "finishedAt": now()}}
        phase = "Running" if beside and "running" in beside else "Succeeded" if code == 0 else "Failed"
        others = [container("proxy", beside)] if beside else []
        self.kubectl.create_status("pod", name, {"phase": phase, "containerStatuses": [container(self.container_of(name), state), *others]})

    def end_proxy(self, name):
        """The other container of a running pod has ended: the pod is not Ready any more."""
        self.kubectl.create_status("pod", name, {
            "phase": "Running", "podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}],
            "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": now()},
                           *({"type": kind, "status": "False", "reason": "ContainersNotReady", "lastTransitionTime": now()}
                             for kind in ("Ready", "ContainersReady"))],
            "containerStatuses": [container(self.container_of(name), {"running": {"startedAt": now()}}),
                                  container("proxy", {"terminated": {"exitCode": 1, "reason": "Error", "startedAt": now(), "finishedAt": now()}})]})

    def finish(self, name, code=0, reason="", beside=None):
        """The coordinator's last word about a job, and what the operator makes of it."""
        self.say_last_word(name, code, reason, beside)
        return processes.until(lambda: self.condition(name, "Finished") == "True", f"{name} Finished", 120)

    def end_program(self, name, result):
        """The coordinator's last word about a job that runs a program."""
        (coordinator,) = self.pods("coordinator")
        self.end_pod(coordinator, result["exitCode"], json.dumps(result))
        return processes.until(lambda: self.condition(name, "Finished") == "True", f"{name} Finished", 120)

    def say_last_word(self, name, code=0, reason="", beside=None):
        result = {"exitCode": code, "reason": reason, "step": 100, "loss": 2.5, "weightsSha256": SHA, "uri": "s3://bucket/run/step-00000100",
                  "interrupted": False}
        (coordinator,) = self.pods("coordinator")
        self.end_pod(coordinator, code, json.dumps(result), beside)

    def job(self, name):
        return self.kubectl.get("trainingjob", name)

    def condition(self, name, kind):
        conditions = self.job(name).get("status", {}).get("conditions", [])
        return next((each["status"] for each in conditions if each["type"] == kind), None)

    def until_message(self, name, words):
        return processes.until(lambda: words in (said := self.job(name).get("status", {}).get("message", "")) and said, f'"{words}" in the status', 120)

    def around(self):
        """Names of all that lies around the job's pods."""
        kinds = "configmaps,secrets,services,poddisruptionbudgets,networkpolicies"
        return sorted(f"{item['kind']}/{item['metadata']['name']}" for item in self.kubectl.get(kinds)
                      if item["metadata"].get("labels", {}).get("ringmaster.dev/job"))


class PlayedCoordinator:
    """What a coordinator says, by a file that is served in the cluster's network: who is in the ring, and how long the rest takes."""

    def __init__(self, stage, name, folder, port, address="127.0.0.1"):
        self.stage, self.name, self.page = stage, name, folder / "v1/status"
        self.revision, self.generation, self.members = 0, 0, None
        self.page.parent.mkdir(parents=True)
        stage.kubectl.cluster.start("coordinator", [sys.executable, "-m", "http.server", "--bind", address, "--directory", str(folder), str(port)])

    def says(self, ring, eta_s=None, events=()):
        """ring: indices of workers, each with the pod that it has now."""
        attempts = self.stage.indices()
        members = [{"worker": index, "attempt": attempts[index][-1]} for index in ring]
        self.revision += 1
        self.generation += members != self.members
        self.members = members
        uid = self.stage.job(self.name)["metadata"]["uid"]
        page = {"revision": self.revision, "job": f"{self.name}-{name_hash(uid, 'identity', '0/0')}", "term": 1,
                "state": "Training" if members else "Gathering",
                "ring": {"generation": self.generation, "size": len(members), "members": members}, "fenced": True,
                "workers": [{**member, "phase": "training", "rank": rank} for rank, member in enumerate(members)],
                "progress": {"step": 10, "steps": 5000, "etaSeconds": eta_s}, "events": list(events)}
        new = self.page.with_suffix(".new")
        new.write_text(json.dumps(page), encoding="utf-8")
        new.rename(self.page)

    def questions(self):
        """What stood behind the path of each, as far as it was asked."""
        log = (self.stage.kubectl.cluster.logs / "coordinator.log").read_text(encoding="utf-8", errors="replace")
        return re.findall(r'"GET /v1/status\??(\S*) HTTP', log)

    def stop(self):
        self.stage.kubectl.cluster.stop("coordinator")


def container(name, state, image=""):
    return {"name": name, "image": "worker:1", "imageID": image, "restartCount": 0, "ready": "running" in state, "started": "running" in state,
            "state": state}


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def name_hash(*parts):
    """The five letters of a name (operator/core/names.c), which anybody may work out."""
    state, letters = 0xcbf29ce484222325, "bcdfghjklmnpqrstvwxz2456789"
    for part in parts:
        for byte in part.encode() + b"\xff":
            state = (state ^ byte) * 0x100000001b3 % 2 ** 64
    bits = (state + 0x9e3779b97f4a7c15) % 2 ** 64
    for shift, factor in ((30, 0xbf58476d1ce4e5b9), (27, 0x94d049bb133111eb)):
        bits = (bits ^ bits >> shift) * factor % 2 ** 64
    bits ^= bits >> 31
    text = ""
    for _ in range(5):
        bits, rest = divmod(bits, len(letters))
        text += letters[rest]
    return text


def worker_name(job, index, attempt):
    """Of the pod of that attempt."""
    return f"{job['metadata']['name']}-w{index}-{name_hash(job['metadata']['uid'], 'worker', f'{index}/{attempt}')}"
