"""One node of a test cluster: a process tree in namespaces of its own, with containerd, kubelet and kube-proxy inside.

SIGKILL to its first process is a machine that vanishes. What lies on its disk is in the run folder; its images
are hard links to a store that was unpacked once.
"""

import json
import shutil
import signal
import subprocess
from pathlib import Path

import images
import pki
import processes
from cluster import API_PORT, BIN, BRIDGE, CACHE, HERE, remove_cgroup

CGROUPS = Path("/sys/fs/cgroup")
NODES_MAX = 8

# What kubelet would set on the whole machine. A node sees these values in files of its own over the machine's.
SYSCTLS = {"vm/overcommit_memory": 1, "vm/panic_on_oom": 0, "kernel/panic": 10, "kernel/panic_on_oops": 1,
           "kernel/keys/root_maxkeys": 1000000, "kernel/keys/root_maxbytes": 25000000}

# Of a machine with logind: pods that are not critical have the difference.
SHUTDOWN = {"shutdownGracePeriod": "30s", "shutdownGracePeriodCriticalPods": "10s"}

CONTAINERD = """version = 3
root = "{disk}/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.tracing.processor.v1.otlp", "io.containerd.snapshotter.v1.blockfile",
 "io.containerd.snapshotter.v1.erofs", "io.containerd.differ.v1.erofs", "io.containerd.nri.v1.nri"]
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins.'io.containerd.cri.v1.images']
  snapshotter = "overlayfs"
  [plugins.'io.containerd.cri.v1.images'.pinned_images]
    sandbox = "{pause}"
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
  disable_apparmor = true
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = ["/usr/lib/cni"]
    conf_dir = "{disk}/cni"
  [plugins.'io.containerd.cri.v1.runtime'.containerd]
    default_runtime_name = "runc"
    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
        BinaryName = "{runc}"
        SystemdCgroup = false
"""


class Node:
    """Node `number` of a cluster, whether it runs or not."""

    def __init__(self, cluster, number):
        if not 1 <= number <= NODES_MAX:
            raise ValueError(f"nodes have the numbers 1 to {NODES_MAX}")
        self.cluster = cluster
        self.number = number
        self.name = f"node-{number}"
        self.network = cluster.network
        self.address = self.network.machine(number)
        self.disk = cluster.run / self.name

    def up(self, taints=(), logind=False):
        """Starts it; returns when its services are on their way, before it is Ready. logind: it has one, and a kubelet that delays a shutdown by it."""
        if self.first():
            raise RuntimeError(f"{self.name} is up already")
        self.disk.mkdir(exist_ok=True)
        for folder in ("cni", "log", "kubelet", "upper", "work"):
            (self.disk / folder).mkdir(exist_ok=True)
        self.make_cgroup()
        self.write_settings(taints, logind)
        images.link_store(self.cluster.run / "store", self.disk / "containerd")
        self.start_first()
        self.connect()

    def first(self):
        """The number of the node's first process, or None where the node isn't there."""
        return self.cluster.known.read(self.name)

    def start_first(self):
        anchor = self.cluster.anchor()
        depth = processes.depth_and_number(anchor)[0] + 1
        holder = processes.spawn(
            ["nsenter", f"--net=/proc/{anchor}/ns/net", f"--pid=/proc/{anchor}/ns/pid", "--",
             "unshare", "--fork", "--kill-child", "--pid", "--mount-proc", "--mount", "--net", "--uts", "--ipc",
             str(HERE / "node_init"), str(self.disk / "node.json")],
            self.disk / "log/init.log", environment=self.cluster.environment())
        self.cluster.known.write(self.name, processes.until(lambda: processes.first_of_deeper(holder.pid, depth), self.name))

    def connect(self):
        """A cable from the node to the cluster's bridge; the node's first process waits for its end."""
        first = self.first()
        cable = f"cable{self.number}"
        self.cluster.call("sh", "-c", f"ip link del {cable} 2>/dev/null; ip link add {cable} type veth peer name eth0 netns {first}"
                          f" && ip link set {cable} master {BRIDGE} up"
                          f" && ip route replace {self.network.pods_of(self.number)} via {self.address}")

    def kill(self):
        """The machine vanishes with all on it."""
        self.cluster.known.end(self.name, signal.SIGKILL)

    def clean(self):
        """Its disk, cgroup and cable away, after kill()."""
        self.cluster.call("sh", "-c", f"ip link del cable{self.number} 2>/dev/null;"
                          f" ip route del {self.network.pods_of(self.number)} 2>/dev/null; true")
        cgroup = self.cluster.cgroup(self.number)
        for folder in [CGROUPS / cgroup, *CGROUPS.glob(f"*/{cgroup}")]:
            processes.until(lambda f=folder: remove_cgroup(f), f"{folder} empty", 20)
        subprocess.run(["rm", "-rf", "--one-file-system", str(self.disk)], check=True)

    def cut(self, away):
        """Takes the node off the network, or puts it back: it goes on, and nobody hears of it."""
        self.cluster.call("ip", "link", "set", f"cable{self.number}", "down" if away else "up")

    def enter(self):
        """The beginning of a command line that runs inside the node."""
        if not self.first():
            raise RuntimeError(f"{self.name} of cluster {self.cluster.name} is not up")
        return ["nsenter", "--target", str(self.first()), "--mount", "--net", "--pid", "--uts", "--ipc", "--"]

    def logind(self, word):
        """What logind.py prints for that word; the node has to have one."""
        return self.cluster.call(*self.enter(), *logind_command(word))

    def make_cgroup(self):
        name = self.cluster.cgroup(self.number)
        if (CGROUPS / "cgroup.controllers").exists():
            make_unified_cgroup(CGROUPS / name)
            return
        for hierarchy in CGROUPS.iterdir():
            if (hierarchy / "cgroup.procs").exists() and not hierarchy.is_symlink():
                make_divided_cgroup(hierarchy, name)

    def write_settings(self, taints, logind):
        authority = pki.Authority(self.cluster.pki, self.network.server(API_PORT))
        authority.user(f"kubelet-{self.name}", f"/O=system:nodes/CN=system:node:{self.name}")
        authority.sign(f"kubelet-serving-{self.name}", f"/O=system:nodes/CN=system:node:{self.name}", "serverAuth",
                       f"DNS:{self.name},IP:{self.address}")
        (self.disk / "resolv.conf").write_text("nameserver 127.0.0.1\n", encoding="ascii")
        (self.disk / "containerd.toml").write_text(CONTAINERD.format(
            disk=self.disk, pause=images.PAUSE, runc=shutil.which("runc", path=self.cluster.environment()["PATH"])), encoding="ascii")
        (self.disk / "cni/10-bridge.conflist").write_text(json.dumps(self.cni()), encoding="ascii")
        (self.disk / "kubelet.json").write_text(json.dumps({**self.kubelet(taints), **(SHUTDOWN if logind else {})}, indent=1), encoding="ascii")
        (self.disk / "proxy.json").write_text(json.dumps(self.proxy(), indent=1), encoding="ascii")
        (self.disk / "node.json").write_text(json.dumps({
            "name": self.name, "disk": str(self.disk), "address": self.address, "length": self.network.length,
            "family": self.network.family, "forwarding": self.network.forwarding, "gateway": self.network.api,
            "routes": {self.network.pods_of(n): self.network.machine(n) for n in range(1, NODES_MAX + 1) if n != self.number},
            "kubelet": [str(BIN / "kubelet"), f"--config={self.disk}/kubelet.json", f"--hostname-override={self.name}",
                        f"--kubeconfig={self.cluster.pki}/kubelet-{self.name}.kubeconfig", f"--node-ip={self.address}",
                        f"--root-dir={self.disk}/kubelet", f"--node-labels=ringmaster.test/node={self.number}", "--v=2"],
            "containerd": [str(BIN / "containerd"), "-c", f"{self.disk}/containerd.toml"],
            "proxy": [str(BIN / "kube-proxy"), f"--config={self.disk}/proxy.json"],
            "logind": logind_command("up") if logind else None, "sysctls": SYSCTLS}, indent=1), encoding="ascii")

    def cni(self):
        return {"cniVersion": "0.4.0", "name": "pods", "plugins": [
            {"type": "bridge", "bridge": "cni0", "isGateway": True, "isDefaultGateway": True, "ipMasq": False, "hairpinMode": True,
             "mtu": 1500, "ipam": {"type": "host-local", "ranges": [[{"subnet": self.network.pods_of(self.number)}]],
                                   "dataDir": f"{self.disk}/cni-addresses"}},
            {"type": "portmap", "capabilities": {"portMappings": True}}]}

    def kubelet(self, taints):
        pki_folder = self.cluster.pki
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "failCgroupV1": False,
            "cgroupDriver": "cgroupfs", "cgroupRoot": "/" + self.cluster.cgroup(self.number),
            "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock", "address": self.address, "port": 10250,
            "readOnlyPort": 0, "healthzPort": 0, "tlsCertFile": f"{pki_folder}/kubelet-serving-{self.name}.crt",
            "tlsPrivateKeyFile": f"{pki_folder}/kubelet-serving-{self.name}.key",
            "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": True},
                               "x509": {"clientCAFile": f"{pki_folder}/ca.crt"}},
            "authorization": {"mode": "Webhook"}, "clusterDomain": "cluster.local", "clusterDNS": [self.network.api],
            "resolvConf": f"{self.disk}/resolv.conf", "podLogsDir": f"{self.disk}/pod-logs",
            "volumePluginDir": f"{self.disk}/volume-plugins", "oomScoreAdj": 0, "nodeStatusUpdateFrequency": "2s",
            "nodeStatusReportFrequency": "60s", "nodeLeaseDurationSeconds": 4, "syncFrequency": "10s", "imageMinimumGCAge": "24h",
            "imageGCHighThresholdPercent": 100, "imageGCLowThresholdPercent": 99,
            "evictionHard": {"memory.available": "200Mi", "nodefs.available": "1%", "imagefs.available": "1%",
                             "nodefs.inodesFree": "1%", "imagefs.inodesFree": "1%"},
            "failSwapOn": False, "maxPods": 110, "enforceNodeAllocatable": ["pods"],
            "registerWithTaints": [dict(zip(("key", "value", "effect"), taint)) for taint in taints]}

    def proxy(self):
        return {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration", "mode": "iptables",
            "clientConnection": {"kubeconfig": f"{self.cluster.pki}/proxy.kubeconfig"}, "clusterCIDR": self.network.pods,
            "hostnameOverride": self.name, "bindAddress": self.address, "healthzBindAddress": "127.0.0.1:10256",
            "metricsBindAddress": "127.0.0.1:10249",
            "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"}}


def logind_command(word):
    """logind.py inside of a node, by the system's Python and with what `build --logind` has unpacked."""
    return ["env", f"PYTHONPATH={CACHE}/src/dbusmock/usr/lib/python3/dist-packages", "/usr/bin/python3", str(HERE / "logind.py"), word]


def make_unified_cgroup(folder):
    """cgroup v2: the controllers have to be passed down at each level."""
    folder.mkdir(exist_ok=True)
    for level in (folder.parent, folder):
        for controller in (level / "cgroup.controllers").read_text(encoding="ascii").split():
            try:
                (level / "cgroup.subtree_control").write_text(f"+{controller}", encoding="ascii")
            except OSError:
                pass  # one that can't be passed down here; kubelet names those that it misses


def make_divided_cgroup(hierarchy, name):
    """cgroup v1: one hierarchy for each controller, and cpuset has nothing in it until somebody says what."""
    (hierarchy / name).mkdir(exist_ok=True)
    for part in ("cpuset.cpus", "cpuset.mems"):
        if (hierarchy / part).exists():
            (hierarchy / name / part).write_text((hierarchy / part).read_text(encoding="ascii"), encoding="ascii")

