"""TrainingJobs on three nodes: whatever happens during training, the weights are those of an undisturbed `ringmaster run`."""

import json

import images
import monitor_rig
import node as nodes
import node_rig
import processes
import prometheus
import pytest
import rig
from node_rig import SPREAD, a_worker, coordinator_on, name_of, next_ring

STEPS = 1200
LEAVES = "aws-node-termination-handler/spot-itn=soon:NoSchedule"  # says that a node will go; Kubernetes itself ends no pod for it, so that it is the operator that does
MAY_LEAVE = "aws-node-termination-handler/rebalance-recommendation=soon:NoSchedule"
NODES = ("node-1", "node-2", "node-3")
FULL, FULL_GONE = "full=yes:NoSchedule", "full-"  # takes no pods; that is no word of the node's end, as a cordon is
CAPACITY = "karpenter.sh/capacity-type"
ZONE, KIND = "topology.kubernetes.io/zone", "node.kubernetes.io/instance-type"


@pytest.fixture(name="weights", scope="module")
def fixture_weights(place):
    """What the undisturbed run in the same image gives."""
    return node_rig.run_locally(place, STEPS)["weightsSha256"]


@pytest.fixture(name="start")
def fixture_start(place, request):
    """start(**fields) begins a job of the test's own name; it is deleted at the end."""
    begun = []

    def start(**fields):
        name = f"job-{node_rig.mark_of(request)}-{len(begun)}"
        begun.append(name)
        return node_rig.Training(place, node_rig.training_job(name, STEPS, **fields))
    yield start
    for name in begun:
        place("delete", "trainingjob", name, "--wait=true", "--ignore-not-found", timeout=300)


@pytest.mark.turns(2)
def test_a_job_is_applied_shows_its_progress_and_ends_with_the_weights_of_a_local_run(start, weights):
    training = start()
    training.until_step(1)
    status = training.finish()
    assert status["result"]["weightsSha256"] == weights
    assert status["result"]["step"] == STEPS and status["result"]["exact"]
    assert status["restarts"] == {**status["restarts"], "failure": 0, "preemption": 0, "infrastructure": 0}
    assert {"WorkersCreated", "Complete"} <= set(training.events())


def evict(kubectl, pod):
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": kubectl.namespace}}
    return kubectl("create", "--raw", f"/api/v1/namespaces/{kubectl.namespace}/pods/{pod}/eviction", "-f", "-", stdin=json.dumps(body))


def kill_trainer(kubectl, pod):
    """By the name of its process, which the kernel cuts after 15 characters."""
    find = 'for p in /proc/[0-9]*; do read name < "$p/comm"; [ "$name" != ringmaster-trai ] || kill -KILL "${p#/proc/}"; done'
    kubectl("exec", pod, "-c", "trainer", "--", "sh", "-c", find)


@pytest.mark.turns(0)
def test_workers_that_are_deleted_evicted_or_tainted_leave_and_are_replaced(start, weights, node_cluster, place):
    training = start(workers={"min": 3}, pod=SPREAD, coordinator=coordinator_on(1))  # node 1 is never tainted
    said = training.until_ring_of(3)
    with pytest.raises(RuntimeError, match="disruption budget"):
        evict(place, name_of(a_worker(training)))  # three are the least: the budget forbids it
    place("patch", "trainingjob", training.name, "--type=merge", "-p", json.dumps({"spec": {"workers": {"target": 4}}}))
    said = next_ring(training, 4, said)
    processes.until(lambda: place.get("poddisruptionbudget", f"{training.name}-workers")["status"].get("disruptionsAllowed"), "one may go", 120)
    evict(place, name_of(a_worker(training)))
    said = next_ring(training, 4, said)
    place("delete", "pod", name_of(a_worker(training)), "--wait=false")
    said = next_ring(training, 4, said)
    number = training.node_of(name_of(a_worker(training, away_from=[1])))
    place("taint", "node", f"node-{number}", LEAVES)
    try:
        said = next_ring(training, 4, said)
        processes.until(lambda: f"node-{number}" not in {pod["spec"].get("nodeName") for pod in training.workers()}, "its pod is gone", 120)
    finally:
        place("taint", "node", f"node-{number}", f"{LEAVES.partition('=')[0]}-")
    status = training.finish()
    assert status["result"]["weightsSha256"] == weights
    assert status["restarts"]["preemption"] >= 3 and status["restarts"]["failure"] == 0, status["restarts"]


@pytest.mark.turns(1)
def test_who_is_on_a_machine_that_may_go_leaves_once_its_replacement_is_in_the_ring(start, weights, place):
    training = start(workers={"min": 3}, pod=SPREAD, coordinator=coordinator_on(1))
    said = training.until_ring_of(3)
    leaver = a_worker(training, away_from=[1])
    number = training.node_of(name_of(leaver))
    place("taint", "node", f"node-{number}", MAY_LEAVE)
    try:
        before, said = said, training.until_ring_of(3, beyond=said["ring"]["generation"])
        leaves = int(leaver["metadata"]["labels"]["ringmaster.dev/worker"])
        stayed, members = ({member["worker"] for member in page["ring"]["members"]} for page in (before, said))
        assert members - stayed and stayed - members == {leaves}, "one change: another one in its place"
        assert said["ring"]["generation"] == before["ring"]["generation"] + 1, training.story()
        processes.until(lambda: f"node-{number}" not in {pod["spec"].get("nodeName") for pod in training.workers()}, "its pod is gone", 120)
        assert said["stepsRedone"] == {"announced": 0, "sudden": 0}, said
    finally:
        place("taint", "node", f"node-{number}", f"{MAY_LEAVE.partition('=')[0]}-")
    status = training.finish()
    assert status["result"]["weightsSha256"] == weights
    assert status["restarts"] == {**status["restarts"], "failure": 0, "preemption": 0, "infrastructure": 0}
    assert "Relieved" in training.events() and "Interruption" not in training.events(), training.story()


@pytest.fixture(name="spot_nodes")
def fixture_spot_nodes(place):
    """Nodes 2 and 3 are spot machines, as Karpenter marks them."""
    for node in ("node-2", "node-3"):
        place("label", "node", node, f"{CAPACITY}=spot")
    yield
    for node in ("node-2", "node-3"):
        place("label", "node", node, f"{CAPACITY}-")


@pytest.mark.turns(2)
def test_one_worker_stays_on_a_machine_that_nobody_takes_away(start, weights, place, spot_nodes):
    training = start(spot={"prefer": True, "onDemandBase": 1}, coordinator=coordinator_on(1))

    def base():
        """The name of its pod, and on which nodes it and the others are."""
        one = [pod for pod in training.workers() if pod["metadata"]["labels"].get("ringmaster.dev/capacity") == "on-demand"]
        others = [pod for pod in training.workers() if pod not in one]
        assert [training.node_of(name_of(pod)) for pod in one] == [1], one
        assert {training.node_of(name_of(pod)) for pod in others} <= {2, 3}, "who is not of the base prefers spot machines"
        return name_of(one[0])
    said = training.until_ring_of(3)
    first = base()
    place("delete", "pod", first, "--wait=true", timeout=300)
    next_ring(training, 3, said)
    assert base() != first
    assert training.finish()["result"]["weightsSha256"] == weights


@pytest.mark.turns(3)
def test_where_spot_machines_go_again_and_again_others_are_taken_until_they_stay(place, spot_nodes):
    fields = {"spot": {"prefer": True, "onDemandFallback": {"afterInterruptions": 2, "until": "1m"}}}
    training = node_rig.Training(place, node_rig.training_job("fickle", 10**6, **fields, workers={"min": 1}, coordinator=coordinator_on(1)))

    def nodes_of_workers():
        return {training.node_of(name_of(pod)) for pod in training.workers() if pod["spec"].get("nodeName")}
    try:
        said = training.until_ring_of(3)
        assert nodes_of_workers() <= {2, 3}
        for _ in range(2):
            evict(place, name_of(a_worker(training, away_from=[1])))
            said = next_ring(training, 3, said)
        processes.until(lambda: "FellBack" in training.events(), "the event that says so", 120)
        assert 1 in nodes_of_workers(), "the last one is on a machine on demand"
        said = next_ring(training, 3, said)  # another one in its place
        processes.until(lambda: nodes_of_workers() <= {2, 3}, "the one on demand is gone", 120)
        assert {"BackOnSpot", "Relieved"} <= set(training.events()), training.story()
    finally:
        place("delete", "trainingjob", training.name, "--wait=true", "--ignore-not-found", timeout=300)


@pytest.mark.turns(1)
def test_with_too_few_machines_for_long_all_end_with_a_checkpoint_but_one_pod_that_waits(start, weights, place):
    training = start(workers={"target": 2, "min": 2}, pod=SPREAD, coordinator=coordinator_on(1), cost={"idleAfter": "15s"})
    said = training.until_step(training.until_ring_of(2)["progress"]["step"] + 5)
    place("taint", "node", *NODES, FULL)
    try:
        place("delete", "pod", name_of(a_worker(training)), "--wait=false")  # the other one holds the state, and trains nothing alone
        status = processes.until(lambda: (now := training.status()).get("state") == "Idle" and "untolerated taint" in now["message"] and now,
                                 "one pod waits, and the scheduler says why", 300)
        (waiting,) = training.workers()
        assert "nodeName" not in waiting["spec"] and not training.pods("coordinator"), training.story()
        assert status["checkpoint"]["step"] >= said["progress"]["step"], "what the last one held is saved"
    finally:
        place("taint", "node", *NODES, FULL_GONE)
    again = training.until_ring_of(2)
    assert again["term"] == said["term"] + 1 and again["progress"]["step"] >= status["checkpoint"]["step"], again
    assert name_of(waiting) in {name_of(pod) for pod in training.workers()}
    assert training.finish()["result"]["weightsSha256"] == weights
    assert "Idle" in training.events() and training.condition("Idle") == "False"


@pytest.mark.turns(0)
def test_machines_that_vanish_with_a_worker_or_with_the_coordinator_cost_nothing_but_time(start, weights, machines, node_cluster):
    training = start(pod=SPREAD, coordinator=coordinator_on(2))
    said = training.until_ring_of(3)
    assert training.node_of(name_of(training.pods("coordinator")[0])) == 2
    machines[3].kill()
    said = training.until(lambda now: now["state"] == "Training" and now["ring"]["size"] == 3 and now["ring"]["generation"] > said["ring"]["generation"] + 1,
                          "a ring of three after a machine is gone")
    machines[3].clean()
    rig.bring_node(node_cluster, 3)
    step = training.until_step(said["progress"]["step"] + 20)["progress"]["step"]
    term = said["term"]
    machines[2].kill()
    said = training.until(lambda now: now["term"] > term and now["state"] == "Training" and now["ring"]["size"] == 3, "a ring of three in the next term")
    assert said["progress"]["step"] >= step - 500, "no further back than a checkpoint"
    status = training.finish()
    assert status["result"]["weightsSha256"] == weights
    assert status["restarts"]["infrastructure"] >= 2, status["restarts"]


@pytest.mark.turns(3)
def test_a_machine_that_is_drained_with_the_coordinator_leaves_nobody_waiting(start, weights, place):
    coordinator = coordinator_on(2)
    coordinator["template"]["spec"]["terminationGracePeriodSeconds"] = 2 * node_rig.DEADLINE_S  # it could serve on for longer than we wait
    training = start(workers={"min": 3}, pod=SPREAD, coordinator=coordinator)
    said = training.until_ring_of(3)
    first = name_of(training.pods("coordinator")[0])
    assert training.node_of(first) == 2
    assert 2 in {training.node_of(name_of(pod)) for pod in training.workers()}
    place("taint", "node", "node-2", "maintenance=yes:NoExecute")
    try:
        term = said["term"]
        said = training.until(lambda now: now["term"] > term and now["state"] == "Training" and now["ring"]["size"] == 3, "a ring of three in the next term")
        assert "node-2" not in {pod["spec"].get("nodeName") for pod in training.workers() + training.pods("coordinator")}
    finally:
        place("taint", "node", "node-2", "maintenance-")
    status = training.finish()
    assert status["result"]["weightsSha256"] == weights
    assert status["restarts"]["preemption"] >= 2 and status["restarts"]["failure"] == 0, status["restarts"]


@pytest.mark.turns(2)
def test_who_fails_again_and_again_is_left_out_and_what_a_deadline_stops_another_job_goes_on_with(start, weights, place):
    training = start(failurePolicy={"maxRestarts": 1})
    said = training.until_ring_of(3)
    worker = said["ring"]["members"][-1]["worker"]
    pod = next(name_of(pod) for pod in training.workers() if pod["metadata"]["labels"]["ringmaster.dev/worker"] == str(worker))
    kill_trainer(place, pod)
    said = training.until_ring_of(3, beyond=said["ring"]["generation"])
    kill_trainer(place, pod)
    said = training.until_ring_of(2, beyond=said["ring"]["generation"])
    assert [each["worker"] for each in said["quarantined"]] == [worker], said
    processes.until(lambda: "Quarantined" in training.events(), "the event that says so", 120)
    place("patch", "trainingjob", training.name, "--type=merge", "-p", '{"spec":{"activeDeadlineSeconds":1}}')
    processes.until(lambda: training.condition("Failed") == "True", "the deadline has passed", node_rig.DEADLINE_S)
    status = training.status()
    failed = next(each for each in status["conditions"] if each["type"] == "Failed")
    assert failed["reason"] == "DeadlineExceeded" and "activeDeadlineSeconds (1)" in failed["message"], failed
    saved = status["checkpoint"]["step"]
    assert saved >= said["progress"]["step"], "what was trained is not lost"
    place("delete", "trainingjob", training.name, "--wait=true", timeout=300)
    again = node_rig.Training(place, node_rig.training_job(training.name, STEPS))
    said = again.until_ring_of(3)
    assert [event["step"] for event in said["events"] if event["event"] == "checkpointLoaded"] == [saved]
    assert again.finish()["result"]["weightsSha256"] == weights


@pytest.fixture(name="kinds")
def fixture_kinds(place):
    """Makes machine 3 one of another kind: the trainers there take their instruction set from a label of their node, which pods inherit."""
    every = ("node-1", "node-2", "node-3")
    for node in every:
        isa, kind = ("SSE41", "old") if node == "node-3" else ("Auto", "new")
        place("label", "node", node, f"{ZONE}={isa}", f"{KIND}={kind}")
    source = {"fieldRef": {"fieldPath": f"metadata.labels['{ZONE}']"}}
    yield node_rig.container("trainer", images.WORKER, resources=node_rig.SLOW, env=[{"name": "RINGMASTER_TRAINER_ISA", "valueFrom": source}])
    for node in every:
        place("label", "node", node, f"{ZONE}-", f"{KIND}-")
        place("taint", "node", node, FULL, "--overwrite")
        place("taint", "node", node, FULL_GONE)


@pytest.mark.turns(3)
def test_on_a_machine_of_another_kind_a_worker_is_refused_and_made_anew_elsewhere(start, weights, place, kinds):
    place("taint", "node", "node-3", FULL)
    training = start(pod={"containers": [kinds]}, coordinator=coordinator_on(1))
    said = training.until_ring_of(3)
    place("taint", "node", "node-3", FULL_GONE)
    place("taint", "node", "node-1", "node-2", FULL)
    place("delete", "pod", name_of(training.workers()[-1]), "--wait=false")
    processes.until(lambda: training.status()["workers"].get("unfitInstanceTypes") == ["old"], "it was tried there", node_rig.DEADLINE_S)
    place("taint", "node", "node-1", "node-2", FULL_GONE)
    said = training.until_ring_of(3, beyond=said["ring"]["generation"] + 1)
    assert not said["mixedHardware"]
    assert "node-3" not in {pod["spec"].get("nodeName") for pod in training.workers()}
    status = training.finish()
    assert status["result"]["weightsSha256"] == weights
    assert status["restarts"]["misfit"] >= 1 and status["restarts"]["failure"] == 0, status["restarts"]
    assert "WorkerRefused" in training.events()


@pytest.mark.turns(2)
def test_a_job_grows_onto_a_new_machine_and_shrinks(start, weights, place, node_cluster):
    training = start(pod=SPREAD)
    said = training.until_ring_of(3)
    extra = nodes.Node(node_cluster, 4)
    rig.bring_node(node_cluster, 4)
    try:
        place("scale", f"trainingjob/{training.name}", "--replicas=5")
        said = training.until_ring_of(5, beyond=said["ring"]["generation"])
        assert 4 in {training.node_of(name_of(pod)) for pod in training.workers()}
        place("scale", f"trainingjob/{training.name}", "--replicas=2")
        said = training.until_ring_of(2, beyond=said["ring"]["generation"])
        assert said["stepsRedone"] == {"announced": 0, "sudden": 0}, said
        status = training.finish()
        assert status["result"]["weightsSha256"] == weights
        assert status["restarts"]["preemption"] == 0, "what we take away ourselves is no preemption"
    finally:
        extra.kill()
        extra.clean()
        place("delete", "node", "node-4", "--wait=false")


@pytest.mark.turns(1)
def test_the_coordinator_dies_the_job_is_suspended_and_the_operator_is_away_at_the_end(start, weights, place):
    training = start()
    said = training.until_ring_of(3)
    place("delete", "pod", name_of(training.pods("coordinator")[0]), "--force", "--grace-period=0")
    said = training.until(lambda now: now["term"] > said["term"] and now["state"] == "Training", "the next term")
    place("patch", "trainingjob", training.name, "--type=merge", "-p", '{"spec":{"suspend":true}}')
    processes.until(lambda: training.condition("Suspended") == "True" and not training.workers(), "suspended", 300)
    place("patch", "trainingjob", training.name, "--type=merge", "-p", '{"spec":{"suspend":false}}')
    said = training.until(lambda now: now["state"] == "Training" and now["progress"]["step"] >= said["progress"]["step"], "training again")
    system = rig.Kubectl(place.cluster, node_rig.SYSTEM)
    system("scale", "deployment/ringmaster-operator", "--replicas=0")
    try:
        place.until(lambda pod: pod["status"].get("phase") == "Succeeded", "the coordinator's end", "pod",
                    name_of(training.pods("coordinator")[0]), seconds=node_rig.DEADLINE_S)
        assert training.condition("Finished") != "True"
    finally:
        system("scale", "deployment/ringmaster-operator", "--replicas=2")
    assert training.finish()["result"]["weightsSha256"] == weights


@pytest.mark.turns(0)
def test_prometheus_finds_the_pods_of_a_job_and_the_operator_by_the_charts_monitors(start, place, node_cluster, tmp_path):
    monitors = monitor_rig.install(node_cluster)
    training = start()
    said = training.until_ring_of(3)
    discovery = monitor_rig.Discovery(node_cluster, tmp_path)
    configs = [config for monitor in monitors for config in discovery.scrapes(monitor)]
    server = prometheus.Prometheus(tmp_path, configs, enter=node_cluster.enter())
    of_job = f'{{namespace="jobs",ringmaster_dev_job="{training.name}"}}'
    try:
        server.until_one(f"sum(up{of_job})", lambda count: count == 4)
        place("delete", "pod", name_of(a_worker(training)), "--wait=false")
        next_ring(training, 3, said)
        before = training.coordinator_says()
        told = [event["cause"] for event in before["events"] if event["event"] == "recovered"]
        assert "WorkerLeft" in told, before
        server.until_one(f"sum(ringmaster_ring_changes_total{of_job})", lambda count: count >= len(told))
        causes = {labels["cause"]: count for labels, count in server.query(f"sum by (cause) (ringmaster_ring_changes_total{of_job}) > 0")}
        spent = 'ringmaster_goodput_seconds{class="productive",ringmaster_dev_role="coordinator"}'
        productive = server.until_one(spent, lambda seconds: seconds >= before["goodput"]["productiveSeconds"])
        step = server.until_one(f"ringmaster_step{of_job}", lambda number: number >= before["progress"]["step"])
        after = training.coordinator_says()
        assert productive <= after["goodput"]["productiveSeconds"] and step <= after["progress"]["step"]
        assert set(told) <= set(causes), causes

        def seen(query, label):
            discovery.refresh()
            return {labels[label] for labels, _ in server.query(query)}
        server.until(lambda: seen(f"ringmaster_worker_step{of_job}", "pod") == {name_of(pod) for pod in training.workers()},
                     "a series for each worker's pod and no other")
        server.until(lambda: seen(f"ringmaster_worker_reduce_bytes_total{of_job} > 0", "ringmaster_dev_worker")
                     == {str(member["worker"]) for member in training.coordinator_says()["ring"]["members"]}, "what each member sends")
        assert server.until_one("sum(ringmaster_operator_leader)", lambda count: count == 1)
    finally:
        server.stop()
