"""kubectl and helm as the pages show them, against a real API server that has nothing else to do: CLUSTER of tests/commands.py, in that order.

Nobody runs pods there. A watch is ended when it has shown something; a job is finished by hand, with the result that docs/kubernetes.md shows."""

import json
import os
import re
import subprocess

import commands
import pages
import processes
import pytest
import rig
from cluster import ROOT

RESULT = "{.status.result}"
DEADLINE_S = 120
REPLACED = [(r"\bREGISTRY\b", "registry.example"), (r":TAG\b", ":one")]
# What a reader has done before, where the page takes it for granted.
BEFORE = {
    "helm install another charts/ringmaster --namespace ml --create-namespace --take-ownership": ["helm uninstall ringmaster --namespace ringmaster-system"],
    "kubectl delete crd trainingjobs.ringmaster.dev": ["helm uninstall another --namespace ml"],
}


class Shell:
    """A folder with what the commands name, and a shell in the cluster's network."""

    def __init__(self, cluster, folder):
        self.cluster, self.folder = cluster, folder
        self.kubectl = rig.Kubectl(cluster)
        for name in ("charts", "deploy", "tests"):
            (folder / name).symlink_to(ROOT / name)
        prices, = (block for block in pages.read("docs/kubernetes.md")[1] if block.lines[0].startswith("provider,region"))
        (folder / "prices.csv").write_text(prices.text(), encoding="ascii")

    def start(self, text):
        for pattern, value in REPLACED:
            text = re.sub(pattern, value, text)
        return subprocess.Popen([*self.cluster.enter(), "bash", "-c", f"exec {text}"], cwd=self.folder, env=self.cluster.environment(), text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def run(self, text):
        process = self.start(text)
        try:
            printed, _ = process.communicate(timeout=DEADLINE_S)
        finally:
            process.kill()
        assert process.returncode == 0, f"{text}\n{printed[-3000:]}"
        return printed

    def watch(self, text):
        """Its first two lines."""
        process = self.start(text)
        try:
            return process.stdout.readline() + process.stdout.readline()
        finally:
            process.terminate()
            process.wait(timeout=DEADLINE_S)

    def finish(self, name):
        """As the operator would end that job."""
        result = json.loads(result_of_the_page())
        condition = {"type": "Finished", "status": "True", "reason": "Complete", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        self.kubectl.create_status("tj", name, {"state": "Complete", "conditions": [condition], "result": result})


def result_of_the_page():
    line, = (line for block in pages.read("docs/kubernetes.md")[1] for line in block.lines if line.startswith('{"loss":'))
    return line.replace("...", "5f2b" * 16)


@pytest.fixture(name="shell")
def fixture_shell(fresh_api_cluster, tmp_path):
    return Shell(fresh_api_cluster, tmp_path)


def test_the_pages_commands_do_what_they_say(shell):
    printed = {}
    for text in commands.CLUSTER:
        for before in BEFORE.get(text, []):
            shell.run(before)
        if text.startswith("kubectl explain"):
            shell.kubectl.until_served()
            processes.until(lambda: explained(shell), "the server tells of the CRD's fields", 60)
        if text.startswith("kubectl wait"):
            shell.finish(re.search(r"tj/(\S+)", text)[1])
        printed[text] = shell.watch(text) if text.endswith(" -w") else shell.run(text)
    for text, said in printed.items():
        assert RESULT not in text or json.loads(said) == json.loads(result_of_the_page()), said
        assert not text.endswith(" -w") or said.startswith("NAME "), said
        assert " scale " not in text or "scaled" in said, said
    assert list(json.loads(printed["kubectl get tj quickstart -o jsonpath='{.status.result}'"])) == list(json.loads(result_of_the_page()))


def explained(shell):
    try:
        return shell.kubectl("explain", "tj.spec")
    except RuntimeError:
        return ""


def test_the_commands_of_a_test_cluster_show_its_pods_and_run_inside_a_node(node_cluster):
    for text in commands.NODES:
        done = subprocess.run(["bash", "-c", text], cwd=ROOT, env={**os.environ, **node_cluster.environment()}, capture_output=True, text=True,
                              timeout=DEADLINE_S, check=False)
        assert done.returncode == 0, f"{text}\n{done.stdout}{done.stderr}"
        assert "kubelet" in done.stdout if "ps ax" in text else done.stdout or done.stderr, text
