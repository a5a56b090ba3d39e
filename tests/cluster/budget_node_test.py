"""A job that may cost so much and no more, on nodes whose machines have a price: kubelets bring the table of prices to the operator, end the pods when
the budget is spent, and say when each of them did end."""

import concurrent.futures
import datetime
import json
import subprocess
from fractions import Fraction

import node_rig
import operator_rig
import processes
import pytest
import rig
from node_rig import coordinator_on, hurry, name_of

STEPS = 250
CAPACITY, TYPE = "karpenter.sh/capacity-type", "node.kubernetes.io/instance-type"
MACHINE, PRICES = "budget-8", "machine-prices"
PRICE = {"spot": 360000, "on-demand": 720000}  # an hour
TABLE = "provider,region,zone,instance_type,capacity_type,price_per_hour,currency,valid_from\n" + \
    "".join(f",,,{MACHINE},{capacity},{price},USD,\n" for capacity, price in PRICE.items())
MACHINES = {"node-1": "on-demand", "node-2": "spot", "node-3": "spot"}
KEPT_S = 60  # of all pods, for the end
TRAINS_S = 12  # on what there is beyond that
EXACT = 0.01


@pytest.fixture(name="place", scope="module")
def fixture_place(node_cluster):
    """As elsewhere, and the operator has prices. The first node is dear."""
    system, everywhere = node_rig.restricted_namespace(node_cluster, node_rig.SYSTEM), rig.Kubectl(node_cluster)
    system.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": PRICES}, "data": {"prices.csv": TABLE}})
    for node, capacity in MACHINES.items():
        everywhere("label", "node", node, f"{CAPACITY}={capacity}", f"{TYPE}={MACHINE}")
    yield from node_rig.a_place(node_cluster, {"prices.configMap": PRICES})
    everywhere("label", "node", *MACHINES, f"{CAPACITY}-", f"{TYPE}-")
    node_rig.install_operator(node_cluster)
    system("delete", "configmap", PRICES)


@pytest.fixture(name="weights", scope="module")
def fixture_weights(place):
    """What the undisturbed run in the same image gives, some time: the job trains meanwhile."""
    with concurrent.futures.ThreadPoolExecutor() as side:
        yield side.submit(lambda: node_rig.run_locally(place, STEPS, "alone-unpriced")["weightsSha256"])


class Bill:
    """The sum by hand: what the API server told of each pod of a job, whole seconds, and multiplication."""

    def __init__(self, kubectl, job):
        self.history = operator_rig.PodHistory(kubectl)
        self.job = job
        self.can_give = {name_of(node): node["status"]["allocatable"] for node in rig.Kubectl(kubectl.cluster).get("nodes")}

    def share(self, pod):
        asked, there = pod["spec"]["containers"][0]["resources"]["requests"], self.can_give[pod["spec"]["nodeName"]]
        return max(amount(asked[what]) / amount(there[what]) for what in ("cpu", "memory"))

    def rate(self, pod, capacity=None):
        """A second of it."""
        return self.share(pod) * PRICE[capacity or MACHINES[pod["spec"]["nodeName"]]] / 3600

    def pods(self):
        """Those that have a node, as they were told last."""
        return [pod for pod in self.history.newest() if pod["metadata"].get("labels", {}).get("ringmaster.dev/job") == self.job and bound(pod)]

    def sums(self, capacity=None):
        """What all of them cost, when each has ended; of that capacity where one is said."""
        return sum(self.rate(pod, capacity) * (ended(pod) - bound(pod)) for pod in self.pods())

    def now(self):
        """(what it costs up to now, a second of those that run)"""
        running = [pod for pod in self.pods() if not ended(pod)]
        return sum(self.rate(pod) * ((ended(pod) or seconds_now()) - bound(pod)) for pod in self.pods()), sum(self.rate(pod) for pod in running)


def seconds_now():
    return int(datetime.datetime.now(datetime.timezone.utc).timestamp())


def seconds(text):
    return int(datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp())


def bound(pod):
    """0: it has no node."""
    return next((seconds(each["lastTransitionTime"]) for each in pod["status"].get("conditions", [])
                 if each["type"] == "PodScheduled" and each["status"] == "True"), 0)


def ended(pod):
    """0: it runs."""
    return next((seconds(each["state"]["terminated"]["finishedAt"]) for each in pod["status"].get("containerStatuses", []) if "terminated" in each["state"]), 0)


def amount(text):
    """A quantity of Kubernetes'."""
    for suffix, times in (("m", Fraction(1, 1000)), ("Ki", 2 ** 10), ("Mi", 2 ** 20), ("Gi", 2 ** 30)):
        if text.endswith(suffix):
            return int(text.removesuffix(suffix)) * Fraction(times)
    return Fraction(text)


class Log:
    """What a pod says until it ends, also when it is gone."""

    def __init__(self, kubectl, pod):
        self.path = kubectl.cluster.logs / f"said-{pod}.log"
        with open(self.path, "wb") as output:
            self.process = subprocess.Popen([*kubectl.cluster.enter(), "kubectl", "-n", kubectl.namespace, "logs", "-f", pod],
                                            stdout=output, env=kubectl.cluster.environment(), preexec_fn=processes.die_with_parent)

    def states(self, name):
        """Why its coordinator was in that state, each time."""
        self.process.wait(node_rig.DEADLINE_S)
        lines = (json.loads(line) for line in self.path.read_text(encoding="utf-8").splitlines() if line.startswith("{"))
        return [line["why"] for line in lines if line.get("message") == "state" and line["name"] == name]


def limit(training, money):
    training.kubectl("patch", "tj", training.name, "--type=merge", "-p", json.dumps({"spec": {"cost": {"budget": {"limit": float(money)}}}}))


def until_paid(training, message=""):
    """Its status, with that in its message, when its pods have ended and all that they cost is in it."""
    def is_over():
        status = training.status()
        return message in status["message"] and all(pod.get("over") for pod in status["cost"].get("pods", [])) and status
    try:
        return processes.until(is_over, "all pods have ended, and are paid", 300)
    except TimeoutError as late:
        raise AssertionError(f"{late}\n{training.story()}") from None


def is_paid(cost, bill):
    for said, by_hand in (("spent", bill.sums()), ("onDemandSpent", bill.sums("on-demand"))):
        assert float(cost[said]) == pytest.approx(float(by_hand), rel=EXACT), (cost, said)
    assert float(cost["saved"]) == pytest.approx(float(cost["onDemandSpent"]) - float(cost["spent"])) and float(cost["saved"]) > 0


@pytest.mark.turns(0)
def test_a_job_stops_where_its_budget_is_spent_and_goes_on_from_that_very_step_with_a_higher_one(place, weights):
    bill = Bill(place, "frugal")
    training = node_rig.Training(place, node_rig.training_job("frugal", STEPS, coordinator=coordinator_on(1), cost={"budget": {"limit": 10**6}}))
    try:
        said = training.until_step(training.until_ring_of(3)["progress"]["step"] + 5)
        log = Log(place, name_of(training.pods("coordinator")[0]))
        spent, a_second = bill.now()
        limit(training, spent + (KEPT_S + TRAINS_S) * a_second)
        status = until_paid(training, "it goes on with a limit above ")
        (suspended,) = [each for each in status["conditions"] if each["type"] == "Suspended"]
        assert (suspended["status"], suspended["reason"]) == ("True", "BudgetSpent") and not training.object()["spec"].get("suspend")
        assert not training.pods("worker") and not training.pods("coordinator"), training.story()
        is_paid(status["cost"], bill)
        saved = status["checkpoint"]["step"]
        assert saved > said["progress"]["step"], "it trained on"
        assert log.states("SAVING") == [f"saving step {saved} from 3 workers"], "what they held is what is saved"
        limit(training, 10**6)
        again = training.until_ring_of(3)
        assert [event["step"] for event in again["events"] if event["event"] == "checkpointLoaded"] == [saved]
        assert again["term"] == said["term"] + 1 and again["stepsRedone"] == {"announced": 0, "sudden": 0}
        hurry(training)
        status = training.finish()
        assert status["result"]["weightsSha256"] == weights.result()
        assert status["goodput"]["reworkSeconds"] == 0 and status["restarts"] == {**status["restarts"], "failure": 0, "preemption": 0, "infrastructure": 0}
        node_rig.check_time(status)
        assert {"BudgetSpent", "Complete"} <= set(training.events())
        is_paid(until_paid(training)["cost"], bill)
    finally:
        place("delete", "trainingjob", training.name, "--wait=true", "--ignore-not-found", timeout=300)
        bill.history.close()
