"""What every real cluster does differently: charts are upgraded while jobs run, stores are opened by roles, pools are tainted, pods have limits."""

import concurrent.futures
import json
import sys

import cluster as clusters
import images
import node_rig
import processes
import pytest
import rig
from cluster import HERE
from node_rig import hurry, name_of

STEPS = 400
# For a job that is to train for over a minute on a fast machine, too, until it is told to hurry.
MANY_STEPS = 1500


@pytest.fixture(name="weights_after", scope="module")
def fixture_weights_after(place):
    """weights_after(steps) is what the undisturbed run in the same image gives, some time: a job may begin meanwhile."""
    with concurrent.futures.ThreadPoolExecutor() as side:
        yield lambda steps: side.submit(lambda: node_rig.run_locally(place, steps, f"alone-in-the-field-{steps}")["weightsSha256"])


@pytest.fixture(name="start")
def fixture_start(place):
    """start(name, **fields) begins a job, which is deleted at the end."""
    begun = []

    def start(name, steps=STEPS, **fields):
        begun.append(name)
        return node_rig.Training(place, node_rig.training_job(name, steps, **fields))
    yield start
    place("delete", "trainingjob", *begun, "--wait=true", "--ignore-not-found", timeout=300)


def finished_with(training, weights):
    """Its last status, with those weights, and nobody refused or failed on the way."""
    status = training.finish()
    assert status["result"]["weightsSha256"] == weights.result() and status["result"]["exact"], status
    assert not status["restarts"].get("failure") and not status["restarts"].get("misfit"), status["restarts"]
    return status


# --- a chart that is upgraded ---

@pytest.fixture(name="upgrade")
def fixture_upgrade(node_cluster, place):
    """upgrade() gives the chart other images; at the end it has its own again."""
    assert place.namespace
    yield lambda: node_rig.install_operator(node_cluster, images.OPERATOR_NEXT, images.WORKER_NEXT)
    node_rig.install_operator(node_cluster)


def chosen_by_the_chart(name, **more):
    """A container that names no image."""
    return {key: value for key, value in node_rig.container(name, "", **more).items() if key != "image"}


def unnamed(resources):
    """What a job has whose templates name no image."""
    coordinator = {"template": {"spec": {"terminationGracePeriodSeconds": 40, "containers": [chosen_by_the_chart("coordinator")]}}}
    return {"pod": {"containers": [chosen_by_the_chart("trainer", resources=resources)]}, "coordinator": coordinator}


def run_images(training):
    """What the kubelets say that the job's containers run, those that are told of at all."""
    pods = training.workers() + training.pods("coordinator")
    return {status["image"] for pod in pods for status in pod["status"].get("containerStatuses", []) if status["image"]}


@pytest.mark.turns(1)
def test_an_upgrade_of_the_chart_moves_no_job_that_runs_whoever_dies_then(start, weights_after, upgrade, place):
    weights = weights_after(STEPS)
    training = start("upgraded", **unnamed(node_rig.SLOW))
    said = training.until_ring_of(3)
    assert training.status()["images"] == {"trainer": images.WORKER, "coordinator": images.WORKER}
    upgrade()
    later = start("younger", 20, **unnamed(node_rig.SMALL))
    gone = [name_of(training.workers()[0]), name_of(training.pods("coordinator")[0])]
    place("delete", "pod", *gone, "--force", "--grace-period=0")
    said = training.until(lambda now: now["term"] > said["term"] and now["state"] == "Training" and now["ring"]["size"] == 3, "three again, in the next term")
    assert not set(gone) & {name_of(pod) for pod in training.workers() + training.pods("coordinator")}
    assert run_images(training) == {images.WORKER}
    hurry(training)
    finished_with(training, weights)
    later.finish()
    younger = {pod["spec"]["containers"][0]["image"] for pod in place.get("pods", "-l", f"ringmaster.dev/job={later.name}")}
    assert younger == {images.WORKER_NEXT}, "the upgrade was one"


# --- a store that is opened by a role ---

ROLE = "arn:aws:iam::123456789012:role/trainer"
AUDIENCE = "sts.amazonaws.com"
STS_PORT, DOOR_PORT = 7081, 7082
# A client does not use up the last five minutes of what it is told, and asks twice in a minute at most.
TOLD_S, OLD_S = 305, 60


class RoleStore:
    """role_store.py in the cluster's network, before the store of a namespace, for one ServiceAccount of that."""

    def __init__(self, kubectl, folder):
        self.cluster, self.log = kubectl.cluster, folder / "role-store.log"
        self.log.touch()
        store = kubectl.get("pod", "store")["status"]["podIP"]
        settings = {"address": clusters.API, "sts_port": STS_PORT, "door_port": DOOR_PORT, "server": f"{clusters.API}:{clusters.API_PORT}",
                    "pki": str(self.cluster.pki), "role": ROLE, "audience": AUDIENCE, "told_s": TOLD_S, "old_s": OLD_S,
                    "subject": f"system:serviceaccount:{kubectl.namespace}:trainer", "store": f"{store}:7070", **node_rig.STORE_KEYS, "log": str(self.log)}
        (folder / "role-store.json").write_text(json.dumps(settings), encoding="utf-8")
        self.cluster.start("role-store", [sys.executable, str(HERE / "role_store.py"), str(folder / "role-store.json")])

    def lines(self, side):
        """What the STS ("sts") or the door ("door") has answered so far."""
        every = [json.loads(line) for line in self.log.read_text(encoding="utf-8").splitlines()]
        return [line for line in every if side in line]

    def stop(self):
        self.cluster.stop("role-store")


@pytest.fixture(name="role_store")
def fixture_role_store(place, tmp_path):
    store = RoleStore(place, tmp_path)
    yield store
    store.stop()


def by_role(account):
    """What EKS puts into the pods of a ServiceAccount with a role, as deploy/examples/irsa.yaml has it for other clusters."""
    env = {"AWS_REGION": "us-east-1", "AWS_ROLE_ARN": ROLE, "AWS_WEB_IDENTITY_TOKEN_FILE": "/var/run/secrets/sts/token",
           "AWS_ENDPOINT_URL_STS": f"http://{clusters.API}:{STS_PORT}"}
    trainer = node_rig.container("trainer", images.WORKER, resources=node_rig.SLOW, env=[{"name": n, "value": v} for n, v in env.items()],
                                 volumeMounts=[{"name": "sts", "mountPath": "/var/run/secrets/sts"}])
    token = {"serviceAccountToken": {"audience": AUDIENCE, "path": "token"}}
    return {"serviceAccountName": account, "containers": [trainer], "volumes": [{"name": "sts", "projected": {"sources": [token]}}]}


def its_checkpoints(name):
    return {"uri": f"s3://jobs/{name}", "endpoint": f"http://{clusters.API}:{DOOR_PORT}", "everySteps": 20}


@pytest.mark.turns(0)
def test_workers_and_coordinator_open_their_store_by_the_token_of_their_service_account(start, weights_after, role_store, place):
    weights = weights_after(MANY_STEPS)
    for account in ("trainer", "stranger"):
        place.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account}})
    stranger = start("stranger", pod=by_role("stranger"), checkpoint=its_checkpoints("stranger"))
    training = start("by-role", MANY_STEPS, pod=by_role("trainer"), checkpoint=its_checkpoints("by-role"))
    said = training.until_ring_of(3)
    pods = {name_of(pod) for pod in training.workers() + training.pods("coordinator")}
    assert said["fenced"], "the door is no worse than the store behind it"

    processes.until(lambda: pods <= {line["pod"] for line in role_store.lines("door") if line.get("renewed")},
                    "each goes on when its first keys are old", 300)
    hurry(training)
    finished_with(training, weights)
    assert [line for line in role_store.lines("door") if "refused" in line] == [], "nobody signed with what is old, or is not the role's"
    processes.until(lambda: "STS refuses the role" in stranger.status()["message"], "another ServiceAccount is told", 120)
    assert stranger.condition("StoreReady") == "False"


# --- a pool whose nodes are tainted ---

@pytest.fixture(name="tainted")
def fixture_tainted(place):
    """Every node is for those alone that tolerate it."""
    place("taint", "node", "--all", "pool=training:NoSchedule")
    yield [{"key": "pool", "operator": "Equal", "value": "training", "effect": "NoSchedule"}]
    place("taint", "node", "--all", "pool-")


@pytest.mark.turns(2)
def test_on_a_pool_that_is_all_tainted_who_tolerates_it_trains_with_a_coordinator_of_its_own(start, tainted):
    tolerant = start("tolerant", 20, pod={"tolerations": tainted})
    other = start("intolerant", 20)
    assert tolerant.finish()["result"]["step"] == 20
    processes.until(lambda: "untolerated taint" in other.status().get("message", ""), "it says what it waits for", 120)
    assert not [pod for pod in other.workers() + other.pods("coordinator") if pod["spec"].get("nodeName")]


# --- a limit ---

HASTY = {"terminationGracePeriodSeconds": 1}  # of a job that is not to end well
COUNT = ('for p in /proc/[0-9]*; do read name < "$p/comm"; [ "$name" = ringmaster-trai ] || continue; '
         'for t in "$p"/task/*; do read name < "$t/comm"; echo "$name"; done; done')


def computing_threads(training):
    """How many compute in the trainers of a job's workers, each."""
    told = [training.kubectl("exec", name_of(pod), "-c", "trainer", "--", "sh", "-c", COUNT).split() for pod in training.workers()]
    return [1 + names.count("pool") for names in told]


@pytest.mark.turns(3)
def test_a_trainer_has_as_many_threads_as_its_limit_has_processors(start, place):
    cores = min(int(node["status"]["capacity"]["cpu"]) for node in rig.Kubectl(place.cluster).get("nodes"))
    begun, coordinator = {}, node_rig.coordinator_on(1)
    coordinator["template"]["spec"].update(HASTY)
    for limit, threads in (("900m", 1), ("1500m", min(2, cores))):
        container = node_rig.container("trainer", images.WORKER, resources={**node_rig.SMALL, "limits": {"cpu": limit}})
        spec = {**node_rig.trainer(1000000), "threads": "Auto"}
        begun[start(f"limit-{limit}", pod={"containers": [container], **HASTY}, coordinator=coordinator, trainer=spec)] = threads
    for training, threads in begun.items():
        training.until_ring_of(3)
        assert computing_threads(training) == [threads] * 3, training.name
