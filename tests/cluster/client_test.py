"""The operator's Kubernetes client against a real API server: what it sends is taken, what happens is seen, whatever breaks."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import cluster as clusters
import control_plane
import processes
import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOL = Path(os.environ.get("RINGMASTER_BIN", ROOT / "build/test/bin")).parent / "tests/kube_tool"


def pod(name, image="x"):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"automountServiceAccountToken": False, "containers": [{"name": "c", "image": image}]}}


class Tool:
    """kube_tool in a test's namespace."""

    def __init__(self, kubectl):
        self.cluster = kubectl.cluster
        self.namespace = kubectl.namespace
        self.kubeconfig = str(kubectl.cluster.kubeconfig)
        self.variables = {}
        self.running = []

    def command(self, *arguments):
        return [*self.cluster.enter(), str(TOOL), *arguments]

    def environment(self):
        return {**self.cluster.environment(), "KUBECONFIG": self.kubeconfig, **self.variables}

    def __call__(self, verb, resource, name, body=None, uid=None):
        """The answer to one request."""
        command = self.command(verb, resource, self.namespace, name, *([uid] if uid else []))
        done = subprocess.run(command, input=json.dumps(body or {}), capture_output=True, text=True, timeout=120,
                              env=self.environment(), check=True)
        return json.loads(done.stdout)

    def start(self, *arguments):
        """A tool that goes on; its lines so far are in `lines`."""
        return self.run(*self.command(*arguments))

    def run(self, *command):
        """The same of any command."""
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=self.environment())
        process.lines = []
        threading.Thread(target=lambda: process.lines.extend(line.strip() for line in process.stdout), daemon=True).start()
        self.running.append(process)
        return process

    def close(self):
        for process in self.running:
            process.kill()
            process.wait()


@pytest.fixture(name="tool")
def fixture_tool(api):
    tool = Tool(api)
    yield tool
    tool.close()


def names_there(lines):
    """The objects that somebody who believes a watch's lines thinks there are."""
    there, listed = set(), set()
    listing = False
    for line in lines:
        word, _, name = line.partition(" ")
        if word == "listing":
            listing, listed = True, set()
        elif word == "listed":
            listing, there = False, listed
        elif word == "deleted":
            there.discard(name.split("/")[1])
        elif word in ("added", "modified"):
            (listed if listing else there).add(name.split("/")[1])
    return there


def test_a_write_is_taken_or_refused_with_the_servers_own_words(tool):
    assert tool("try", "pods", "a", pod("a"))["outcome"] == "ok"
    assert tool("get", "pods", "a")["outcome"] == "not found", "a trial keeps nothing"
    made = tool("create", "pods", "a", pod("a"))
    assert made["outcome"] == "ok"
    again = tool("create", "pods", "a", pod("a", "other"))
    assert again["outcome"] == "exists"
    assert again["object"]["metadata"]["uid"] == made["object"]["metadata"]["uid"], "what is there was read"
    refused = tool("create", "pods", "b", pod("b", ""))
    assert refused["outcome"] == "invalid"
    assert "spec.containers[0].image: Required value" in refused["message"]
    wrong = tool("delete", "pods", "a", uid="another")
    assert wrong["outcome"] == "conflict"
    assert tool("delete", "pods", "a", uid=made["object"]["metadata"]["uid"])["outcome"] == "ok"
    assert tool("get", "pods", "a")["outcome"] == "not found"


def test_server_side_apply_owns_the_fields_that_it_names(tool):
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"},
               "spec": {"selector": {"term": "1"}, "ports": [{"port": 7070}]}}
    assert tool("apply", "services", "s", service)["status"] == 201
    service["spec"]["selector"] = {"term": "2"}
    moved = tool("apply", "services", "s", service)
    assert moved["outcome"] == "ok"
    assert moved["object"]["spec"]["selector"] == {"term": "2"}
    owners = {owner["manager"]: owner["operation"] for owner in moved["object"]["metadata"]["managedFields"]}
    assert owners == {"kube_tool": "Apply"}


def test_a_status_made_from_an_older_version_is_a_conflict(tool):
    made = tool("create", "pods", "a", pod("a"))["object"]
    made["status"]["message"] = "one"
    assert tool("update:status", "pods", "a", made)["outcome"] == "ok"
    made["status"]["message"] = "two"
    late = tool("update:status", "pods", "a", made)
    assert (late["outcome"], late["reason"]) == ("conflict", "Conflict")
    assert tool("get", "pods", "a")["object"]["status"]["message"] == "one"


def test_who_may_not_is_told_which_verb_on_what_and_a_tokens_file_is_enough_to_be_somebody(tool, api):
    api("create", "serviceaccount", "weak")
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "token").write_text(api("create", "token", "weak"), encoding="ascii")
        (Path(folder) / "config").write_text(json.dumps({
            "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
            "clusters": [{"name": "k", "cluster": {"server": clusters.SERVER, "certificate-authority": str(api.cluster.pki / "ca.crt")}}],
            "users": [{"name": "u", "user": {"tokenFile": "token"}}]}), encoding="ascii")
        tool.kubeconfig = f"{folder}/config"
        refused = tool("create", "pods", "a", pod("a"))
        (Path(folder) / "token").write_text("forged", encoding="ascii")
        unknown = tool("create", "pods", "a", pod("a"))
    assert refused["outcome"] == "denied"
    assert refused["message"] == (f'pods is forbidden: User "system:serviceaccount:{api.namespace}:weak" cannot create resource "pods" '
                                  f'in API group "" in the namespace "{api.namespace}"')
    assert (unknown["outcome"], unknown["status"]) == ("denied", 401)


def test_a_proxy_of_the_environment_is_asked_for_the_way_unless_no_proxy_holds_the_servers_network(tool, api):
    proxy = tool.run(*api.cluster.enter(), sys.executable, str(Path(__file__).with_name("connect_proxy.py")))
    (port,) = processes.until(lambda: proxy.lines, "the proxy listens", 60)
    tool.variables = {"HTTPS_PROXY": f"http://127.0.0.1:{port}", "NO_PROXY": ""}
    assert tool("create", "pods", "a", pod("a"))["outcome"] == "ok"
    processes.until(lambda: [f"https://{asked}" for asked in proxy.lines[1:]] == [clusters.SERVER], "the proxy has led it there", 60)
    watch = tool.start("watch", "pods", api.namespace)
    processes.until(lambda: "a" in names_there(watch.lines), "the watch tells of the pod", 60)
    processes.until(lambda: len(proxy.lines) > 2, "the proxy has led it there, too", 60)
    proxy.kill()
    proxy.wait()
    assert tool("get", "pods", "a")["outcome"] == "unreachable", "there is no other way"
    tool.variables["NO_PROXY"] = f"{clusters.SERVER.removeprefix('https://').rpartition('.')[0]}.0/24"
    assert tool("get", "pods", "a")["outcome"] == "ok"


def test_a_server_whose_certificate_does_not_hold_is_not_talked_to(tool, api):
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config"
        text = Path(tool.kubeconfig).read_text(encoding="ascii")
        config.write_text(text.replace("ca.crt", "front-proxy-ca.crt"), encoding="ascii")
        tool.kubeconfig = str(config)
        assert tool("get", "pods", "a")["outcome"] == "untrusted"


def test_a_watch_sees_all_that_happens_through_restarts_of_the_api_server(tool, api):
    for name in "abcde":  # two pages
        tool("create", "pods", name, pod(name))
    watch = tool.start("watch", "pods", api.namespace)
    processes.until(lambda: names_there(watch.lines) == set("abcde"), "the list")
    tool("delete", "pods", "a")
    tool("create", "pods", "f", pod("f"))
    processes.until(lambda: names_there(watch.lines) == set("bcdef"), "the changes")
    api.cluster.stop("api-server")  # says GOAWAY, and ends its watches
    control_plane.ControlPlane(api.cluster).api_server_back()
    tool("delete", "pods", "b")
    processes.until(lambda: names_there(watch.lines) == set("cdef"), "a change after the restart")
    watch.send_signal(signal.SIGSTOP)  # it sleeps while the server is killed and the world goes on
    tool("delete", "pods", "c")
    api.cluster.stop("api-server", signal.SIGKILL)
    control_plane.ControlPlane(api.cluster).api_server_back()
    tool("delete", "pods", "d")
    tool("create", "pods", "g", pod("g"))
    watch.send_signal(signal.SIGCONT)
    processes.until(lambda: names_there(watch.lines) == set("efg"), "what happened while it slept")


def test_a_version_that_the_store_has_forgotten_leads_to_a_new_list(tool, api):
    watch = tool.start("watch", "pods", api.namespace)
    processes.until(lambda: "listed" in watch.lines, "the list")
    watch.send_signal(signal.SIGSTOP)

    def restart():
        api.cluster.stop("api-server", signal.SIGKILL)
        control_plane.ControlPlane(api.cluster).api_server_back()

    restart()  # so that nothing of what comes lies in the sleeper's connection
    for name in "abc":
        tool("create", "pods", name, pod(name))
    tool("delete", "pods", "a")
    version = tool("get", "pods", "c")["object"]["metadata"]["resourceVersion"]
    api.cluster.call("curl", "-sf", "http://127.0.0.1:2379/v3/kv/compaction", "-d", json.dumps({"revision": version}))
    restart()  # and nothing in the server's memory
    watch.send_signal(signal.SIGCONT)
    processes.until(lambda: names_there(watch.lines) == {"b", "c"}, "the new list")
    assert watch.lines.count("listing") >= 2


def test_one_leads_the_next_follows_at_once_when_it_is_told_and_later_when_it_is_killed(tool, api):
    first = tool.start("lease", api.namespace, "l", "first")
    processes.until(lambda: first.lines == ["leading"], "the first leads")
    second = tool.start("lease", api.namespace, "l", "second")
    processes.until(lambda: tool("get", "leases", "l")["object"]["spec"]["leaseTransitions"] == 1, "a renewal")
    assert not second.lines
    first.terminate()
    processes.until(lambda: second.lines == ["leading"], "the second leads")
    assert first.wait(60) == 0
    assert first.lines == ["leading", "released"]
    second.kill()
    third = tool.start("lease", api.namespace, "l", "third")
    processes.until(lambda: third.lines == ["leading"], "the third leads")
    assert tool("get", "leases", "l")["object"]["spec"]["holderIdentity"] == "third"


def test_a_leader_that_was_stopped_finds_another_in_its_place_and_gives_up(tool, api):
    first = tool.start("lease", api.namespace, "l", "first")
    processes.until(lambda: first.lines == ["leading"], "the first leads")
    first.send_signal(signal.SIGSTOP)
    second = tool.start("lease", api.namespace, "l", "second")
    processes.until(lambda: second.lines == ["leading"], "the second leads")
    first.send_signal(signal.SIGCONT)
    processes.until(lambda: any(line.startswith("lost") for line in first.lines), "the first gives up")
    assert tool("get", "leases", "l")["object"]["spec"]["holderIdentity"] == "second"
