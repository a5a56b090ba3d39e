"""Karpenter's own controllers on machines that kwok pretends: a control plane with all that belongs to one, NodePools, and machines that begin when a test says so.

What is real: Karpenter (provisioning, prices, consolidation, its taint, drain), the scheduler, Kubernetes' controllers. What is not: the machines. kwok says of
each that it is ready, of each pod that it runs and, when it is deleted, that it has ended; nothing runs, and nothing takes its grace."""

import contextlib
import json

import control_plane
import pki
import processes
from cluster import BIN, CACHE, SERVER

DISRUPTED = "karpenter.sh/disrupted"
POOL = "karpenter.sh/nodepool"
WARMING = "ringmaster.test/warming-up"  # a machine is not initialized before it goes, as with the taints of a CNI's DaemonSet
SILENCE_S = 40  # so long is the lease of kwok's machines
ANY_ADDRESS = "0.0.0.0"
TRIES = 6
PODS = "10.88.0.0/16"  # all of it is the cluster's own loopback: who answers on a port answers in the place of each pod

CAPACITY, TYPE = "karpenter.sh/capacity-type", "node.kubernetes.io/instance-type"
SPOT, ON_DEMAND = "spot", "on-demand"

# Name: (processors, {how it is to be had: price an hour}). Of the last two one is cheaper as spot, the other one on demand.
TYPES = {"test.dear": (6, {ON_DEMAND: 2.0}), "test.cheap": (6, {ON_DEMAND: 1.0}), "test.small": (2, {ON_DEMAND: 0.1}),
         "test.volatile": (6, {SPOT: 0.5, ON_DEMAND: 3.0}), "test.steady": (6, {SPOT: 0.9, ON_DEMAND: 1.5})}


def instance_types():
    """As Karpenter with kwok reads them (INSTANCE_TYPES_FILE_PATH)."""
    def offering(capacity, price):
        where = {CAPACITY: capacity, "topology.kubernetes.io/zone": "zone-a"}
        return {"Price": price, "Available": True, "Requirements": [{"key": key, "operator": "In", "values": [value]} for key, value in where.items()]}
    return [{"name": name, "architecture": "amd64", "operatingSystems": ["linux"], "offerings": [offering(*one) for one in offered.items()],
             "resources": {"cpu": str(cpu), "memory": "32Gi", "ephemeral-storage": "100Gi", "pods": "110"}} for name, (cpu, offered) in TYPES.items()]


def price_table(times=1):
    """The same prices, so many times as high, as the operator reads them (prices.csv)."""
    return "provider,region,zone,instance_type,capacity_type,price_per_hour,currency,valid_from\n" + "".join(
        f",,,{name},{capacity},{price * times:.2f},USD,\n" for name, (_, offered) in TYPES.items() for capacity, price in offered.items())


def start(cluster, folder):
    """All of it, in a cluster of the API tier that nobody else uses."""
    manifests = CACHE / "src"
    types = folder / "instance-types.json"
    types.write_text(json.dumps(instance_types()), encoding="ascii")
    plane = control_plane.ControlPlane(cluster, grace_s=SILENCE_S)
    cluster.stop("controllers")
    plane.start_controllers(nodes=True)
    pki.Authority(cluster.pki, SERVER).user("scheduler", "/CN=system:kube-scheduler")
    plane.start_scheduler()
    cluster.call("ip", "route", "add", "local", PODS, "dev", "lo")
    cluster.start("kwok", [str(BIN / "kwok"), f"--config={manifests}/kwok/kwok.yaml", f"--kubeconfig={cluster.kubeconfig}", f"--cidr={PODS}",
                           "--manage-all-nodes=false", "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
                           f"--node-lease-duration-seconds={SILENCE_S}"])
    cluster.call("kubectl", "apply", "--server-side", "-f", str(manifests / "karpenter/karpenter.yaml"))
    cluster.call("kubectl", "wait", "--for=condition=Established", "--timeout=60s", "-f", str(manifests / "karpenter/karpenter.yaml"))
    cluster.start("karpenter", ["env", f"INSTANCE_TYPES_FILE_PATH={types}", "SYSTEM_NAMESPACE=kube-system", "DISABLE_LEADER_ELECTION=true",
                                "KUBERNETES_MIN_VERSION=1.19.0-0", str(BIN / "karpenter")])


class Pool:
    """A NodePool of Karpenter's. Its machines hold one worker each, or a coordinator."""

    def __init__(self, kubectl, name, types, warms_up=False, capacities=(ON_DEMAND,)):
        self.kubectl, self.name, self.capacities = kubectl, name, list(capacities)
        template = {"expireAfter": "Never", "requirements": self.requirements(types),
                    "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": name}}
        if warms_up:
            template["startupTaints"] = [{"key": WARMING, "effect": "NoSchedule"}]
        kubectl.apply({"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": name}},
                      {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name}, "spec": {
                          "disruption": {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "0s", "budgets": [{"nodes": "1"}]},
                          "template": {"spec": template}}})

    def requirements(self, types):
        return [{"key": TYPE, "operator": "In", "values": types}, {"key": CAPACITY, "operator": "In", "values": self.capacities}]

    def offers(self, types):
        """From now on; who runs already stays what he is."""
        patch = {"spec": {"template": {"spec": {"requirements": self.requirements(types)}}}}
        self.kubectl("patch", "nodepool", self.name, "--type=merge", "-p", json.dumps(patch))

    def rests(self):
        """What Karpenter has proposed it goes on with, and proposes nothing more."""
        self.kubectl("patch", "nodepool", self.name, "--type=merge", "-p", json.dumps({"spec": {"disruption": {"consolidateAfter": "Never"}}}))

    def machines(self):
        """Its Nodes by name."""
        return {node["metadata"]["name"]: node for node in self.kubectl.get("nodes", "-l", f"{POOL}={self.name}")}

    def claims(self):
        """Its NodeClaims by name."""
        return {claim["metadata"]["name"]: claim for claim in self.kubectl.get("nodeclaims", "-l", f"{POOL}={self.name}")}

    def warming(self):
        """Machines that are not initialized, by the names of their NodeClaims."""
        claimed = {claim.get("status", {}).get("nodeName"): name for name, claim in self.claims().items()}
        return {claimed[name]: name for name, node in self.machines().items() if name in claimed and has_taint(node, WARMING)}

    def begin(self, machine):
        """It is initialized."""
        self.kubectl("taint", "node", machine, f"{WARMING}-")

    def proposed(self):
        """The machine that Karpenter would like to do without, and the NodeClaim that it made in its place; or None."""
        found = [node for node in self.machines().values() if has_taint(node, DISRUPTED)]
        launched = {event["regarding"]["name"] for event in self.kubectl.get("events.events.k8s.io", "-n", "default") if event["reason"] == "DisruptionLaunching"}
        replacements = launched & set(self.claims())
        return (found[0], replacements.pop()) if found and replacements else None

    def until_proposed(self, types):
        """Those types are offered from now on. A machine that is looked at while its pods are new is looked at again when something has changed, and else
        after five minutes: so they are offered in another order, now and then."""
        for _ in range(TRIES):
            self.offers(types)
            types = types[::-1]
            with contextlib.suppress(TimeoutError):
                return processes.until(self.proposed, "Karpenter proposes to do without a machine", 45)
        raise TimeoutError("Karpenter proposes to do without no machine")

    def delete(self):
        self.kubectl("delete", "nodepool", self.name, "--wait=false")
        processes.until(lambda: not self.claims() and not self.machines(), f"the machines of {self.name} are gone", 120)


def has_taint(node, key):
    return any(taint["key"] == key for taint in node["spec"].get("taints", []))
