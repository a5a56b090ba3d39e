"""Several releases of the operator on one cluster: which of them acts on a job, and what the others say."""

import json

import operator_rig as stage_rig
import processes
import pytest
import rights


def writes(operator, stage):
    """What it has written for the jobs of the stage."""
    return [line for line in operator.lines() if "resource" in line and line.get("job", "").startswith(f"{stage.kubectl.namespace}/")]


def resize(stage, workers):
    stage.kubectl("patch", "trainingjob", "gpt", "--type=merge", "-p", json.dumps({"spec": {"workers": {"target": workers}}}))
    return stage.until_pods("worker", workers)


def events(stage, reason):
    return [event for event in stage.kubectl.get("events.events.k8s.io") if event["reason"] == reason]


def until_ready(operator):
    processes.until(lambda: operator.get("/readyz") == (200, "ready\n"), "ready", 60)


@pytest.mark.parametrize("end", ["told to end", "killed"])
def test_of_two_releases_for_one_namespace_the_older_acts_and_the_other_says_so_until_it_has_ended(stage, end):
    history = stage.history()
    first = stage.operator("--lease", "one-operator")
    until_ready(first)
    second = stage.operator("--lease", "two-operator")
    said = second.until_logged("another release acts")["why"]
    namespace = stage.kubectl.namespace
    assert said.startswith(f"another release of the operator looks after the namespace {namespace}, by the Lease {namespace}/one-operator, which is older")
    assert said.endswith("Uninstall one of the two")
    stage.kubectl.apply(stage_rig.job("gpt"))
    workers = stage.until_pods("worker", 3)
    for name in [*workers, *stage.until_pods("coordinator", 1)]:
        stage.run_pod(name)
    processes.until(lambda: stage.job("gpt")["status"]["workers"]["ready"] == 3, "three ready workers", 120)
    status, body = second.get("/readyz")
    assert (status, body) == (503, f"not ready: {said}\n")
    assert (second.metric("refused"), second.metric("leader"), first.metric("refused"), first.metric("leader")) == (1, 0, 0, 1)
    (event,) = stage.kubectl.until(lambda found: [each for each in found if each["reason"] == "AnotherRelease"], "the event", "events.events.k8s.io")
    assert event["note"] == said and (event["regarding"]["kind"], event["regarding"]["name"]) == ("Lease", "two-operator")
    assert writes(first, stage) and not writes(second, stage)
    if end == "killed":
        first.kill()
    else:
        assert first.stop() == 0
    second.until_logged("leading")
    until_ready(second)
    assert (second.metric("refused"), second.metric("leader")) == (0, 1)
    resize(stage, 4)
    assert stage.indices() == {0: [1], 1: [1], 2: [1], 3: [1]}
    assert set(history.creations().values()) == {1}, "the job went on, and no pod was made twice"


def test_the_older_release_that_comes_back_acts_again_and_the_younger_makes_way(stage):
    first = stage.operator("--lease", "one-operator")
    first.until_logged("leading")
    second = stage.operator("--lease", "two-operator")
    second.until_logged("another release acts")
    assert first.stop() == 0
    second.until_logged("leading")
    stage.kubectl.apply(stage_rig.job("gpt"))
    stage.until_pods("worker", 3)
    third = stage.operator("--lease", "one-operator")
    until_ready(third)
    assert second.wait() == 4
    assert "by the Lease" in second.until_logged("stopped")["why"]
    done = len(writes(second, stage))
    resize(stage, 4)
    assert len(writes(second, stage)) == done and writes(third, stage)
    assert stage.indices() == {0: [1], 1: [1], 2: [1], 3: [1]}


def test_replicas_of_one_release_are_no_rivals(stage):
    first = stage.operator("--lease", "one-operator")
    until_ready(first)
    second = stage.operator("--lease", "one-operator")
    until_ready(second)
    assert first.stop() == 0
    second.until_logged("leading")
    until_ready(second)
    assert not second.lines("another release acts")


def test_of_two_releases_for_all_namespaces_the_older_acts(stage, other):
    first = stage.operator("--lease", "one-operator", everywhere=True)
    first.until_logged("leading")
    second = stage.operator("--lease", "two-operator", "--lease-namespace", other.namespace, everywhere=True)
    said = second.until_logged("another release acts")["why"]
    assert f"looks after all namespaces, by the Lease {stage.kubectl.namespace}/one-operator" in said and "--set namespace=NAME" in said
    assert first.stop() == 0
    second.until_logged("leading")
    assert second.stop() == 0


def test_who_looks_after_all_leaves_a_namespace_to_the_release_for_that_alone(stage, other):
    wide = stage.operator("--lease", "wide-operator", "--lease-namespace", other.namespace, everywhere=True)
    until_ready(wide)
    stage.kubectl.apply(stage_rig.job("gpt"))
    stage.until_pods("worker", 3)
    narrow = stage.operator("--lease", "narrow-operator")
    said = wide.until_logged("a namespace is left out", namespace=stage.kubectl.namespace)["why"]
    assert f"by the Lease {stage.kubectl.namespace}/narrow-operator" in said
    until_ready(narrow)
    assert not narrow.lines("another release acts"), "it need not see Leases elsewhere, and its rights end at its namespace"
    done = len(writes(wide, stage))
    resize(stage, 4)
    assert writes(narrow, stage) and len(writes(wide, stage)) == done
    assert (wide.metric("namespaces_left"), wide.metric("leader")) == (1, 1)
    elsewhere = stage_rig.job("elsewhere")
    other.apply(elsewhere)
    processes.until(lambda: len(other.get("pods", "-l", "ringmaster.dev/role=worker")) == 3, "the other namespaces are looked after as before", 120)
    assert narrow.stop() == 0
    wide.until_logged("a namespace is no longer left out", namespace=stage.kubectl.namespace)
    stage.kubectl("delete", "pod", next(iter(stage.pods("worker"))), "--wait=false", "--grace-period=0", "--force")
    processes.until(lambda: len(writes(wide, stage)) > done and len(stage.pods("worker")) == 4, "it looks after the job again", 120)
    other("delete", "trainingjob", "elsewhere")
    assert wide.stop() == 0


def test_an_operator_that_may_not_list_leases_says_so_once_and_acts(stage, tmp_path):
    unseen = [right for right in rights.of_the_chart() if str(right) not in ("list leases", "watch leases")]
    somebody = rights.Somebody(stage.kubectl, tmp_path, unseen)
    operator = stage.operator(kubeconfig=somebody.config)
    assert 'cannot list resource "leases"' in operator.until_logged("leases are not to be listed")["why"]
    stage.kubectl.apply(stage_rig.job("gpt"))
    stage.until_pods("worker", 3)
    until_ready(operator)
    processes.until(lambda: operator.metric("watch_failures_total") > 2, "it asked again", 60)
    assert len(operator.lines("leases are not to be listed")) == 1
    assert not operator.lines("a list or watch failed") or all(line["resource"] != "leases" for line in operator.lines("a list or watch failed"))
    somebody.close()


def test_with_the_documented_rights_alone_an_operator_sees_the_other_release(stage, tmp_path):
    first = stage.operator("--lease", "one-operator")
    until_ready(first)
    somebody = rights.Somebody(stage.kubectl, tmp_path, rights.of_the_chart())
    second = stage.operator("--lease", "two-operator", kubeconfig=somebody.config)
    second.until_logged("another release acts")
    processes.until(lambda: events(stage, "AnotherRelease"), "the event", 60)
    somebody.close()
