"""The control plane of a test cluster as processes beside its nodes: etcd, API server, controllers, scheduler, DNS.

Two tiers. The API tier is etcd, the API server and a few controllers (garbage collection, namespaces,
ServiceAccounts, quotas, roles made of others, autoscalers): whoever tests there plays the kubelet. The node tier has all controllers, the scheduler and DNS.
"""

import json
import signal
import subprocess

import pki
import processes
from cluster import API_PORT, BIN

API_TIER_CONTROLLERS = ("garbage-collector-controller,namespace-controller,serviceaccount-controller,resourcequota-controller,"
                        "root-ca-certificate-publisher-controller,clusterrole-aggregation-controller,"
                        "horizontal-pod-autoscaler-controller")

# Who wrote what, for tests that count an operator's writes: the system's own are left out.
AUDIT_POLICY = """apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: None, userGroups: ["system:nodes", "system:serviceaccounts:kube-system"]}
- {level: None, users: ["system:apiserver", "system:kube-controller-manager", "system:kube-scheduler", "system:kube-proxy", "system:coredns"]}
- {level: None, verbs: [get, list, watch]}
- {level: Metadata}
"""

COREDNS_RIGHTS = """apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "system:coredns"}
rules:
- {apiGroups: [""], resources: [endpoints, services, pods, namespaces], verbs: [list, watch]}
- {apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: "system:coredns"}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:coredns"}
subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: "system:coredns"}]
"""

COREFILE = """.:53 {{
    bind {address}
    errors
    kubernetes cluster.local in-addr.arpa ip6.arpa {{
        kubeconfig {kubeconfig} context
        pods insecure
        ttl 1
    }}
    ready 127.0.0.1:8181
}}
"""


class ControlPlane:
    """The services of one cluster. grace_s: how long a silent node counts as ready; away_s: how long its pods stay then."""

    def __init__(self, cluster, grace_s=8, away_s=3):
        self.cluster = cluster
        self.grace_s = grace_s
        self.away_s = away_s
        self.folder = cluster.pki
        self.network = cluster.network
        self.server = self.network.server(API_PORT)

    def up(self, nodes):
        """Returns when pods can be created. nodes: the whole control plane, or only the API tier."""
        self.make_keys(nodes)
        self.start_etcd()
        self.start_api_server()
        self.start_controllers(nodes)
        if nodes:
            self.start_scheduler()
            self.start_dns()
        self.wait_for("the default ServiceAccount", "kubectl", "get", "serviceaccount", "default")

    def make_keys(self, nodes):
        authority = pki.Authority(self.folder, self.server)
        authority.authority("ca")
        authority.authority("front-proxy-ca")
        names = ["kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local", "localhost"]
        addresses = [self.network.api, self.network.kubernetes, "127.0.0.1"]
        authority.sign("apiserver", "/CN=kube-apiserver", "serverAuth",
                       ",".join([f"DNS:{n}" for n in names] + [f"IP:{a}" for a in addresses]))
        authority.sign("apiserver-kubelet", "/O=system:masters/CN=kube-apiserver-kubelet-client", "clientAuth")
        authority.sign("front-proxy", "/CN=front-proxy", "clientAuth", by="front-proxy-ca")
        authority.token_keys("tokens")
        authority.user("controllers", "/CN=system:kube-controller-manager")
        if nodes:
            for user in ("scheduler", "proxy"):
                authority.user(user, f"/CN=system:kube-{user}")
            authority.user("coredns", "/CN=system:coredns")
        authority.user("admin", "/O=system:masters/CN=admin")

    def key(self, name):
        return str(self.folder / name)

    def wait_for(self, what, *command, seconds=120):
        """Until a command of the cluster's network succeeds."""
        whole = [*self.cluster.enter(), *command]

        def succeeds():
            return subprocess.run(whole, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=self.cluster.environment(),
                                  stdin=subprocess.DEVNULL, check=False).returncode == 0
        processes.until(succeeds, what, seconds)

    def start_etcd(self):
        client, peer = "http://127.0.0.1:2379", "http://127.0.0.1:2380"
        self.cluster.start("etcd", [str(BIN / "etcd"), "--name=e", f"--data-dir={self.cluster.run}/etcd", "--unsafe-no-fsync",
                                    f"--listen-client-urls={client}", f"--advertise-client-urls={client}",
                                    f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}",
                                    f"--initial-cluster=e={peer}", "--log-level=warn"])
        self.wait_for("etcd", "curl", "-sf", f"{client}/health")

    def start_api_server(self):
        policy = self.cluster.run / "audit-policy.yaml"
        policy.write_text(AUDIT_POLICY, encoding="ascii")
        self.cluster.start("api-server", [
            str(BIN / "kube-apiserver"), "--etcd-servers=http://127.0.0.1:2379",
            f"--bind-address={self.network.api}", f"--advertise-address={self.network.api}", f"--secure-port={API_PORT}",
            f"--tls-cert-file={self.key('apiserver.crt')}", f"--tls-private-key-file={self.key('apiserver.key')}",
            f"--client-ca-file={self.key('ca.crt')}", "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction", "--allow-privileged=true", f"--service-cluster-ip-range={self.network.services}",
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
            f"--service-account-signing-key-file={self.key('tokens.key')}", f"--service-account-key-file={self.key('tokens.pub')}",
            f"--kubelet-client-certificate={self.key('apiserver-kubelet.crt')}",
            f"--kubelet-client-key={self.key('apiserver-kubelet.key')}", f"--kubelet-certificate-authority={self.key('ca.crt')}",
            "--kubelet-preferred-address-types=InternalIP", "--enable-aggregator-routing=true",
            f"--requestheader-client-ca-file={self.key('front-proxy-ca.crt')}", "--requestheader-allowed-names=front-proxy",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-", "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-username-headers=X-Remote-User", f"--proxy-client-cert-file={self.key('front-proxy.crt')}",
            f"--proxy-client-key-file={self.key('front-proxy.key')}",
            f"--default-not-ready-toleration-seconds={self.away_s}", f"--default-unreachable-toleration-seconds={self.away_s}",
            f"--audit-policy-file={policy}", f"--audit-log-path={self.cluster.logs}/audit.log", "--audit-log-mode=batch"])
        # Controllers and scheduler exit for good where the RBAC bootstrap isn't there yet.
        self.wait_for("the API server", "curl", "-sf", "--cacert", self.key("ca.crt"), f"{self.server}/readyz")

    def start_controllers(self, nodes):
        config = self.key("controllers.kubeconfig")
        own = [] if nodes else [f"--controllers={API_TIER_CONTROLLERS}"]
        self.cluster.start("controllers", [
            str(BIN / "kube-controller-manager"), f"--kubeconfig={config}", f"--authentication-kubeconfig={config}",
            f"--authorization-kubeconfig={config}", "--bind-address=127.0.0.1", "--leader-elect=false",
            "--use-service-account-credentials=true", f"--service-account-private-key-file={self.key('tokens.key')}",
            f"--root-ca-file={self.key('ca.crt')}", f"--cluster-signing-cert-file={self.key('ca.crt')}",
            f"--cluster-signing-key-file={self.key('ca.key')}", "--allocate-node-cidrs=false", f"--cluster-cidr={self.network.pods}",
            f"--service-cluster-ip-range={self.network.services}", "--kube-api-qps=500", "--kube-api-burst=1000",
            "--concurrent-gc-syncs=20", "--node-monitor-period=1s", f"--node-monitor-grace-period={self.grace_s}s",
            "--terminated-pod-gc-threshold=200", "--horizontal-pod-autoscaler-sync-period=1s",
            "--horizontal-pod-autoscaler-downscale-stabilization=1s", *own])

    def start_scheduler(self):
        config = self.key("scheduler.kubeconfig")
        self.cluster.start("scheduler", [
            str(BIN / "kube-scheduler"), f"--kubeconfig={config}", f"--authentication-kubeconfig={config}",
            f"--authorization-kubeconfig={config}", "--bind-address=127.0.0.1", "--leader-elect=false",
            "--kube-api-qps=500", "--kube-api-burst=1000"])

    def start_dns(self):
        """Beside the control plane and not in a pod, so that it outlives any node."""
        self.cluster.call("kubectl", "apply", "-f", "-", stdin=COREDNS_RIGHTS)
        corefile = self.cluster.run / "Corefile"
        corefile.write_text(COREFILE.format(address=self.network.api, kubeconfig=self.key("coredns.kubeconfig")), encoding="ascii")
        self.cluster.start("dns", [str(BIN / "coredns"), "-conf", str(corefile)])
        self.wait_for("DNS", "curl", "-sf", "http://127.0.0.1:8181/ready")

    def api_server_away(self):
        """Ends the API server, the controllers first: else they would find all nodes silent when it is back, and evict."""
        self.cluster.stop("controllers", signal.SIGKILL)
        self.cluster.stop("api-server", signal.SIGKILL)

    def api_server_back(self):
        """The API server again; the controllers only when every node has renewed its lease at it."""
        self.start_api_server()
        before = self.renewals()
        processes.until(lambda: all(time != before[node] for node, time in self.renewals().items()),
                        "each node's lease renewed", 120)
        self.start_controllers(nodes=True)

    def renewals(self):
        """When each living node renewed its lease last."""
        leases = json.loads(self.cluster.call("kubectl", "get", "leases", "-n", "kube-node-lease", "-o", "json"))["items"]
        return {lease["metadata"]["name"]: lease["spec"]["renewTime"] for lease in leases
                if self.cluster.known.read(lease["metadata"]["name"])}


def wait_for_nodes(cluster, numbers, seconds=120):
    """Until these nodes are Ready."""
    def ready():
        try:
            items = json.loads(cluster.call("kubectl", "get", "nodes", "-o", "json"))["items"]
        except RuntimeError:
            return False
        names = {item["metadata"]["name"] for item in items if any(
            c["type"] == "Ready" and c["status"] == "True" for c in item["status"].get("conditions", []))}
        return all(f"node-{number}" in names for number in numbers)
    processes.until(ready, "the nodes Ready", seconds)
