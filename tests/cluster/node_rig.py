"""Whole jobs on the node tier: the operator as its chart installs it, an object store as a pod, TrainingJobs that are watched and harmed."""

import datetime
import hashlib
import json

import images
import processes
import rig
from addresses import host
from cluster import ROOT

SYSTEM = "ringmaster-system"
CHART = ROOT / "charts/ringmaster"
RESTRICTED = "pod-security.kubernetes.io/enforce=restricted"
DATA = "file:///usr/share/ringmaster/quickstart/text"  # in the worker image
DEADLINE_S = 600
POLL_S = 0.2
STORE_KEYS = {"access": "AKIATEST", "secret": "only-for-tests"}

POD_SECURITY = {"runAsNonRoot": True, "runAsUser": 65532, "runAsGroup": 65532, "fsGroup": 65532, "seccompProfile": {"type": "RuntimeDefault"}}
CONTAINER_SECURITY = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": True}
SMALL = {"requests": {"cpu": "20m", "memory": "64Mi"}}
# As slow on an idle machine as on a busy one, so that a job doesn't end before all of its faults have come.
SLOW = {**SMALL, "limits": {"cpu": "100m"}}
SPREAD = {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway",
                                         "labelSelector": {"matchLabels": {"ringmaster.dev/role": "worker"}}}]}


def container(name, image, **more):
    return {"name": name, "image": image, "imagePullPolicy": "Never", "securityContext": CONTAINER_SECURITY, "resources": SMALL, **more}


def install_operator(cluster, operator=images.OPERATOR, worker=images.WORKER, more=None):
    """The chart, as `helm install` or an upgrade leaves it, in a namespace that enforces the restricted standard; returns when all of it is ready.
    more: further values."""
    restricted_namespace(cluster, SYSTEM)
    values = {"image.operator": operator, "image.worker": worker, "image.pullPolicy": "Never", **(more or {})}
    cluster.call("helm", "upgrade", "--install", "ringmaster", str(CHART), "--namespace", SYSTEM, "--wait", "--timeout", "300s",
                 *(word for name, value in values.items() for word in ("--set", f"{name}={value}")), timeout=320)
    rig.Kubectl(cluster).until_served()


def restricted_namespace(cluster, name):
    """kubectl in a namespace that enforces the restricted standard; it may be there already."""
    kubectl = rig.make_namespace(cluster, name, anew=False)
    kubectl("label", "namespace", name, RESTRICTED, "--overwrite")
    return kubectl


def install_store(kubectl, node=1):
    """versitygw as a pod with the bucket `jobs`, a Service, and a Secret with what opens it. It stays on one node."""
    secret = {"AWS_ACCESS_KEY_ID": STORE_KEYS["access"], "AWS_SECRET_ACCESS_KEY": STORE_KEYS["secret"], "AWS_REGION": "us-east-1"}
    root = {"ROOT_ACCESS_KEY": STORE_KEYS["access"], "ROOT_SECRET_KEY": STORE_KEYS["secret"]}
    mounts = [{"name": "data", "mountPath": "/data"}]
    kubectl.apply(
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "store"}, "stringData": secret},
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "store"}, "spec": {"selector": {"app": "store"}, "ports": [{"port": 7070}]}},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "store", "labels": {"app": "store"}},
         "spec": {"nodeName": f"node-{node}", "securityContext": POD_SECURITY, "terminationGracePeriodSeconds": 1,
                  "automountServiceAccountToken": False, "volumes": [{"name": "data", "emptyDir": {}}],
                  "tolerations": [{"operator": "Exists"}],
                  "initContainers": [container("bucket", images.WORKER, command=["mkdir", "-p", "/data/jobs"], volumeMounts=mounts)],
                  "containers": [container("versitygw", images.STORE, args=["--port", ":7070", "posix", "/data"], volumeMounts=mounts,
                                           env=[{"name": name, "value": value} for name, value in root.items()],
                                           readinessProbe={"tcpSocket": {"port": 7070}, "periodSeconds": 1})]}})
    kubectl.until_condition("Ready", "pod", "store")


def a_place(cluster, values=None):
    """For a fixture: kubectl in a restricted namespace with an object store, while the operator is there, installed with those values of the chart."""
    install_operator(cluster, more=values)
    kubectl = restricted_namespace(cluster, "jobs")
    install_store(kubectl)
    yield kubectl
    rig.Kubectl(cluster)("delete", "namespace", "jobs", "--wait=true", timeout=300)


def mark_of(request):
    """Of the test, to name objects by that no other test's are called: a job goes on from the checkpoints of one of its name."""
    return hashlib.sha256(request.node.name.encode()).hexdigest()[:8]


def trainer(steps):
    """What is trained, the same in a TrainingJob and in a file for `ringmaster run`: one thread, and steps long enough that most of
    their time is arithmetic."""
    return {"model": {"layers": 4, "heads": 4, "width": 64, "context": 64}, "data": {"uri": DATA, "format": "Text"},
            "batch": {"lanes": 8, "laneSequences": 2}, "optimizer": {"learningRate": 0.003, "warmupSteps": 20},
            "steps": steps, "threads": 1}


def local_job(name, steps):
    checkpoint = {"uri": f"s3://jobs/{name}", "endpoint": "http://store:7070", "everySteps": 500}
    return {"apiVersion": "ringmaster.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": name},
            "spec": {"workers": {"target": 3, "min": 1, "max": 5}, "trainer": trainer(steps), "checkpoint": checkpoint}}


def training_job(name, steps, workers=None, pod=None, **more):
    job = local_job(name, steps)
    spec = job["spec"]
    spec["workers"].update(workers or {})
    spec["workers"]["template"] = {"spec": {"terminationGracePeriodSeconds": 30,
                                            "containers": [container("trainer", images.WORKER, resources=SLOW)], **(pod or {})}}
    spec["coordinator"] = {"template": {"spec": {"terminationGracePeriodSeconds": 40,
                                                 "containers": [container("coordinator", images.WORKER)]}}}
    spec["checkpoint"]["secretRef"] = {"name": "store"}
    spec["elasticity"] = {"lostAfter": "10s", "joinWindow": "10s"}
    spec.update(more)
    return job


def prefer_node(number):
    """What a pod's spec has beside the rest, so that it is put on that node while there is one."""
    term = {"weight": 100, "preference": {"matchExpressions": [{"key": "ringmaster.test/node", "operator": "In", "values": [str(number)]}]}}
    return {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}}


def coordinator_on(number):
    """The coordinator of a job, which is put on that node while there is one."""
    pod = training_job("x", 1)["spec"]["coordinator"]["template"]["spec"]
    return {"template": {"spec": {**pod, **prefer_node(number)}}}


def run_locally(kubectl, steps, name="alone", node=1):
    """`ringmaster run` of the same training in one pod of the same image; returns its last event."""
    return run_file(kubectl, name, json.dumps(local_job(name, steps)), "store", node)


def run_file(kubectl, name, text, secret, node=1):
    """`ringmaster run` of a job file in a pod of the worker image, with the credentials of that Secret; returns its last event."""
    return run_events(kubectl, name, text, secret, node)[-1]


def run_events(kubectl, name, text, secret, node=1, arguments=()):
    """All events of such a run."""
    mounts = [{"name": "job", "mountPath": "/job"}, {"name": "tmp", "mountPath": "/tmp"}]
    kubectl.apply(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"job.yaml": text}},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
         "spec": {"nodeName": f"node-{node}", "restartPolicy": "Never", "securityContext": POD_SECURITY, "terminationGracePeriodSeconds": 1,
                  "automountServiceAccountToken": False,
                  "volumes": [{"name": "job", "configMap": {"name": name}}, {"name": "tmp", "emptyDir": {}}],
                  "containers": [container("run", images.WORKER, command=["/usr/bin/ringmaster", "run", "/job/job.yaml", "--output", "json", *arguments],
                                           envFrom=[{"secretRef": {"name": secret}}], volumeMounts=mounts)]}})
    ended = kubectl.until(lambda pod: pod["status"].get("phase") in ("Succeeded", "Failed") and pod, "the end of `ringmaster run`", "pod", name,
                          seconds=3 * DEADLINE_S)  # beside trainings and other tools on the same processors
    said = kubectl("logs", name)
    assert ended["status"]["phase"] == "Succeeded", said[-3000:]
    return [json.loads(line) for line in said.splitlines() if line.startswith("{")]


def check_time(status):
    """The classes of a job's time come to all of it, whoever coordinated it; instants are told in whole seconds."""
    begun, ended = (datetime.datetime.fromisoformat(status[name].replace("Z", "+00:00")) for name in ("startTime", "completionTime"))
    wall = (ended - begun).total_seconds()
    accounted = sum(seconds for name, seconds in status["goodput"].items() if name.endswith("Seconds"))
    assert abs(accounted - wall) <= max(1, 0.01 * wall), (accounted, wall, status["goodput"])


class Training:
    """One TrainingJob under way: what the API and its coordinator say of it, waited for."""

    def __init__(self, kubectl, job):
        """job: the object, which is applied; or the name of one that is there already."""
        self.kubectl = kubectl
        self.name = job if isinstance(job, str) else job["metadata"]["name"]
        if not isinstance(job, str):
            kubectl.apply(job)

    def object(self):
        return self.kubectl.get("trainingjob", self.name)

    def status(self):
        return self.object().get("status", {})

    def condition(self, kind):
        found = [c for c in self.status().get("conditions", []) if c["type"] == kind]
        return found[0]["status"] if found else None

    def pods(self, role):
        """Those that don't end, oldest first."""
        items = self.kubectl.get("pods", "-l", f"ringmaster.dev/job={self.name},ringmaster.dev/role={role}")
        alive = [p for p in items if "deletionTimestamp" not in p["metadata"] and p["status"].get("phase") in ("Pending", "Running")]
        return sorted(alive, key=lambda p: p["metadata"]["creationTimestamp"])

    def workers(self):
        return self.pods("worker")

    def node_of(self, pod):
        return int(self.kubectl.get("pod", pod)["spec"]["nodeName"].rpartition("-")[2])

    def coordinator_says(self):
        """Its GET /v1/status, or None where there is none that answers."""
        for pod in reversed(self.pods("coordinator")):
            address = pod["status"].get("podIP")
            if not address:
                continue
            try:
                return json.loads(self.kubectl.cluster.call("curl", "-sf", "-m", "10", f"http://{host(address)}:7070/v1/status"))
            except (RuntimeError, ValueError):
                continue
        return None

    def until(self, condition, what, seconds=DEADLINE_S):
        """Until condition(the coordinator's status) holds; returns that status. A job that ends meanwhile is no success."""
        def holds():
            said = self.coordinator_says()
            if said and condition(said):
                return said
            if self.condition("Finished") == "True":
                raise AssertionError(f"the job ended before: {what}: {self.story()}")
            return None
        try:
            return processes.until(holds, what, seconds)
        except TimeoutError as late:
            raise AssertionError(f"{late}\n{self.story()}") from None

    def until_step(self, step):
        return self.until(lambda said: said["state"] == "Training" and said["progress"]["step"] >= step, f"step {step}")

    def until_ring_of(self, size, beyond=0):
        """A ring of that size that trains, of a generation above `beyond`."""
        return self.until(lambda said: said["state"] == "Training" and said["ring"]["size"] == size and said["ring"]["generation"] > beyond,
                          f"a ring of {size} beyond generation {beyond}")

    def finish(self, seconds=DEADLINE_S):
        """Waits for Finished; returns the status."""
        try:
            processes.until(lambda: self.condition("Finished") == "True", f"{self.name} finished", seconds)
        except TimeoutError as late:
            raise AssertionError(f"{late}\n{self.story()}") from None
        assert self.condition("Complete") == "True", self.story()
        return self.status()

    def events(self):
        return [event["reason"] for event in self.kubectl.get("events.events.k8s.io")
                if event.get("regarding", {}).get("name") == self.name]

    def story(self):
        """What one wants to see of a test that failed."""
        pods = self.kubectl("get", "pods", "-o", "wide")
        events = self.kubectl("get", "events", "--sort-by=.metadata.creationTimestamp")
        return f"{json.dumps(self.status(), indent=1)[-5000:]}\n{pods}\n{events[-5000:]}"


def name_of(pod):
    return pod["metadata"]["name"]


def a_worker(training, away_from=()):
    """The newest worker that isn't on those nodes."""
    found = [pod for pod in training.workers() if pod["spec"].get("nodeName") not in {f"node-{n}" for n in away_from}]
    assert found, training.story()
    return found[-1]


def next_ring(training, size, before):
    """The ring that comes after what the coordinator said before, and that it went on: a step later. Leaves cost no step."""
    said = training.until_ring_of(size, beyond=before["ring"]["generation"])
    assert said["stepsRedone"]["announced"] == 0, said
    return training.until_step(said["progress"]["step"] + 1)


def hurry(training):
    """Nothing is to come: the workers get processor time for what is left."""
    fast = json.dumps({"spec": {"containers": [{"name": "trainer", "resources": {"limits": {"cpu": "1"}}}]}})
    for pod in training.workers():
        training.kubectl("patch", "pod", name_of(pod), "--subresource=resize", "-p", fast)
