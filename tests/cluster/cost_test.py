"""What a job costs, against a real API server: nodes with a price, pods that are bound and end, and what the status, kubectl and the metrics say."""

import json
import time

import operator_rig as stage_rig
import processes
import pytest

HEAD = "provider,region,zone,instance_type,capacity_type,price_per_hour,currency,valid_from\n"
PRICES = HEAD + ",,,cost-8,spot,360000,USD,\n,,,cost-8,on-demand,720000,USD,\n"  # half of it: 50 and 100 a second
SPOT, PAID = "cost-spot", "cost-paid"


def node(name, labels):
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"node.kubernetes.io/instance-type": "cost-8", **labels}},
            "spec": {"providerID": f"kwok://{name}"}}


@pytest.fixture(name="nodes")
def fixture_nodes(stage):
    """Two machines of eight cores, one of them spot."""
    stage.kubectl.apply(node(SPOT, {"karpenter.sh/capacity-type": "spot"}), node(PAID, {"karpenter.sh/capacity-type": "on-demand"}))
    for name in (SPOT, PAID):
        stage.kubectl.create_status("node", name, {"allocatable": {"cpu": "8", "memory": "32Gi"},
                                                   "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": stage_rig.now()}]})
    yield
    stage.kubectl("delete", "node", SPOT, PAID)


def priced_job(name, **spec):
    """Two workers that ask for half a machine each, and a coordinator that does."""
    half = {"resources": {"requests": {"cpu": "4"}}}
    coordinator = {"template": {"spec": {"containers": [{"name": "coordinator", **half}]}}}
    made = stage_rig.job(name, {"min": 1, "max": 2, "target": 2}, coordinator=coordinator, **spec)
    made["spec"]["workers"]["template"]["spec"]["containers"][0].update(half)
    return made


def bind(stage, name, on):
    """As a scheduler does it, and then the kubelet; since when it is there, which the API server notes."""
    namespace = stage.kubectl.namespace
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name, "namespace": namespace}, "target": {"kind": "Node", "name": on}}
    stage.kubectl("create", "--raw", f"/api/v1/namespaces/{namespace}/pods/{name}/binding", "-f", "-", stdin=json.dumps(binding))
    (since,) = [each["lastTransitionTime"] for each in stage.kubectl.get("pod", name)["status"]["conditions"] if each["type"] == "PodScheduled"]
    stage.run_pod(name)
    return seconds(since)


def begin(stage):
    """All of its pods run, the coordinator on demand; since when by their names, the coordinator's last."""
    names = [*stage.until_pods("worker", 2), *stage.until_pods("coordinator", 1)]
    return {name: bind(stage, name, on) for name, on in zip(names, (SPOT, SPOT, PAID))}


def seconds(text):
    return time.mktime(time.strptime(text, "%Y-%m-%dT%H:%M:%SZ"))


def ended(pod):
    return seconds(pod["status"]["containerStatuses"][0]["state"]["terminated"]["finishedAt"])


def test_a_jobs_pods_cost_what_their_machines_do(stage, nodes, tmp_path):
    """The sum by hand, to the millionth; a table that is mended counts without a new operator."""
    path = tmp_path / "prices.csv"
    path.write_text(PRICES.replace("USD", "", 1))
    operator = stage.operator("--no-lease", "--prices", str(path))
    refused = operator.until_logged("prices are refused")
    assert "line 2: the price has no currency" in refused["why"]
    path.write_text(PRICES)
    operator.until_logged("prices are read")
    assert operator.metric("prices ") == 2 and operator.metric("prices_refused") == 0
    stage.kubectl.apply(priced_job("gpt"))
    since = begin(stage)
    *workers, coordinator = since
    processes.until(lambda: float(stage.job("gpt").get("status", {}).get("cost", {}).get("spent", 0)) > 0, "it costs something", 120)
    for name in workers:
        stage.end_pod(name, 0)
    stage.finish("gpt")
    pods = stage.pods()
    saved = sum(50 * (ended(pods[name]) - since[name]) for name in workers)
    by_hand = saved + 100 * (ended(pods[coordinator]) - since[coordinator])
    cost = processes.until(lambda: (cost := stage.job("gpt")["status"]["cost"]) and all(pod.get("over") for pod in cost["pods"]) and cost,
                           "all of it is accounted for", 120)
    assert (float(cost["spent"]), float(cost["saved"]), cost["currency"]) == (by_hand, saved, "USD")
    assert float(cost["onDemandSpent"]) == by_hand + saved and cost["spentMicros"] == by_hand * 1000000
    assert float(cost["perMillionTokens"]) == pytest.approx(by_hand / (100 * 64 * 32) * 1e6, rel=1e-6)
    assert f"{by_hand:.2f} USD" in stage.kubectl("get", "tj", "gpt")
    label = f'{{training_job_namespace="{stage.kubectl.namespace}",training_job="gpt",currency="USD"}}'
    assert operator.metric(f"job_spent{label}") == by_hand and operator.metric(f"job_saved{label}") == saved


def test_without_prices_there_are_hours(stage, nodes):
    operator = stage.operator("--no-lease")
    operator.until_logged("there are no prices")
    stage.kubectl.apply(priced_job("gpt"))
    begin(stage)
    cost = processes.until(lambda: (cost := stage.job("gpt").get("status", {}).get("cost")) and cost["pods"] and cost, "its hours are counted", 120)
    assert "hours" in cost and not {"spent", "currency"} & cost.keys()


def test_a_spent_budget_suspends_and_a_higher_one_goes_on(stage, nodes, tmp_path):
    """50 a second for each worker and 100 for the coordinator: of 12,600 some seconds are left, less the last minute of all of them."""
    path = tmp_path / "prices.csv"
    path.write_text(PRICES)
    operator = stage.operator("--no-lease", "--prices", str(path))
    stage.kubectl.apply(priced_job("gpt", cost={"budget": {"limit": 12600}}, ttlSecondsAfterFinished=1))
    since = begin(stage)
    processes.until(lambda: not stage.pods("worker"), "its workers are told to go", 120)
    for name in since:  # as a kubelet ends them
        if stage.kubectl.exists("pod", name):
            stage.kubectl("delete", "pod", name, "--grace-period=0", "--force", "--wait=false")
    stage.until_message("gpt", "it goes on with a limit above ")
    (suspended,) = [each for each in stage.job("gpt")["status"]["conditions"] if each["type"] == "Suspended"]
    assert (suspended["status"], suspended["reason"]) == ("True", "BudgetSpent") and not stage.job("gpt")["spec"].get("suspend")
    assert float(stage.job("gpt")["status"]["cost"]["spent"]) < 12600 and operator.metric("status_conflicts") == 0
    stage.kubectl("patch", "tj", "gpt", "--type=merge", "-p", json.dumps({"spec": {"cost": {"budget": {"limit": 90000}}}}))
    assert len(stage.until_pods("worker", 2)) == 2
    assert "BudgetSpent" in {event["reason"] for event in stage.kubectl.get("events.events.k8s.io")}


def test_with_too_few_machines_for_long_one_pod_waits_and_when_it_has_one_the_others_follow(stage, nodes):
    """No scheduler is there, so that nobody finds a node; another operator goes on with what the first one wrote."""
    first = stage.operator("--no-lease")
    stage.kubectl.apply(priced_job("gpt", cost={"idleAfter": "2s"}))
    (coordinator,) = stage.until_pods("coordinator", 1)
    bind(stage, coordinator, PAID)
    stage.until_pods("worker", 2)
    processes.until(lambda: not stage.pods("coordinator"), "its coordinator is told to go", 120)
    stage.kubectl("delete", "pod", coordinator, "--grace-period=0", "--force", "--wait=false")  # as a kubelet ends it
    said = stage.until_message("gpt", "waits for one, and the others follow it")
    assert said.startswith("idle since "), said
    (waiting,) = stage.until_pods("worker", 1)
    status = stage.job("gpt")["status"]
    assert (status["state"], stage.condition("gpt", "Idle")) == ("Idle", "True") and {"shortTime", "sinceTime"} <= status["idle"].keys()
    first.kill()
    stage.operator("--no-lease")
    bind(stage, waiting, SPOT)
    assert waiting in stage.until_pods("worker", 2)
    assert coordinator not in stage.until_pods("coordinator", 1)
    status = processes.until(lambda: (now := stage.job("gpt")["status"])["ring"]["term"] == 2 and now, "the next term", 120)
    assert stage.condition("gpt", "Idle") == "False" and "sinceTime" not in status.get("idle", {})
    assert "Idle" in {event["reason"] for event in stage.kubectl.get("events.events.k8s.io")}
