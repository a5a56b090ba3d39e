"""What tests of both tiers stand on: clusters that end with the test run, and kubectl as functions."""

import json
import subprocess

import cluster as clusters
import control_plane
import images
import node as nodes
import processes


def bring_up(cluster, node_count, tied=False):
    """A cluster with that many nodes, all Ready; without any it is the API tier. What is missing in the cache is built first."""
    clusters.check_machine(node_count > 0)
    clusters.build(None if node_count else "--api")
    store = images.store() if node_count else None
    cluster.make(tied)
    try:
        if store:
            (cluster.run / "store").symlink_to(store)
        control_plane.ControlPlane(cluster).up(node_count > 0)
        for number in range(1, node_count + 1):
            nodes.Node(cluster, number).up()
        control_plane.wait_for_nodes(cluster, range(1, node_count + 1))
    except BaseException:
        keep_logs(cluster)
        cluster.down()
        raise


def bring_node(cluster, number, logind=False):
    """A node joins; returns when it is Ready."""
    nodes.Node(cluster, number).up(logind=logind)
    control_plane.wait_for_nodes(cluster, [number])


def keep_logs(cluster):
    """The logs of a cluster that didn't come up, beside the cache's own."""
    kept = clusters.CACHE / "logs" / f"cluster-{cluster.name}"
    subprocess.run(["sh", "-c", 'rm -rf "$2" && mkdir -p "$2" && cp "$1"/logs/* "$2" && '
                    'for n in "$1"/node-*; do [ -d "$n" ] && cp -r "$n/log" "$2/${n##*/}"; done; true', "sh", str(cluster.run), str(kept)],
                   check=False)


class Kubectl:
    """kubectl in one namespace of a cluster."""

    def __init__(self, cluster, namespace="default"):
        self.cluster = cluster
        self.namespace = namespace

    def __call__(self, *arguments, stdin=None, timeout=120):
        """What it prints; RuntimeError with its complaint where it fails."""
        return self.cluster.call("kubectl", "-n", self.namespace, *arguments, stdin=stdin, timeout=timeout)

    def apply(self, *objects):
        """Objects as dictionaries, or YAML text."""
        text = "\n---\n".join(item if isinstance(item, str) else json.dumps(item) for item in objects)
        return self("apply", "-f", "-", stdin=text)

    def get(self, *arguments):
        """One object, or the list of items."""
        found = json.loads(self("get", *arguments, "-o", "json"))
        return found["items"] if found["kind"] == "List" or found["kind"].endswith("List") and "items" in found else found

    def exists(self, *arguments):
        return bool(self("get", *arguments, "--ignore-not-found", "-o", "name").strip())

    def until(self, condition, what, *arguments, seconds=300):
        """Waits until condition(what `get` finds) gives something true, and returns that."""
        return processes.until(lambda: condition(self.get(*arguments)), what, seconds)

    def until_condition(self, wanted, *arguments, seconds=120):
        """Waits until a condition is True; `kubectl wait` refuses an object that has no conditions yet."""
        def is_true(found):
            conditions = found.get("status", {}).get("conditions") or []
            return any(each["type"] == wanted and each["status"] == "True" for each in conditions)
        self.until(is_true, f"{' '.join(arguments)} is {wanted}", *arguments, seconds=seconds)

    def until_served(self):
        self.until_condition("Established", "crd", "trainingjobs.ringmaster.dev")

    def create_status(self, resource, name, status):
        """Writes a status as a kubelet or a controller would: for the API tier, where none runs."""
        patch = json.dumps({"status": status})
        return self("patch", resource, name, "--subresource=status", "--type=merge", "-p", patch)


def make_namespace(cluster, name, anew=True):
    """kubectl in a namespace, once it has its default ServiceAccount, without which it takes no pods. One that is there
    already is an error, but for anew=False."""
    everywhere, kubectl = Kubectl(cluster), Kubectl(cluster, name)
    if anew or not everywhere.exists("namespace", name):
        everywhere("create", "namespace", name)
    processes.until(lambda: kubectl.exists("serviceaccount", "default"), "the namespace's ServiceAccount")
    return kubectl
