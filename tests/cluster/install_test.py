"""What a user does and reads: the chart installed, the quick start applied, and jobs that can't be, each for another reason."""

import datetime
import json
import subprocess
import tarfile

import examples
import images
import node_rig
import processes
import pytest
import rig
from cluster import ROOT

EXAMPLES = ROOT / "deploy/examples"
OPERATOR = f"system:serviceaccount:{node_rig.SYSTEM}:ringmaster-operator"
WRITES_A_MINUTE = 6


def example(name):
    """An example as it lies in the tree, but for the store's image, which no registry is there to give."""
    return (EXAMPLES / name).read_text(encoding="utf-8").replace("versity/versitygw:latest", images.STORE)


@pytest.fixture(name="place", scope="module")
def fixture_place(node_cluster):
    """kubectl in a restricted namespace with the examples' store; the chart is installed."""
    node_rig.install_operator(node_cluster)
    kubectl = node_rig.restricted_namespace(node_cluster, "first")
    kubectl.apply(example("store.yaml"))
    kubectl.until_condition("Available", "deployment", "store")
    yield kubectl
    rig.Kubectl(node_cluster)("delete", "namespace", "first", "--wait=false")


# --- jobs that can't be ---

def small_job(name, spec=None, pod=None, **container):
    """A job of a few steps with something in it that can't be."""
    trainer = {"model": {"layers": 1, "heads": 1, "width": 16, "context": 16}, "data": {"uri": node_rig.DATA}, "batch": {"lanes": 2},
               "steps": 10, "threads": 1}
    checkpoint = {"uri": f"s3://jobs/{name}", "endpoint": "http://store:9000", "secretRef": {"name": "store-credentials"}}
    template = {"spec": {"containers": [{"name": "trainer", "resources": node_rig.SMALL, **container}], **(pod or {})}}
    spec = {"workers": {"target": 2, "template": template}, "trainer": trainer, "checkpoint": checkpoint, **(spec or {})}
    spec["checkpoint"] = {key: value for key, value in {**checkpoint, **spec["checkpoint"]}.items() if value is not None}
    return {"apiVersion": "ringmaster.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": name}, "spec": spec}


IMPOSSIBLE = {
    "image": small_job("image", image="localhost:1/absent:1"),
    "secret": small_job("secret", {"checkpoint": {"secretRef": {"name": "absent"}}}),
    "store": small_job("store", {"checkpoint": {"endpoint": "http://another-store:9000"}}),
    "room": small_job("room", resources={"requests": {"cpu": "900"}}),
    "node": small_job("node", pod={"nodeSelector": {"ringmaster.test/pool": "spot"}}),
    "command": small_job("command", command=["python", "train.py"]),
    "folder": small_job("folder", {"checkpoint": {"uri": "file:///checkpoints", "endpoint": None, "secretRef": None}}),
    "volume": small_job("volume", volumeMounts=[{"name": "data", "mountPath": "/data"}]),
    "escalation": small_job("escalation", securityContext={"allowPrivilegeEscalation": True}),
    "quota": small_job("quota", {"checkpoint": {"endpoint": "http://store.first.svc:9000"}}),
}

# What `kubectl get tj -o wide` or `describe` shows: the thing at fault by its name, and the cause.
SENTENCES = {
    "image": ["Pending", "ImagePullBackOff", "localhost:1/absent:1"],
    "secret": ["Pending", "CreateContainerConfigError", 'secret "absent" not found'],
    "store": ["another-store"],
    "room": ["worker 0 ", "Pending", "Insufficient cpu"],
    "node": ["the coordinator ", "Pending", "node affinity/selector"],
    "command": ["spec.workers.template", "container trainer", "command"],
    "folder": ["spec.checkpoint.uri is file:///checkpoints", "mounts no shared volume", "write s3://bucket/prefix"],
    "volume": ["the API server refused to create pods", "volumeMounts[0].name", '"data"'],
    "escalation": ["the API server refused to create pods", "violates PodSecurity", "allowPrivilegeEscalation=false"],
    "quota": ["the API server refused to create pods", "exceeded quota: few", "pods=1"],
}

NAMES = sorted(IMPOSSIBLE)


@pytest.fixture(name="stuck", scope="module")
def fixture_stuck(place):
    """All of them at once, by name; one quota lets the coordinator in and no worker."""
    quota = node_rig.restricted_namespace(place.cluster, "first-quota")
    quota.apply({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"}, "spec": {"hard": {"pods": "1"}}},
                *[item for item in example("store.yaml").split("\n---\n") if "kind: Secret" in item])
    quota.until(lambda found: found.get("status", {}).get("hard"), "the quota counts", "resourcequota", "few")
    yield {name: node_rig.Training(quota if name == "quota" else place, job) for name, job in IMPOSSIBLE.items()}
    rig.Kubectl(place.cluster)("delete", "namespace", "first-quota", "--wait=false")


def until_said(training, words):
    """Until all words stand in the job's sentence; returns the status in which they do."""
    def said():
        status = training.status()
        return all(word in status.get("message", "") for word in words) and status
    try:
        return processes.until(said, f"{words} in the status of {training.name}", 120)
    except TimeoutError as late:
        raise AssertionError(f"{late}\n{training.story()}") from None


def moments_of_writes(training):
    """When the operator wrote this job's status, in seconds, as the API server's audit log tells."""
    found = []
    wanted = {"resource": "trainingjobs", "subresource": "status", "namespace": training.kubectl.namespace, "name": training.name}
    for line in (training.kubectl.cluster.logs / "audit.log").read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        if entry["user"]["username"] == OPERATOR and wanted.items() <= entry.get("objectRef", {}).items():
            found.append(datetime.datetime.fromisoformat(entry["requestReceivedTimestamp"]).timestamp())
    return found


def most_a_minute(moments):
    return max(sum(begin <= other < begin + 60 for other in moments) for begin in moments)


# --- the story ---

def test_the_quick_start_is_applied_is_watched_and_ends_with_the_weights_of_a_local_run(place, stuck):
    assert stuck, "the impossible ones are there as well, and disturb nobody"
    place.apply(example("quickstart-cluster.yaml"))
    training = node_rig.Training(place, "quickstart")
    training.until_step(20)
    training.until(lambda _: training.status().get("progress", {}).get("step", 0) >= 20, "progress in the API")
    head, row = place("get", "tj", "quickstart").splitlines()
    shown = dict(zip(head.split(), row.split()))
    assert shown["STATE"] == "Training" and shown["WORKERS"] == "3/3" and int(shown["STEP"]) >= 20 and shown["PROGRESS"].endswith("%"), row
    place("wait", "--for=condition=Finished", "tj/quickstart", "--timeout=600s", timeout=620)
    result = training.finish()["result"]
    text = example("quickstart-cluster.yaml").replace("s3://jobs/quickstart", "s3://jobs/alone")
    alone = node_rig.run_file(place, "alone", text, "store-credentials")
    assert result["weightsSha256"] == alone["weightsSha256"]
    assert result["step"] == 200 and result["uri"].startswith("s3://jobs/quickstart")
    assert {"WorkersCreated", "RingFormed", "CheckpointSaved", "Complete"} <= set(training.events())


@pytest.mark.parametrize("name", NAMES)
def test_a_job_that_can_not_be_says_what_holds_it_up(stuck, name):
    training = stuck[name]
    status = until_said(training, SENTENCES[name])
    # Of a store that is away its pods know, which are there: nothing keeps them from starting.
    assert status["state"] == ("Starting" if name == "store" else "Waiting"), status
    store = [c["status"] for c in status["conditions"] if c["type"] == "StoreReady"]
    assert name != "store" or store == ["False"], status
    assert training.condition("Failed") != "True" and status.get("restarts", {}).get("failure", 0) == 0
    processes.until(lambda: "Waiting" in training.events(), f"the event Waiting of {name}", 120)


@pytest.mark.parametrize("name", NAMES)
def test_a_job_that_can_not_be_costs_the_api_server_next_to_nothing(stuck, name):
    training = stuck[name]
    until_said(training, SENTENCES[name])
    moments = processes.until(lambda: moments_of_writes(training), "writes in the audit log", 120)
    assert most_a_minute(moments) <= WRITES_A_MINUTE, [round(each - moments[0], 1) for each in moments]


def test_jobs_go_on_by_themselves_once_what_they_lacked_is_there(stuck, place):
    for name in ("secret", "store", "quota", "node"):
        until_said(stuck[name], SENTENCES[name])
    secret = place.get("secret", "store-credentials")
    place.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "absent"}, "data": secret["data"]},
                {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "another-store"},
                 "spec": {"selector": {"app": "store"}, "ports": [{"port": 9000}]}})
    place("label", "node", "node-1", "ringmaster.test/pool=spot", "--overwrite")
    stuck["quota"].kubectl("patch", "resourcequota", "few", "--type=merge", "-p", '{"spec":{"hard":{"pods":"20"}}}')
    for name in ("secret", "store", "quota", "node"):
        assert stuck[name].finish()["result"]["step"] == 10, name


@pytest.mark.turns(0)
def test_a_template_that_can_not_be_is_mended_while_its_job_is_suspended(stuck, place):
    def patch(name, **spec):
        place("patch", "trainingjob", name, "--type=merge", "-p", json.dumps({"spec": spec}))

    mended = small_job("mended")["spec"]["workers"]["template"]
    names = ("command", "image", "escalation")
    for name in names:
        until_said(stuck[name], SENTENCES[name])
        patch(name, suspend=True)
    for name in names:
        processes.until(lambda job=stuck[name]: job.condition("Suspended") == "True", f"{name} suspended", 300)
        patch(name, workers={"template": mended})
        patch(name, suspend=False)
    for name in names:
        assert stuck[name].finish()["result"]["step"] == 10, name


@pytest.mark.turns(1)
def test_a_right_that_the_operator_lacks_stands_in_the_status_until_it_is_given(place):
    everywhere = rig.Kubectl(place.cluster)
    role = everywhere.get("clusterrole", "ringmaster-operator")
    rules = [rule for rule in role["rules"] if rule["resources"] != ["pods"]]
    pods = {"apiGroups": [""], "resources": ["pods"], "verbs": ["delete", "get", "list", "watch"]}
    patch = ("patch", "clusterrole", "ringmaster-operator", "--type=merge", "-p")
    everywhere(*patch, json.dumps({"rules": [*rules, pods]}))
    try:
        training = node_rig.Training(place, small_job("denied"))
        until_said(training, [f'User "{OPERATOR}" cannot create resource "pods"', 'in the namespace "first"'])
        denied = processes.until(lambda: moments_of_writes(training), "writes in the audit log", 120)
        assert most_a_minute(denied) <= WRITES_A_MINUTE, [round(each - denied[0], 1) for each in denied]
    finally:
        everywhere(*patch, json.dumps({"rules": role["rules"]}))
    assert training.finish()["result"]["step"] == 10
    # Then it begins, trains and ends, each of which is news.
    assert most_a_minute(moments_of_writes(training)) <= 3 * WRITES_A_MINUTE


@pytest.mark.turns(3)
@pytest.mark.parametrize("name, workers", [("s3", 4), ("spot", 8), ("hpa", 2)])
def test_the_other_examples_get_their_pods_in_a_restricted_namespace(place, name, workers):
    place.apply(example(f"{name}.yaml"))
    training = node_rig.Training(place, f"gpt-{name}")
    try:
        processes.until(lambda: len(training.workers()) == workers and training.pods("coordinator"), f"the pods of {name}.yaml", 120)
        until_said(training, ["ready, 2 needed"])
        if name == "hpa":
            place.until_condition("AbleToScale", "hpa", "gpt-hpa")
    finally:
        place("delete", "-f", "-", "--wait=false", stdin=example(f"{name}.yaml"))


# What a cluster of three small machines lacks of an example: room, its data, its store.
HERE = [(r"requests: \{.*\}", "requests: {cpu: 20m, memory: 64Mi}"), (r"^    data: \{.*\}$", f"    data: {{uri: {node_rig.DATA}}}"),
        (r"uri: s3://models/", "uri: s3://jobs/")]
ENDPOINT = {"s3": [(r"^    endpoint: .*$", "    endpoint: http://store:9000"), (r"s3-credentials\}$", "store-credentials}")]}
NO_ENDPOINT = [(r"s3-credentials\}$", "store-credentials}\n    endpoint: http://store:9000")]


@pytest.mark.turns(2)
@pytest.mark.parametrize("name", ["s3", "spot", "hpa"])
def test_the_other_examples_train_to_their_end_where_there_are_room_and_a_store(place, name):
    job = examples.job(f"{name}.yaml", *HERE, *ENDPOINT.get(name, NO_ENDPOINT)).replace(f"gpt-{name}", f"small-{name}")
    beside = [text.replace(f"gpt-{name}", f"small-{name}") for text in examples.beside(f"{name}.yaml")]
    place.apply(job, *beside)
    try:
        result = node_rig.Training(place, f"small-{name}").finish()["result"]
        alone = node_rig.run_file(place, f"alone-{name}", job.replace(f"s3://jobs/small-{name}", f"s3://jobs/alone-{name}"), "store-credentials")
        assert result["step"] == examples.STEPS and result["uri"].startswith(f"s3://jobs/small-{name}")
        assert result["weightsSha256"] == alone["weightsSha256"]
    finally:
        place("delete", "-f", "-", "--wait=false", stdin="\n---\n".join([job, *beside]))


def test_helm_test_trains_twenty_steps(place):
    said = place.cluster.call("helm", "test", "ringmaster", "--namespace", node_rig.SYSTEM, "--logs", timeout=400)
    assert "Succeeded" in said and "Complete: 20 steps" in said, said[-2000:]


def test_what_is_uninstalled_leaves_the_jobs_and_their_pods_and_nothing_of_its_own(place):
    training = node_rig.Training(place, node_rig.training_job("outlives", 100000, checkpoint={
        "uri": "s3://jobs/outlives", "endpoint": "http://store:9000", "secretRef": {"name": "store-credentials"}}))
    step = training.until_step(1)["progress"]["step"]
    place.cluster.call("helm", "uninstall", "ringmaster", "--namespace", node_rig.SYSTEM, "--wait", timeout=300)
    everywhere = rig.Kubectl(place.cluster)
    own = everywhere("get", "clusterroles,clusterrolebindings", "-l", "app.kubernetes.io/instance=ringmaster", "-o", "name")
    home = rig.Kubectl(place.cluster, node_rig.SYSTEM)("get", "deployments,services,poddisruptionbudgets,serviceaccounts,roles,rolebindings",
                                                       "-l", "app.kubernetes.io/instance=ringmaster", "-o", "name")
    assert not own.strip() and not home.strip(), own + home
    assert place.exists("trainingjob", "outlives") and everywhere.exists("crd", "trainingjobs.ringmaster.dev")
    training.until_step(step + 5)
    assert len(training.workers()) == 3


# --- what the images are made of ---

def labels_of(archive):
    """Those of an OCI archive's image."""
    with tarfile.open(archive) as tar:
        def blob(digest):
            return json.loads(tar.extractfile("blobs/" + digest.replace(":", "/")).read())
        index = json.loads(tar.extractfile("index.json").read())
        return blob(blob(index["manifests"][0]["digest"])["config"]["digest"])["config"]["Labels"]


def packages_inside(place, kind, image):
    """As dpkg tells them in a container of the image."""
    pod = {"restartPolicy": "Never", "securityContext": node_rig.POD_SECURITY, "terminationGracePeriodSeconds": 1, "automountServiceAccountToken": False,
           "containers": [node_rig.container("list", image, command=["dpkg-query", "-W", "-f", "${db:Status-Abbrev}|${Package}|${Version}\n"])]}
    place.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"parts-of-{kind}"}, "spec": pod})
    place.until(lambda found: found["status"].get("phase") == "Succeeded" and found, "dpkg's list", "pod", f"parts-of-{kind}")
    lines = [line.split("|") for line in place("logs", f"parts-of-{kind}").splitlines()]
    return {(name, version) for state, name, version in lines if state.strip() == "ii"}


@pytest.mark.turns(3)
@pytest.mark.parametrize("kind, image", [("worker", images.WORKER), ("operator", images.OPERATOR)])
def test_the_bill_of_materials_of_an_image_has_each_package_that_is_in_it_and_its_labels_say_what_it_is(place, kind, image):
    archive = images.archive_of(kind)
    bill = json.loads(subprocess.run([ROOT / "tools/sbom", archive], capture_output=True, text=True, check=True).stdout)
    listed = {(one["name"], one["versionInfo"]) for one in bill["packages"] if one["SPDXID"].startswith("SPDXRef-deb-")}
    assert listed == packages_inside(place, kind, image)
    labels = labels_of(archive)
    assert labels["org.opencontainers.image.title"] == f"ringmaster-{kind}"
    ours, = (one["versionInfo"] for one in bill["packages"] if one["name"] == "ringmaster")
    assert labels["org.opencontainers.image.version"] == ours
