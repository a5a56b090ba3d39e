"""What Karpenter itself does to a machine with a worker, and what the operator makes of it: real NodePools, prices, consolidation and drain, on machines that
kwok pretends (karpenter_rig.py). The test says what a coordinator would, and when a machine is initialized. No worker trains here: what a leave costs
node_test.py shows; this shows what is asked of whom, in which order."""

import calendar
import itertools
import time

import cluster as clusters
import karpenter_rig
import operator_rig as stage_rig
import processes
import pytest
import rig

PORT = 7171
NUMBERS = itertools.count(1)
SOMEONE_ELSE = "someone-else"
DEAR, CHEAP, SMALL = "test.dear", "test.cheap", "test.small"
CHEAP_AS_SPOT, CHEAP_ON_DEMAND = "test.volatile", "test.steady"
TIMES = 36000  # so that a second of a machine is tens
EXACT = 0.01

pytestmark = pytest.mark.turns("all")


@pytest.fixture(name="karpenter", scope="module")
def fixture_karpenter(fresh_api_cluster, tmp_path_factory):
    try:
        clusters.build("--karpenter")
    except clusters.Offline as why:
        pytest.skip(str(why))
    karpenter_rig.start(fresh_api_cluster, tmp_path_factory.mktemp("karpenter"))
    return fresh_api_cluster


@pytest.fixture(name="api")
def fixture_api(karpenter):
    """A namespace in the cluster that has Karpenter, for `stage`."""
    kubectl = rig.make_namespace(karpenter, f"k{next(NUMBERS)}")
    yield kubectl
    rig.Kubectl(karpenter)("delete", "namespace", kubectl.namespace, "--wait=false")


@pytest.fixture(name="pool")
def fixture_pool(stage):
    """Dear machines, as nothing else is to be had; and others, on which coordinators stay. They go when their pods have."""
    steady = karpenter_rig.Pool(stage.kubectl, "steady", [SMALL])
    training = karpenter_rig.Pool(stage.kubectl, "training", [DEAR], warms_up=True)
    yield training
    stage.kubectl("delete", "trainingjob", "--all", timeout=300)
    for pool in (training, steady):
        pool.delete()


@pytest.fixture(name="market")
def fixture_market(stage):
    """Machines that are to be had as spot as well."""
    steady = karpenter_rig.Pool(stage.kubectl, "steady", [SMALL])
    market = karpenter_rig.Pool(stage.kubectl, "market", [CHEAP_AS_SPOT, CHEAP_ON_DEMAND], capacities=(karpenter_rig.SPOT, karpenter_rig.ON_DEMAND))
    yield market
    stage.kubectl("delete", "trainingjob", "--all", timeout=300)
    for pool in (market, steady):
        pool.delete()


@pytest.fixture(name="job")
def fixture_job(stage, pool, tmp_path):
    """Two workers on a dear machine each, and their coordinator says so."""
    stage.operator("--no-lease", "--coordinator-port", str(PORT))
    stage.kubectl.apply(spread_job())
    coordinator = stage_rig.PlayedCoordinator(stage, "gpt", tmp_path / "coordinator", PORT, karpenter_rig.ANY_ADDRESS)
    coordinator.says([])
    until_running(stage, pool, 2)
    coordinator.says(range(2))
    processes.until(lambda: stage.job("gpt")["status"].get("ring", {}).get("size") == 2, "the operator hears of the ring", 120)
    yield coordinator
    coordinator.stop()


def spread_job(workers_on="training", **spec):
    """One worker fills a machine."""
    def on(pool, container, cpu):
        return {"template": {"spec": {"nodeSelector": {karpenter_rig.POOL: pool},
                                      "containers": [{"name": container, "image": "worker:1", "resources": {"requests": {"cpu": cpu}}}]}}}
    return stage_rig.job("gpt", {"min": 1, "max": 4, "target": 2, **on(workers_on, "trainer", "4")}, coordinator=on("steady", "coordinator", "1"), **spec)


def someone_else():
    """A pod that fills a machine as a worker does, and may not be moved."""
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": SOMEONE_ELSE, "annotations": {"karpenter.sh/do-not-disrupt": "true"}},
            "spec": spread_job()["spec"]["workers"]["template"]["spec"]}


def until_running(stage, pool, count, others=0):
    """So many workers, and pods beside the job. Each machine begins as soon as it is there."""
    def run():
        for machine in pool.warming().values():
            pool.begin(machine)
        found = workers(stage)
        running = [pod for pod in stage.kubectl.get("pods") if pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]]
        return len(found) == count and len(running) == count + 1 + others and found
    return processes.until(run, f"{count} workers that run", 180)


def workers(stage):
    return stage.pods("worker")


def uids(pods):
    return {pod["metadata"]["uid"] for pod in pods.values()}


def machine_of(pod):
    return pod["spec"].get("nodeName")


def index_of(pod):
    return int(pod["metadata"]["labels"]["ringmaster.dev/worker"])


def events(stage):
    return [event["reason"] for event in stage.kubectl.get("events.events.k8s.io") if event["regarding"]["kind"] == "TrainingJob"]


def until_one_more(stage, before):
    """A third worker is made, and those who were there stay."""
    (new,) = uids(stage.until_pods("worker", 3)) - uids(before)
    return next(pod for pod in workers(stage).values() if pod["metadata"]["uid"] == new)


def is_proposal(stage, pool, machine, before):
    """Nobody is told to go, and the machine is not being deleted."""
    assert "deletionTimestamp" not in pool.machines()[machine]["metadata"]
    assert uids(before) <= uids(workers(stage))


def test_what_karpenter_proposes_moves_nobody_and_is_taken_back_for_nothing(stage, pool, job):
    """It wants cheaper machines, and the one that it buys is lost before it is initialized: Karpenter takes its taint back."""
    before = workers(stage)
    node, replacement = pool.until_proposed([DEAR, CHEAP])
    machine = node["metadata"]["name"]
    until_one_more(stage, before)
    is_proposal(stage, pool, machine, before)
    assert stage.job("gpt")["status"]["workers"]["surge"] == 1
    pool.offers([DEAR])
    stage.kubectl("delete", "nodeclaim", replacement, "--wait=false")
    processes.until(lambda: not karpenter_rig.has_taint(pool.machines()[machine], karpenter_rig.DISRUPTED), "Karpenter takes its taint back", 120)
    assert uids(stage.until_pods("worker", 2)) == uids(before)
    processes.until(lambda: {"NoticeReceived", "NoticeWithdrawn"} <= set(events(stage)), "both are told", 60)
    assert not {"Relieved", "Interruption", "WorkerLeft", "NodeLost"} & set(events(stage))
    assert not any(stage.job("gpt")["status"].get("restarts", {}).get(kind) for kind in ("failure", "infrastructure", "preemption"))


def test_a_worker_leaves_a_machine_that_karpenter_gives_up_when_another_one_has_its_place(stage, pool, job):
    """A machine becomes free for the third worker before that which Karpenter waits for is initialized."""
    stage.kubectl.apply(someone_else())
    until_running(stage, pool, 2, others=1)
    before = workers(stage)
    node, replacement = pool.until_proposed([DEAR, CHEAP])
    machine = node["metadata"]["name"]
    third = until_one_more(stage, before)
    stage.kubectl("delete", "pod", SOMEONE_ELSE)
    processes.until(lambda: workers(stage)[third["metadata"]["name"]]["status"].get("phase") == "Running", "the third worker runs", 120)
    is_proposal(stage, pool, machine, before)
    job.says([*(index_of(pod) for pod in before.values()), index_of(third)])
    left = stage.until_pods("worker", 2)
    assert machine not in {machine_of(pod) for pod in left.values()} and third["metadata"]["name"] in left
    assert "Relieved" in events(stage)
    job.says([index_of(pod) for pod in left.values()])
    pool.begin(processes.until(lambda: pool.warming().get(replacement), "Karpenter's replacement is there", 120))
    processes.until(lambda: machine not in pool.machines(), "the machine is gone", 120)
    assert uids(workers(stage)) == uids(left), "its end interrupts nobody"
    assert not {"Interruption", "NodeLost"} & set(events(stage))


def test_when_karpenter_deletes_a_machine_its_worker_goes_and_another_one_was_made_before(stage, pool, job):
    """It has its replacement before the third worker has a machine: the deletion of the Node is what counts. Who of those that have none is kept then does not matter."""
    before = workers(stage)
    node, replacement = pool.until_proposed([DEAR, CHEAP])
    machine = node["metadata"]["name"]
    until_one_more(stage, before)
    pool.rests()
    is_proposal(stage, pool, machine, before)
    pool.begin(processes.until(lambda: pool.warming().get(replacement), "Karpenter's replacement is there", 120))
    processes.until(lambda: machine not in pool.machines(), "the machine is gone", 120)
    found = until_running(stage, pool, 2)
    assert machine not in {machine_of(pod) for pod in found.values()}
    assert CHEAP in {pool.machines()[machine_of(pod)]["metadata"]["labels"]["node.kubernetes.io/instance-type"] for pod in found.values()}
    assert not any(stage.job("gpt")["status"]["restarts"].get(kind) for kind in ("failure", "infrastructure"))


def offer_of(nodes, pod):
    """(type, capacity) of the machine that it is on."""
    labels = nodes[machine_of(pod)]["metadata"]["labels"]
    return labels[karpenter_rig.TYPE], labels[karpenter_rig.CAPACITY]


def by_hand(stage, nodes, until):
    """(what all pods have cost up to that second, on demand): hours times price times share of the machine, by its processors."""
    spent = full = 0.0
    for pod in stage.pods().values():
        kind, capacity = offer_of(nodes, pod)
        offered = karpenter_rig.TYPES[kind][1]
        (since,) = [seconds(each["lastTransitionTime"]) for each in pod["status"]["conditions"] if each["type"] == "PodScheduled"]
        share = int(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"]) / processors(nodes[machine_of(pod)])
        spent += (until - since) / 3600 * share * offered[capacity] * TIMES
        full += (until - since) / 3600 * share * offered[karpenter_rig.ON_DEMAND] * TIMES
    return spent, full


def seconds(text):
    return calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%SZ"))


def processors(node):
    text = node["status"]["allocatable"]["cpu"]
    return int(text.removesuffix("m")) / 1000 if text.endswith("m") else int(text)


def test_workers_go_to_the_cheapest_spot_machine_but_one_of_the_base_and_each_is_billed_what_its_machine_costs(stage, market, tmp_path):
    """Nobody says in the test where they go, or what their machines are: that is Karpenter's choice by price, and its labels."""
    path = tmp_path / "prices.csv"
    path.write_text(karpenter_rig.price_table(TIMES), encoding="ascii")
    stage.operator("--no-lease", "--prices", str(path)).until_logged("prices are read")
    stage.kubectl.apply(spread_job("market", spot={"onDemandBase": 1}))
    found = until_running(stage, market, 2)
    nodes = {node["metadata"]["name"]: node for node in stage.kubectl.get("nodes")}
    base, other = (next(pod for pod in found.values() if (pod["metadata"]["labels"].get("ringmaster.dev/capacity") == "on-demand") == is_base) for is_base in (True, False))
    assert offer_of(nodes, base) == (CHEAP_ON_DEMAND, "on-demand")
    assert offer_of(nodes, other) == (CHEAP_AS_SPOT, "spot")
    cost = processes.until(lambda: (cost := stage.job("gpt")["status"].get("cost", {})) and len(cost.get("pods", [])) == 3 and "spent" in cost and cost,
                           "all pods are counted", 180)
    assert {pod["metadata"]["uid"] for pod in stage.pods("worker").values()} == uids(found), "they are those that were there"
    spent, full = by_hand(stage, nodes, seconds(cost["accountedTime"]))
    assert float(cost["spent"]) == pytest.approx(spent, rel=EXACT) and cost["currency"] == "USD"
    assert float(cost["onDemandSpent"]) == pytest.approx(full, rel=EXACT)
    assert float(cost["saved"]) == pytest.approx(full - spent, rel=EXACT) and full > spent
    rates = {pod["worker"]: (pod["priceMicros"], pod["onDemandMicros"]) for pod in cost["pods"] if pod.get("worker", -1) >= 0}
    (dear, dear_full), (cheap, cheap_full) = rates[index_of(base)], rates[index_of(other)]
    assert dear == dear_full and (dear / cheap, cheap_full / cheap) == (pytest.approx(1.5 / 0.5), pytest.approx(3.0 / 0.5))
