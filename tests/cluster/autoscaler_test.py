"""deploy/examples/hpa.yaml with Kubernetes' own HPA controller: from the operator's metrics by Prometheus and the docs' rule of an adapter to the scale
of a TrainingJob, which the operator follows. The test plays kubelets and coordinator."""

import base64
import json
import re
import sys
from pathlib import Path

import cluster as clusters
import operator_rig as stage_rig
import pki
import processes
import prometheus
import pytest
import yaml

HERE = Path(__file__).resolve().parent
EXAMPLE = stage_rig.ROOT / "deploy/examples/hpa.yaml"
METRIC = "ringmaster_operator_job_workers_needed"
GROUP = "/apis/external.metrics.k8s.io/v1beta1"
CONTROLLER = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"
COORDINATOR_PORT, ADAPTER_PORT = 7171, 7172


def rules():
    """The adapter's configuration as docs/kubernetes.md shows it."""
    (found,) = re.findall(r"```yaml\n(externalRules:\n.*?)```", (stage_rig.ROOT / "docs/kubernetes.md").read_text(encoding="utf-8"), re.DOTALL)
    return yaml.safe_load(found)["externalRules"]


class Adapter:
    """adapter.py in the cluster's network, behind a Service and an APIService, as an adapter's chart makes them."""

    NAME = "v1beta1.external.metrics.k8s.io"

    def __init__(self, kubectl, folder, server):
        self.kubectl, self.log, self.folder, self.server = kubectl, folder / "adapter.log", folder, server

    def start(self):
        kubectl = self.kubectl
        self.log.touch()
        authority = pki.Authority(kubectl.cluster.pki, clusters.SERVER)
        authority.sign("adapter", "/CN=adapter", "serverAuth", f"DNS:adapter.{kubectl.namespace}.svc")
        settings = {"address": clusters.API, "port": ADAPTER_PORT, "pki": str(kubectl.cluster.pki), "prometheus": self.server.address, "rules": rules(),
                    "log": str(self.log)}
        (self.folder / "adapter.json").write_text(json.dumps(settings), encoding="utf-8")
        kubectl.cluster.start("adapter", [sys.executable, str(HERE / "adapter.py"), str(self.folder / "adapter.json")])
        kubectl.apply(*self.objects())
        kubectl.until_condition("Available", "apiservice", self.NAME)

    def objects(self):
        port = {"name": "https", "port": ADAPTER_PORT}
        service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "adapter"}, "spec": {"ports": [{"name": "https", "port": 443}]}}
        behind = {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4", "ports": [port],
                  "metadata": {"name": "adapter", "labels": {"kubernetes.io/service-name": "adapter"}}, "endpoints": [{"addresses": [clusters.API]}]}
        trust = base64.b64encode((self.kubectl.cluster.pki / "ca.crt").read_bytes()).decode()
        registered = {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": self.NAME}, "spec": {
            "group": "external.metrics.k8s.io", "version": "v1beta1", "groupPriorityMinimum": 100, "versionPriority": 100, "caBundle": trust,
            "service": {"name": "adapter", "namespace": self.kubectl.namespace, "port": 443}}}
        return service, behind, registered

    def values(self, namespace, job):
        """As `kubectl get --raw` shows what an HPA of that namespace gets."""
        said = json.loads(self.kubectl("get", "--raw", f"{GROUP}/namespaces/{namespace}/{METRIC}?labelSelector=training_job%3D{job}"))
        return [item["value"] for item in said["items"]]

    def lines(self):
        return [json.loads(line) for line in self.log.read_text(encoding="utf-8").splitlines()]

    def stop(self):
        """Without it, and registered, nobody could end a namespace: whatever is in one is asked for first."""
        self.kubectl("delete", "apiservice", self.NAME, "--ignore-not-found")
        self.kubectl.cluster.stop("adapter")


@pytest.fixture(name="operator")
def fixture_operator(stage):
    return stage.operator("--no-lease", "--worker-image", "ours:1", "--coordinator-port", str(COORDINATOR_PORT))


@pytest.fixture(name="adapter")
def fixture_adapter(stage, operator, tmp_path):
    """Prometheus scrapes the operator with the labels of the chart's ServiceMonitor, whose namespace is not the job's."""
    prometheus.install()
    target = {"targets": [f"127.0.0.1:{operator.until_logged('listening')['port']}"],
              "labels": {"namespace": "ringmaster-system", "pod": "ringmaster-operator-0"}}
    server = prometheus.Prometheus(tmp_path / "prometheus", [{"job_name": "ringmaster", "static_configs": [target]}],
                                   enter=stage.kubectl.cluster.enter())
    adapter = Adapter(stage.kubectl, tmp_path, server)
    try:
        adapter.start()
        yield adapter
    finally:
        adapter.stop()
        server.stop()


@pytest.fixture(name="coordinator")
def fixture_coordinator(stage, tmp_path):
    coordinator = stage_rig.PlayedCoordinator(stage, "gpt-hpa", tmp_path / "coordinator", COORDINATOR_PORT)
    yield coordinator
    coordinator.stop()


def until_workers(stage, count):
    """So many are wanted by whoever scales, and are there and run."""
    processes.until(lambda: stage.job("gpt-hpa")["spec"]["workers"]["target"] == count, f"{count} workers wanted", 120)
    for name, pod in stage.until_pods("worker", count).items():
        if pod["status"].get("phase") != "Running":
            stage.run_pod(name)
    processes.until(lambda: stage.job("gpt-hpa")["status"]["workers"]["ready"] == count, f"{count} ready workers", 120)


def test_the_hpa_of_the_examples_gives_a_job_as_many_workers_as_its_deadline_needs(stage, adapter, coordinator):
    """Of 12 lanes, two days less a tenth: 155,520 s. Two workers with six each take 250,000: three each are in time, so four workers. When the rest takes
    those 90,000, four lanes each are in time, a tenth to spare: three workers."""
    stage.kubectl.apply(EXAMPLE.read_text(encoding="utf-8"))
    (name,) = stage.until_pods("coordinator", 1)
    stage.until_pods("worker", 2)
    coordinator.says(range(2))
    stage.run_pod(name)
    until_workers(stage, 2)
    assert adapter.values(stage.kubectl.namespace, "gpt-hpa") == [], "no step was made yet"
    coordinator.says(range(2), 250000)
    until_workers(stage, 4)
    coordinator.says(range(4), 90000)
    until_workers(stage, 3)
    assert adapter.values(stage.kubectl.namespace, "gpt-hpa") == ["3"]
    assert adapter.values("default", "gpt-hpa") == adapter.values(stage.kubectl.namespace, "other") == [], "it is this job's of this namespace"
    asked = {(line["query"], line["user"]) for line in adapter.lines() if line["values"]}
    wanted = f'max by (training_job) (last_over_time({METRIC}{{training_job="gpt-hpa",training_job_namespace="{stage.kubectl.namespace}"}}[5m]))'
    assert (wanted, CONTROLLER) in asked, asked
    stage.kubectl.until_condition("ScalingActive", "hpa", "gpt-hpa")
    reasons = [event["reason"] for event in stage.kubectl.get("events.events.k8s.io") if event["regarding"]["kind"] == "HorizontalPodAutoscaler"]
    assert reasons.count("SuccessfulRescale") == 2, reasons
