"""What Prometheus Operator would make of the chart's monitors, for a Prometheus that runs beside a test cluster.

The objects are applied, by the CRDs of Prometheus Operator, and read back: what the API server dropped counts for nothing. Of what it
makes of them, the rules that say whom to scrape and which labels the series bear are here. Debian builds Prometheus without the
discovery of Kubernetes, so pods and Services are told to it by a file, under the same names (`__meta_kubernetes_...`).
"""

import json
import re

import cluster as clusters
import node_rig
import rig

CRDS = clusters.CACHE / "src/prometheus-operator"
CHART = clusters.ROOT / "charts/ringmaster"


def install(cluster):
    """The chart's PodMonitor and ServiceMonitor in the cluster; returns them as the API server has them."""
    clusters.build("--tools")
    kubectl = rig.Kubectl(cluster, node_rig.SYSTEM)
    for kind in ("podmonitors", "servicemonitors"):
        kubectl("apply", "--server-side", "-f", str(CRDS / f"monitoring.coreos.com_{kind}.yaml"))
        kubectl.until_condition("Established", "crd", f"{kind}.monitoring.coreos.com")
    text = cluster.call("helm", "template", "ringmaster", str(CHART), "--namespace", node_rig.SYSTEM, "--kube-version", "1.36.0",
                        "--set", "metrics.podMonitor=true,metrics.serviceMonitor=true", "--show-only", "templates/monitors.yaml")
    made = json.loads(kubectl("apply", "--server-side", "--validate=strict", "-f", "-", "-o", "json", stdin=text))
    found = made["items"] if made["kind"] == "List" else [made]
    assert sorted(item["kind"] for item in found) == ["PodMonitor", "ServiceMonitor"]
    return found


def meta(*words):
    """The name under which discovery tells something."""
    return "__meta_kubernetes_" + "_".join(re.sub(r"\W", "_", word) for word in words)


def keep(source, value):
    return {"source_labels": [source], "regex": value, "action": "keep"}


def selected(kind, selector):
    for name, value in selector.get("matchLabels", {}).items():
        yield keep(meta(kind, "label", name), re.escape(value))
    for rule in selector.get("matchExpressions", []):
        assert rule["operator"] == "Exists", rule
        yield keep(meta(kind, "labelpresent", rule["key"]), "true")


def namespaces(monitor):
    """Those that it looks into; none is all."""
    where = monitor["spec"].get("namespaceSelector", {})
    return [] if where.get("any") else where.get("matchNames", [monitor["metadata"]["namespace"]])


def labels_of(kind, item):
    for name, value in item["metadata"].get("labels", {}).items():
        yield meta(kind, "label", name), value
        yield meta(kind, "labelpresent", name), "true"


def about_pod(pod):
    return {meta("namespace"): pod["metadata"]["namespace"], meta("pod", "name"): pod["metadata"]["name"],
            meta("pod", "phase"): pod["status"].get("phase", ""), **dict(labels_of("pod", pod))}


def targets_of_pods(pods):
    """As of the role `pod`: one for each port that a container names."""
    for pod in pods:
        for container in pod["spec"]["containers"]:
            for port in container.get("ports", []):
                if pod["status"].get("podIP"):
                    yield {"targets": [f"{pod['status']['podIP']}:{port['containerPort']}"],
                           "labels": {**about_pod(pod), meta("pod", "container_port_name"): port.get("name", "")}}


def targets_of_services(services, slices, pods):
    """As of the role `endpoints`: one for each address and port behind a Service."""
    by_name = {(item["metadata"]["namespace"], item["metadata"]["name"]): item for item in pods}
    for service in services:
        place, name = service["metadata"]["namespace"], service["metadata"]["name"]
        for part in slices:
            if part["metadata"]["namespace"] != place or part["metadata"].get("labels", {}).get("kubernetes.io/service-name") != name:
                continue
            for endpoint in part.get("endpoints") or []:
                pod = by_name.get((place, endpoint.get("targetRef", {}).get("name")))
                for port in part.get("ports") or []:
                    yield {"targets": [f"{endpoint['addresses'][0]}:{port['port']}"],
                           "labels": {meta("namespace"): place, **(about_pod(pod) if pod else {}), **dict(labels_of("service", service)),
                                      meta("endpoint", "port_name"): port.get("name", "")}}


class Discovery:
    """Files that tell a Prometheus what there is, as it was when refresh() was called."""

    def __init__(self, cluster, folder):
        self.kubectl = rig.Kubectl(cluster)
        self.folder = folder
        self.refresh()

    def path(self, kind):
        return self.folder / f"{kind}.json"

    def refresh(self):
        pods, services, slices = (self.kubectl.get(kind, "--all-namespaces") for kind in ("pods", "services", "endpointslices"))
        for kind, targets in (("pod", targets_of_pods(pods)), ("service", targets_of_services(services, slices, pods))):
            new = self.path(kind).with_suffix(".new")
            new.write_text(json.dumps(list(targets)))
            new.rename(self.path(kind))

    def scrapes(self, monitor):
        """One scrape_config for each endpoint of a monitor."""
        spec, kind = monitor["spec"], "pod" if monitor["kind"] == "PodMonitor" else "service"
        where = [keep(meta("namespace"), "|".join(namespaces(monitor)))] if namespaces(monitor) else []
        labels = [{"source_labels": [meta("namespace")], "target_label": "namespace"}, {"source_labels": [meta("pod", "name")], "target_label": "pod"}]
        labels += [{"source_labels": [meta("pod", "label", name)], "target_label": re.sub(r"\W", "_", name)} for name in spec.get("podTargetLabels", [])]
        for number, endpoint in enumerate(spec["podMetricsEndpoints" if kind == "pod" else "endpoints"]):
            port = meta("pod", "container_port_name") if kind == "pod" else meta("endpoint", "port_name")
            whom = [*where, *selected(kind, spec["selector"]), keep(port, endpoint["port"]),
                    {"source_labels": [meta("pod", "phase")], "regex": "Failed|Succeeded", "action": "drop"}]
            yield {"job_name": f"{monitor['metadata']['name']}/{number}", "metrics_path": endpoint["path"],
                   "file_sd_configs": [{"files": [str(self.path(kind))], "refresh_interval": "1s"}], "relabel_configs": whom + labels}
