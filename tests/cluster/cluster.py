"""A Kubernetes cluster on one machine, for tests: where its files lie, its namespaces, up and down.

All of a cluster is one process tree: its first process (`anchor`, which is pause.c) holds a network and a pid
namespace, and whatever is started later enters these. When the anchor dies, the kernel ends everything in it, nodes
and pods too. Addresses (addresses.py) lie inside the network namespace; names, run folders and cgroups tell clusters
side by side apart. Nothing outside is touched but those cgroups and the run folder.
"""

import os
import shutil
import signal
import subprocess
from pathlib import Path

import processes
from addresses import IPV4, OF_FAMILY

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ringmaster/cluster"
BIN = CACHE / "bin"

BRIDGE = "br0"
API_PORT = 6443
API, SERVER = IPV4.api, IPV4.server(API_PORT)  # of all clusters but one that is of IPv6


class Missing(Exception):
    """Something that the machine lacks for a cluster; the text says what to do."""


class Offline(Missing):
    """It lacks a network to fetch that from, and nothing else: what needs a cluster is left out."""


def missing(text):
    """The exception for what could not be made."""
    offline = subprocess.run([str(ROOT / "tests/offline")], capture_output=True, text=True, check=False)
    return Missing(text) if offline.returncode else Offline(f"{text}\n{offline.stdout.strip()}")


def check_machine(nodes):
    if os.geteuid() != 0:
        raise Missing("a test cluster needs root: network and pid namespaces, and cgroups for its nodes")
    wanted = ["ip", "nsenter", "unshare", "openssl"] + (["runc", "iptables", "ip6tables"] if nodes else [])
    absent = [name for name in wanted if not shutil.which(name)]
    if nodes and not Path("/usr/lib/cni/bridge").exists():
        absent.append("/usr/lib/cni/bridge")
    if absent:
        raise Missing(f"{', '.join(absent)}: not there; tools/install-packages --cluster")


def build(part=None):
    """Builds what is missing in the cache; returns when it is all there."""
    command = [str(HERE / "build")] + ([part] if part else [])
    if subprocess.call(command) != 0:
        raise missing("the cluster's programs could not be built")


class Cluster:
    """One cluster by name; the same object for one that runs, whose addresses it knows, and for one that isn't there yet."""

    def __init__(self, name="default", network=IPV4):
        if not name.replace("-", "").isalnum() or len(name) > 20 or "-node-" in name:
            raise ValueError(f"a cluster's name is letters, digits and '-', 20 at most: {name}")
        self.name = name
        self.run = CACHE / "run" / name  # on the images' file system, so that nodes can have hard links to them
        self.logs = self.run / "logs"
        self.pki = self.run / "pki"
        self.known = processes.Known(self.run / "pids")
        self.family = self.run / "family"
        self.network = OF_FAMILY[int(self.family.read_text(encoding="ascii"))] if self.family.exists() else network
        self.kubeconfig = self.pki / "admin.kubeconfig"

    def anchor(self):
        return self.known.read("anchor")

    def is_up(self):
        return self.anchor() is not None and self.kubeconfig.exists()

    def make(self, tied=False):
        """The empty cluster: folders and namespaces with a bridge. With tied, all of it ends with the calling process."""
        if self.anchor():
            raise RuntimeError(f"cluster {self.name} is up already; tests/cluster/down --name {self.name}")
        self.clean()
        self.run.mkdir(mode=0o700, parents=True)
        self.logs.mkdir()
        self.family.write_text(f"{self.network.family}\n", encoding="ascii")
        depth = processes.depth_and_number(os.getpid())[0] + 1
        holder = processes.spawn(["unshare", "--net", "--pid", "--fork", "--kill-child", str(BIN / "pause")],
                                 self.logs / "anchor.log", tied)
        anchor = processes.until(lambda: processes.first_of_deeper(holder.pid, depth), "the cluster's namespaces")
        self.known.write("anchor", anchor)
        self.call("sh", "-c", f"ip link set lo up && ip link add {BRIDGE} type bridge"
                  f" && ip addr add {self.network.api}/{self.network.length} dev {BRIDGE} {nodad(self.network)} && ip link set {BRIDGE} up")

    def enter(self):
        """The beginning of a command line that runs in the cluster's network."""
        anchor = self.anchor()
        if not anchor:
            raise RuntimeError(f"cluster {self.name} is not up")
        return ["nsenter", f"--net=/proc/{anchor}/ns/net", "--"]

    def environment(self):
        path = f"{BIN}:{os.environ.get('PATH', '/usr/bin:/bin')}:/usr/sbin:/sbin"
        cache = str(Path(self.kubeconfig).parent / "kube-cache")  # by address, and another cluster has the same one
        return {**os.environ, "PATH": path, "KUBECONFIG": str(self.kubeconfig), "KUBECACHEDIR": cache, "RINGMASTER_CLUSTER": self.name}

    def call(self, *command, stdin=None, timeout=120):
        """Runs a command in the cluster's network, returns what it printed; raises with its complaint where it fails."""
        done = subprocess.run([*self.enter(), *command], input=stdin, capture_output=True, text=True, timeout=timeout,
                              env=self.environment(), check=False)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command[:4])}: exit {done.returncode}: {(done.stderr or done.stdout).strip()[-2000:]}")
        return done.stdout

    def start(self, name, command, nice=0):
        """A service of the cluster, in its network and pid namespace; its output is in logs/NAME.log."""
        anchor = self.anchor()
        depth = processes.depth_and_number(anchor)[0]
        holder = processes.spawn(["nice", "-n", str(nice), "nsenter", f"--net=/proc/{anchor}/ns/net", f"--pid=/proc/{anchor}/ns/pid", "--",
                                  *command], self.logs / f"{name}.log", environment=self.environment())

        def inside():
            if holder.poll() is not None:
                raise RuntimeError(f"{name} ended at once; see {self.logs}/{name}.log")
            return next((pid for pid in processes.descendants(holder.pid)
                         if processes.depth_and_number(pid)[0] >= depth), None)

        self.known.write(name, processes.until(inside, name))
        return holder

    def stop(self, name, how=signal.SIGTERM):
        self.known.end(name, how)

    def down(self):
        """Everything away, also what an earlier cluster of this name left when it was killed."""
        self.known.end("anchor", signal.SIGKILL)
        self.clean()

    def clean(self):
        for folder in self.cgroups():
            processes.until(lambda f=folder: remove_cgroup(f), f"the cgroup {folder} empty", 20)
        if self.run.exists():
            subprocess.run(["rm", "-rf", "--one-file-system", str(self.run)], check=True)

    def cgroup(self, node):
        """The cgroup of a node, as a path below each hierarchy."""
        return f"ringmaster-{self.name}-node-{node}"

    def cgroups(self):
        pattern = self.cgroup("*")
        return [*Path("/sys/fs/cgroup").glob(pattern), *Path("/sys/fs/cgroup").glob(f"*/{pattern}")]


def nodad(network):
    """Nobody else has that address: it serves at once."""
    return "nodad" if network.family == 6 else ""


def remove_cgroup(folder):
    """Whether it is gone; processes that were just killed leave it a little later."""
    for path, _, _ in os.walk(folder, topdown=False):
        try:
            os.rmdir(path)
        except OSError:
            pass
    return not folder.exists()
