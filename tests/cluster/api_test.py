"""The operator against a real API server; the test plays the kubelets. What it writes, and that dying between any two writes changes nothing."""

import hashlib
import json
import signal
import time

import control_plane
import operator_rig as stage_rig
import processes
import prometheus
import pytest

COORDINATOR_PORT = 7070
AROUND = ["NetworkPolicy", "NetworkPolicy", "PodDisruptionBudget", "Secret", "Service"]


def kinds(names):
    return [name.split("/")[0] for name in names]


def test_a_job_gets_its_pods_and_what_belongs_to_them_and_ends_with_its_result(stage):
    operator = stage.operator("--no-lease")
    stage.kubectl.apply(stage_rig.job("gpt"))
    workers = stage.until_pods("worker", 3)
    (coordinator,) = stage.until_pods("coordinator", 1)
    assert stage.indices() == {0: [1], 1: [1], 2: [1]}
    assert kinds(stage.around()) == AROUND
    for name in [*workers, coordinator]:
        stage.run_pod(name)
    processes.until(lambda: stage.job("gpt")["status"]["workers"]["ready"] == 3, "three ready workers", 120)
    stage.finish("gpt")
    status = stage.job("gpt")["status"]
    assert stage.condition("gpt", "Complete") == "True"
    assert status["result"]["weightsSha256"] == stage_rig.SHA
    processes.until(lambda: not stage.pods("worker"), "the workers are gone", 120)
    assert operator.metric("status_conflicts") == 0
    assert operator.metric("reconciles_refused") == 0
    assert operator.stop() == 0
    events = {event["reason"] for event in stage.kubectl.get("events.events.k8s.io")}
    assert {"WorkersCreated", "Complete"} <= events


def begin_program(stage, **spec):
    """A job that runs a program, with all of its pods running; their names."""
    stage.kubectl.apply(stage_rig.program_job("gpt", **spec))
    names = [*stage.until_pods("worker", 3), *stage.until_pods("coordinator", 1)]
    for name in names:
        stage.run_pod(name)
    processes.until(lambda: stage.job("gpt")["status"]["workers"]["ready"] == 3, "three ready workers", 120)
    return names


def test_a_program_gets_its_pods_and_ends_with_what_it_ended_with(stage):
    """In a namespace that enforces the restricted standard; workers run the template's image with the bundle of the operator's."""
    stage.kubectl("label", "namespace", stage.kubectl.namespace, "pod-security.kubernetes.io/enforce=restricted", "--overwrite")
    stage.operator("--no-lease", "--worker-image", "ours:1")
    *workers, coordinator = begin_program(stage)
    pods = stage.pods()
    assert {pods[name]["spec"]["containers"][0]["image"] for name in workers} == {"worker:1"}
    assert {container["image"] for name in workers for container in pods[name]["spec"]["initContainers"]} == {"ours:1"}
    assert pods[coordinator]["spec"]["containers"][0]["image"] == "ours:1" and "initContainers" not in pods[coordinator]["spec"]
    assert not {volume["name"] for name in workers for volume in pods[name]["spec"]["volumes"]} & {"ringmaster-cache", "ringmaster-credentials"}
    assert kinds(stage.around()) == AROUND
    stage.end_program("gpt", {"exitCode": 0, "reason": "", "interrupted": False, "goodput": 0.9})
    status = stage.job("gpt")["status"]
    assert stage.condition("gpt", "Complete") == "True"
    assert status["result"] == {"exitCode": 0} and "progress" not in status and coordinator in stage.pods()
    assert "StoreReady" not in {condition["type"] for condition in status["conditions"]}


def test_a_programs_own_codes_mean_nothing_of_ours_and_what_it_failed_with_is_told(stage):
    """A pod that ends with 2 or with a rule's code is replaced; the coordinator has asked the rules about the program's 3."""
    operator = stage.operator("--no-lease", "--worker-image", "ours:1")
    rules = [{"onExitCodes": [42], "action": "FailJob"}]
    victims = [name for name in begin_program(stage, failurePolicy={"rules": rules}) if "-w0-" in name or "-w1-" in name]
    for name, code in zip(victims, (2, 42)):
        stage.end_pod(name, code)
    processes.until(lambda: len(found := stage.pods("worker")) >= 3 and stage.indices().keys() == {0, 1, 2} and
                    sum(pod["status"].get("phase") == "Pending" for pod in found.values()) == 2, "both are replaced", 120)
    status = stage.job("gpt")["status"]
    assert status["restarts"]["failure"] == 2 and stage.condition("gpt", "Stopping") is None
    of_job = f'{{training_job_namespace="{stage.kubectl.namespace}",training_job="gpt"}}'
    processes.until(lambda: operator.counted("ringmaster_restarts_total", of_job) == 2, "both in the operator's metrics", 60)
    assert operator.counted("ringmaster_interruptions_total", of_job) == 0
    stage.end_program("gpt", {"exitCode": 5, "programExitCode": 3, "reason": "worker 1: exit code 3: no such table", "interrupted": False})
    status = stage.job("gpt")["status"]
    (failed,) = [each for each in status["conditions"] if each["type"] == "Failed"]
    assert (failed["reason"], failed["message"]) == ("ProgramFailed", "worker 1: exit code 3: no such table")
    assert status["result"] == {"exitCode": 3}


def play_through(stage, start):
    """A whole job with an operator that start(life) gives each time that the last one has died; returns the end state."""
    history = stage.history()
    operators = [start(1)]

    def go(condition, what):
        def alive():
            if operators[-1].process.poll() is not None:
                operators.append(start(len(operators) + 1))
            return condition()
        return processes.until(alive, what, 240)

    stage.kubectl.apply(stage_rig.job("gpt"))
    go(lambda: len(stage.pods("worker")) == 3 and len(stage.pods("coordinator")) == 1, "all pods")
    first = set(stage.pods())
    for name in first:
        stage.run_pod(name)
    # A pod that nobody has noted yet would be made again by its own name.
    go(lambda: [slot["state"] for slot in stage.job("gpt")["status"]["workers"]["slots"]] == ["Present"] * 3, "all pods noted")
    victim = next(name for name in first if "-w1-" in name)
    stage.kubectl("delete", "pod", victim, "--grace-period=0", "--force")
    # Of the same index where the old pod was gone by then, of another one otherwise.
    (second,) = go(lambda: len(found := set(stage.pods("worker"))) == 3 and found - first, "the replacement")
    assert all(len(attempts) == 1 for attempts in stage.indices().values())
    stage.run_pod(second)
    (coordinator,) = stage.pods("coordinator")
    stage.end_pod(coordinator, 0, json.dumps({"exitCode": 0, "reason": "", "step": 100, "loss": 2.5, "weightsSha256": stage_rig.SHA,
                                              "uri": "s3://bucket/run/step-00000100", "interrupted": False}))
    go(lambda: stage.condition("gpt", "Finished") == "True" and not stage.pods("worker"), "the end")
    status = stage.job("gpt")["status"]
    end = {"around": sorted(set(kinds(stage.around()))), "restarts": status["restarts"], "result": status["result"], "term": status["ring"]["term"],
           "complete": stage.condition("gpt", "Complete")}
    return end, len(operators), history.creations()


CALM = {"around": sorted(set(AROUND)), "restarts": {"failure": 0, "infrastructure": 0, "preemption": 1}, "term": 1, "complete": "True"}


@pytest.mark.parametrize("fault", [None, "operator-write", "operator-answered"])
def test_an_operator_that_dies_between_any_two_writes_leads_to_the_same_end(stage, fault):
    """The first replica dies at its first write, the second at its second... until one comes through. (A write that is repeated
    in each life, such as the trial of a pod, would hold up those that always die at the first.)"""
    started = []

    def start(life):
        started.append(stage.operator("--no-lease", fault=fault and f"{fault}:{life}"))
        return started[-1]

    end, lives, made = play_through(stage, start)
    assert {key: end[key] for key in CALM} == CALM
    assert end["result"]["weightsSha256"] == stage_rig.SHA
    assert sorted(made.values()) == [1] * 5, "no pod was made twice, and none for nothing"
    assert lives > 4 if fault else lives == 1
    if not fault:
        of_job = f'{{training_job_namespace="{stage.kubectl.namespace}",training_job="gpt"}}'
        processes.until(lambda: started[0].counted("ringmaster_interruptions_total", of_job) == 1, "the preempted pod in the operator's metrics", 60)
        assert started[0].counted("ringmaster_restarts_total", of_job) == 0


def test_the_next_leader_goes_on_and_the_one_that_stood_still_ends(stage):
    first = stage.operator()
    first.until_logged("leading")
    second = stage.operator()
    stage.kubectl.apply(stage_rig.job("gpt"))
    stage.until_pods("worker", 3)
    processes.until(lambda: second.get("/readyz")[0] == 200, "the second has seen who leads", 60)
    assert second.metric("leader") == 0
    first.send(signal.SIGSTOP)
    second.until_logged("leading")
    stage.kubectl("patch", "trainingjob", "gpt", "--type=merge", "-p", json.dumps({"spec": {"workers": {"target": 4}}}))
    stage.until_pods("worker", 4)
    first.send(signal.SIGCONT)
    assert first.wait() == 4
    assert stage.indices() == {0: [1], 1: [1], 2: [1], 3: [1]}
    third = stage.operator()
    processes.until(lambda: third.get("/readyz")[0] == 200, "the third has seen who leads", 60)
    assert second.stop() == 0
    third.until_logged("leading")
    assert set(stage.indices()) == {0, 1, 2, 3}


def test_what_is_over_is_decided_by_our_container_whatever_runs_beside_it(stage):
    """As where a service mesh puts a container of its own into each pod, which never ends, or ends early."""
    runs_on = {"running": {"startedAt": stage_rig.now()}}
    stage.operator("--no-lease")
    job = stage_rig.job("gpt")
    proxy = {"name": "proxy", "image": "proxy:1"}
    job["spec"]["workers"]["template"]["spec"]["containers"].append(proxy)
    job["spec"]["coordinator"] = {"template": {"spec": {"containers": [{"name": "coordinator", "image": "worker:1"}, proxy]}}}
    stage.kubectl.apply(job)
    first = set(stage.until_pods("worker", 3))
    (coordinator,) = stage.until_pods("coordinator", 1)
    for name in [*first, coordinator]:
        stage.run_pod(name)
    early = next(name for name in first if "-w0-" in name)
    stage.end_proxy(early)
    processes.until(lambda: stage.job("gpt")["status"]["workers"]["ready"] == 3, "three ready workers", 120)
    victim = next(name for name in first if "-w1-" in name)
    stage.end_pod(victim, 1, beside=runs_on)
    processes.until(lambda: victim not in stage.pods() and len(stage.pods("worker")) == 3, "the replacement, and the end of the sidecar", 120)
    assert stage.job("gpt")["status"]["restarts"] | {"failureTime": "", "windowTime": ""} == {
        "failure": 1, "infrastructure": 0, "preemption": 0, "windowFailures": 1, "failureTime": "", "windowTime": ""}
    assert early in stage.pods(), "one whose sidecar ended early trains on"
    for name in stage.pods("worker"):
        stage.end_pod(name, 0, beside=None if name == early else runs_on)  # what has ended runs no more
    stage.finish("gpt", beside=runs_on)
    assert stage.condition("gpt", "Complete") == "True"
    processes.until(lambda: set(stage.pods()) == {early}, "no sidecar runs on; the pod in which nothing runs stays", 120)


def test_what_somebody_deletes_comes_back(stage):
    stage.operator("--no-lease")
    stage.kubectl.apply(stage_rig.job("gpt"))
    stage.until_pods("worker", 3)
    before = stage.around()
    stage.kubectl("delete", "service,poddisruptionbudget,networkpolicy", "-l", "ringmaster.dev/job=gpt")
    processes.until(lambda: stage.around() == before, "all of it back", 120)


def spec_of(stage, coordinator):
    """What its kubelet would show it as a file, and that this is what it takes."""
    pod = stage.pods()[coordinator]
    text = pod["metadata"]["annotations"]["ringmaster.dev/spec"]
    (item,) = [item for volume in pod["spec"]["volumes"] for item in volume.get("downwardAPI", {}).get("items", [])]
    assert (item["path"], item["fieldRef"]["fieldPath"]) == ("spec.json", "metadata.annotations['ringmaster.dev/spec']")
    (container,) = [one for one in pod["spec"]["containers"] if one["name"] == "coordinator"]
    (wanted,) = [each["value"] for each in container["env"] if each["name"] == "RINGMASTER_POD_SPEC_SHA256"]
    assert hashlib.sha256(text.encode()).hexdigest() == wanted
    return json.loads(text)


def test_a_coordinator_and_its_successor_bring_their_spec_along_and_leave_nothing_behind(stage):
    stage.operator("--no-lease")
    stage.kubectl.apply(stage_rig.job("gpt"))
    (first,) = stage.until_pods("coordinator", 1)
    for name in [first, *stage.until_pods("worker", 3)]:
        stage.run_pod(name)
    before, spec = stage.around(), spec_of(stage, first)
    assert spec["metadata"]["name"] == "gpt"
    stage.end_pod(first, 137)
    (second,) = processes.until(lambda: stage.pods("coordinator").keys() - {first}, "a successor", 120)
    assert spec_of(stage, second) == spec
    assert stage.around() == before, "nothing adds up"


def test_what_another_operator_is_told_of_metrics_and_users_holds_for_policies_at_once_and_for_pods_to_come(stage):
    """As after an upgrade of the chart: the pods that train are left alone, and all who speak to them still may."""
    def ingress(name):
        return stage.kubectl.get("networkpolicy", name)["spec"]["ingress"]

    older = stage.operator("--no-lease")
    stage.kubectl.apply(stage_rig.job("gpt"))
    first = stage.until_pods("worker", 3)
    names = ("gpt-workers", "gpt-coordinator")
    before = processes.until(lambda: all(stage.kubectl.exists("networkpolicy", name) for name in names) and {name: ingress(name) for name in names},
                             "the policies", 120)
    assert older.stop() == 0
    stage.kubectl("label", "namespace", stage.kubectl.namespace, "pod-security.kubernetes.io/enforce=restricted", "--overwrite")
    stage.operator("--no-lease", "--metrics-from=team=ops", "--leave-uid")
    for name, port in zip(names, (7071, 7072)):
        scrapes = {"from": [{"namespaceSelector": {"matchLabels": {"team": "ops"}}}], "ports": [{"protocol": "TCP", "port": port}]}
        processes.until(lambda n=name, s=scrapes: ingress(n) == [*before[n], s], f"{name} with a rule for scrapes", 120)
    assert set(stage.pods("worker")) == set(first)
    stage.kubectl("delete", "pod", next(iter(first)), "--wait=false")
    (made,) = processes.until(lambda: [pod for name, pod in stage.pods("worker").items() if name not in first], "another pod", 120)
    context = made["spec"]["securityContext"]
    assert context == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}


def test_a_deleted_job_takes_everything_along(stage):
    stage.operator("--no-lease")
    stage.kubectl.apply(stage_rig.job("gpt"))
    stage.until_pods("worker", 3)
    stage.kubectl("delete", "trainingjob", "gpt")
    processes.until(lambda: not stage.pods() and not stage.around(), "nothing is left", 120)


def test_the_coordinator_is_who_the_workers_are_and_may_run_where_they_may(stage):
    """As the API server stored it: a role by a ServiceAccount, a house's certificates, a pool whose nodes are all tainted, and no GPU."""
    stage.kubectl("create", "serviceaccount", "trainer")
    trainer = {"name": "trainer", "image": "worker:1", "resources": {"limits": {"nvidia.com/gpu": "8", "memory": "1Gi"}},
               "env": [{"name": "AWS_CA_BUNDLE", "value": "/etc/house/ca.crt"}, {"name": "HTTPS_PROXY", "value": "http://proxy:3128"}],
               "volumeMounts": [{"name": "house", "mountPath": "/etc/house"}]}
    template = {"spec": {"serviceAccountName": "trainer", "nodeSelector": {"pool": "training"}, "containers": [trainer],
                         "tolerations": [{"key": "team", "operator": "Equal", "value": "ml", "effect": "NoSchedule"}],
                         "volumes": [{"name": "house", "configMap": {"name": "house-ca"}}]}}
    stage.operator("--no-lease")
    stage.kubectl.apply(stage_rig.job("gpt", workers={"template": template}))
    (name,) = stage.until_pods("coordinator", 1)
    spec = stage.kubectl.get("pod", name)["spec"]
    (container,) = spec["containers"]
    assert spec["serviceAccountName"] == "trainer" and spec["nodeSelector"] == {"pool": "training"}
    assert "team" in [toleration.get("key") for toleration in spec["tolerations"]]
    assert {"AWS_CA_BUNDLE", "HTTPS_PROXY"} <= {variable["name"] for variable in container["env"]}
    assert {"house", "ringmaster-credentials"} <= {mount["name"] for mount in container["volumeMounts"]}
    assert "nvidia.com/gpu" not in container["resources"]["limits"]


def test_a_namesake_is_another_job(stage):
    stage.operator("--no-lease")
    stage.kubectl.apply(stage_rig.job("gpt"))
    first = set(stage.until_pods("worker", 3))
    stage.kubectl("delete", "trainingjob", "gpt")
    stage.kubectl.apply(stage_rig.job("gpt"))
    processes.until(lambda: len(found := set(stage.pods("worker"))) == 3 and not found & first, "the namesake's own pods", 120)


def test_the_api_server_away_is_no_reason_to_do_anything(stage):
    operator = stage.operator("--no-lease")
    stage.kubectl.apply(stage_rig.job("gpt"))
    stage.until_pods("worker", 3)
    before = set(stage.pods())
    cluster = stage.kubectl.cluster
    cluster.stop("api-server", signal.SIGKILL)
    operator.until_logged("a list or watch failed")
    control_plane.ControlPlane(cluster).api_server_back()
    stage.kubectl("patch", "trainingjob", "gpt", "--type=merge", "-p", json.dumps({"spec": {"workers": {"target": 4}}}))
    assert before < set(stage.until_pods("worker", 4)) | set(stage.pods("coordinator"))


def test_a_template_that_the_api_server_refuses_is_told_in_its_words_before_anything_is_made(stage):
    workers = {"target": 2, "template": {"spec": {"containers": [
        {"name": "trainer", "image": "none:1", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}]}}}
    stage.operator("--no-lease")
    stage.kubectl.apply(stage_rig.job("gpt", workers))
    assert 'volumeMounts[0].name: Not found: "data"' in stage.until_message("gpt", "the API server refused to create pods")
    assert not stage.pods()


def test_a_strangers_pod_under_a_name_of_ours_is_told_and_not_taken(stage):
    stage.kubectl.apply(stage_rig.job("gpt"))
    name = stage_rig.worker_name(stage.job("gpt"), 1, 1)
    stage.kubectl.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [{"name": "none", "image": "none:1"}]}})
    stage.operator("--no-lease")
    assert f'pods "{name}" is there and does not belong to this job' in stage.until_message("gpt", "does not belong")
    stage.kubectl("delete", "pod", name, "--grace-period=0", "--force")
    assert name in stage.until_pods("worker", 3)


@pytest.mark.parametrize("kind, name, spec", [
    ("service", "gpt-coordinator", {"apiVersion": "v1", "kind": "Service", "spec": {"selector": {"app": "theirs"}, "ports": [{"port": 80}]}}),
    ("poddisruptionbudget", "gpt-workers", {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
                                            "spec": {"minAvailable": 7, "selector": {"matchLabels": {"app": "theirs"}}}})])
def test_nothing_is_written_over_what_is_not_the_jobs(stage, kind, name, spec):
    stage.kubectl.apply({**spec, "metadata": {"name": name}})
    theirs = stage.kubectl.get(kind, name)["metadata"]["resourceVersion"]
    stage.operator("--no-lease")
    stage.kubectl.apply(stage_rig.job("gpt"))
    assert f's "{name}" is there and does not belong to this job' in stage.until_message("gpt", "does not belong")
    (ready,) = [each for each in stage.job("gpt")["status"]["conditions"] if each["type"] == "PodsReady"]
    assert ready["reason"] == "NameTaken"
    assert stage.kubectl.get(kind, name)["metadata"]["resourceVersion"] == theirs
    stage.kubectl("delete", kind, name)
    stage.until_pods("worker", 3)


def claim(victim, namespace, name, **labels):
    """A pod that says in another namespace that it is a pod of the job; its finalizer keeps the garbage collector's hands off."""
    owner = {"apiVersion": "ringmaster.dev/v1alpha1", "kind": "TrainingJob", "name": victim["metadata"]["name"], "uid": victim["metadata"]["uid"],
             "controller": True}
    ours = {f"ringmaster.dev/{key}": value for key, value in {"job": owner["name"], "job-uid": owner["uid"], **labels}.items()}
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace, "labels": ours, "finalizers": ["example.com/stay"], "ownerReferences": [owner]},
            "spec": {"containers": [{"name": ours["ringmaster.dev/role"].replace("worker", "trainer"), "image": "none:1"}]}}


def test_pods_of_another_namespace_neither_end_nor_forge_nor_starve_a_job(stage, other):
    """Who has a namespace of his own, and has learnt the job's uid: a coordinator of the next term that says it is complete, and a worker
    under the attempt that comes next."""
    stage.operator("--no-lease", everywhere=True)
    stage.kubectl.apply(stage_rig.job("gpt"))
    stage.until_pods("worker", 3)
    for name in stage.pods():
        stage.run_pod(name)
    processes.until(lambda: stage.job("gpt")["status"]["workers"]["ready"] == 3, "three ready workers", 120)
    evil = stage_rig.Stage(other)
    other.apply(claim(stage.job("gpt"), other.namespace, "word", role="coordinator", term="2"),
                claim(stage.job("gpt"), other.namespace, "squatter", role="worker", worker="1", attempt="2"))
    forged = json.dumps({"exitCode": 0, "reason": "", "step": 100, "loss": 0.1, "weightsSha256": "bad0" * 16, "uri": "s3://evil/run", "interrupted": False})
    evil.end_pod("word", 0, forged)
    evil.run_pod("squatter")
    (coordinator,) = stage.pods("coordinator")
    (victim,) = [name for name in stage.pods("worker") if "-w1-" in name]
    stage.kubectl("delete", "pod", coordinator, victim, "--grace-period=0", "--force")
    processes.until(lambda: len(stage.pods("worker")) == 3 and len(stage.pods("coordinator")) == 1 and not {coordinator, victim} & set(stage.pods()),
                    "both come again", 120)
    assert stage.condition("gpt", "Finished") is None
    assert stage.job("gpt")["status"]["ring"]["term"] == 2
    stage.finish("gpt")
    assert stage.job("gpt")["status"]["result"]["weightsSha256"] == stage_rig.SHA


def images(stage):
    return {item["spec"]["containers"][0]["image"] for item in stage.pods().values()}


def test_an_upgrade_changes_no_job_that_runs(stage):
    """The template names no image; the operator's successor has another one to fall back on, and a machine takes a worker and the
    coordinator along. Suspended, the job moves."""
    job = stage_rig.job("gpt")
    del job["spec"]["workers"]["template"]["spec"]["containers"][0]["image"]
    first = stage.operator("--no-lease", "--worker-image", "worker:1")
    stage.kubectl.apply(job)
    for name in {**stage.until_pods("worker", 3), **stage.until_pods("coordinator", 1)}:
        stage.run_pod(name, digest="ab" * 32)
    pinned = f"worker@sha256:{'ab' * 32}"
    processes.until(lambda: stage.job("gpt")["status"].get("images") == {"trainer": pinned, "coordinator": pinned}, "both images are pinned", 120)
    assert first.stop() == 0
    stage.operator("--no-lease", "--worker-image", "worker:2")
    before = set(stage.pods())
    gone = [name for name in before if "-w1-" in name or "-coordinator-" in name]
    stage.kubectl("delete", "pod", *gone, "--grace-period=0", "--force")
    processes.until(lambda: len(stage.pods()) == 4 and not set(gone) & set(stage.pods()), "both come again", 120)
    assert images(stage) == {"worker:1", pinned}
    stage.kubectl("patch", "trainingjob", "gpt", "--type=merge", "-p", '{"spec":{"suspend":true}}')
    processes.until(lambda: stage.condition("gpt", "Suspended") == "True", "Suspended", 120)
    assert "images" not in stage.job("gpt")["status"]
    stage.kubectl("patch", "trainingjob", "gpt", "--type=merge", "-p", '{"spec":{"suspend":false}}')
    processes.until(lambda: len(stage.pods("worker")) == 3 and images(stage) == {"worker:2"}, "all pods have the new image", 120)


def test_an_upgrade_changes_no_program_that_runs(stage):
    """Ringmaster's own programs come out of the operator's image: of the coordinator's and the bundle's one build, whichever ran first."""
    first = stage.operator("--no-lease", "--worker-image", "ours:1")
    stage.kubectl.apply(stage_rig.program_job("gpt"))
    for name in {**stage.until_pods("worker", 3), **stage.until_pods("coordinator", 1)}:
        stage.run_pod(name, digest="ab" * 32)
    theirs, ours = (f"{name}@sha256:{'ab' * 32}" for name in ("worker", "ours"))
    processes.until(lambda: stage.job("gpt")["status"].get("images") == {"trainer": theirs, "coordinator": ours, "bundle": ours}, "all are pinned", 120)
    assert first.stop() == 0
    stage.operator("--no-lease", "--worker-image", "ours:2")
    gone = [name for name in stage.pods() if "-w1-" in name or "-coordinator-" in name]
    stage.kubectl("delete", "pod", *gone, "--grace-period=0", "--force")
    processes.until(lambda: len(stage.pods()) == 4 and not set(gone) & set(stage.pods()), "both come again", 120)
    (worker,) = [pod for name, pod in stage.pods("worker").items() if "-w1-" in name]
    (coordinator,) = stage.pods("coordinator").values()
    assert [container["image"] for container in (*worker["spec"]["containers"], *worker["spec"]["initContainers"])] == [theirs, ours]
    assert coordinator["spec"]["containers"][0]["image"] == ours


def test_an_init_container_without_room_is_told_and_costs_the_job_nothing(stage):
    stage.operator("--no-lease", "--worker-image", "ours:1")
    victim = begin_program(stage, failurePolicy={"maxRestarts": 0})[0]
    stage.fail_init(victim, 4, {"exitCode": 4, "reason": "/ringmaster-bundle/lib/a: no room for the bundle", "elsewhere": True})
    processes.until(lambda: stage.job("gpt")["status"]["restarts"].get("misfit") == 1, "it is counted", 120)
    assert stage.condition("gpt", "Stopping") is None
    told = processes.until(lambda: [event["note"] for event in stage.kubectl.get("events.events.k8s.io") if event["reason"] == "WorkerRefused"], "the event", 120)
    assert told[0].endswith("init container ringmaster-install: /ringmaster-bundle/lib/a: no room for the bundle"), told


def test_a_job_whose_key_somebody_deleted_goes_on_with_another_one_after_a_suspension(stage):
    stage.operator("--no-lease")
    stage.kubectl.apply(stage_rig.job("gpt"))
    for name in {**stage.until_pods("worker", 3), **stage.until_pods("coordinator", 1)}:
        stage.run_pod(name)
    before = stage.job("gpt")["status"]["ring"]["keySecret"]
    stage.kubectl("delete", "secret", before)
    stage.kubectl("patch", "trainingjob", "gpt", "--type=merge", "-p", '{"spec":{"suspend":true}}')
    processes.until(lambda: stage.condition("gpt", "Suspended") == "True", "Suspended", 120)
    stage.kubectl("patch", "trainingjob", "gpt", "--type=merge", "-p", '{"spec":{"suspend":false}}')
    processes.until(lambda: len(stage.pods("worker")) == 3 and len(stage.pods("coordinator")) == 1, "all pods come again", 120)
    after = stage.job("gpt")["status"]["ring"]["keySecret"]
    assert after != before
    assert stage.kubectl("get", "secret", after, "-o", "name").strip() == f"secret/{after}"
    for pod in [*stage.pods("worker").values(), *stage.pods("coordinator").values()]:
        mounted = [v["secret"]["secretName"] for v in pod["spec"]["volumes"] if "secret" in v]
        assert after in mounted and before not in mounted, mounted


def test_a_job_that_nobody_can_read_stops_no_other(stage):
    """Nested deeper than the reader goes, and with a NUL in a key: the API server keeps both."""
    operator = stage.operator("--no-lease")
    deep, nul = stage_rig.job("deep"), stage_rig.job("nul")
    deep["spec"]["workers"]["template"]["spec"]["x"] = "HERE"
    nul["metadata"]["annotations"] = {"a": "x\0y"}
    stage.kubectl("create", "-f", "-", stdin=json.dumps(deep).replace('"HERE"', "[" * 3000 + "]" * 3000))
    stage.kubectl("create", "-f", "-", stdin=json.dumps(nul))
    stage.kubectl.apply(stage_rig.job("gpt"))
    processes.until(lambda: sum(name.startswith("gpt-w") for name in stage.pods("worker")) == 3, "the pods of the good job", 120)
    processes.until(lambda: sum(name.startswith("nul-w") for name in stage.pods("worker")) == 3, "the pods of the job with a NUL", 120)
    assert operator.until_logged("a list or watch failed", resource="trainingjobs")["why"].startswith("an object of trainingjobs is skipped")


def test_of_its_coordinators_events_each_is_told_once_and_none_is_asked_for_again(stage, tmp_path):
    """A coordinator that remembers 64 would bring them with each answer."""
    def saved(sequence, step):
        return {"sequence": sequence, "time": 1000 * int(time.time()), "event": "checkpointSaved", "step": step, "uri": f"s3://bucket/run/step-{step:08d}",
                "bytes": 1, "ms": 1.5}
    stage.operator("--no-lease", "--coordinator-port", str(COORDINATOR_PORT))
    stage.kubectl.apply(stage_rig.job("gpt"))
    coordinator = stage_rig.PlayedCoordinator(stage, "gpt", tmp_path / "coordinator", COORDINATOR_PORT)
    try:
        for name in [*stage.until_pods("worker", 3), *stage.until_pods("coordinator", 1)]:
            stage.run_pod(name)
        coordinator.says(range(3), events=[saved(40, 50), saved(41, 100)])
        processes.until(lambda: any("told=41" in question for question in coordinator.questions()), "two events were handed on", 120)
        coordinator.says(range(3), events=[saved(42, 150)])
        processes.until(lambda: any("told=42" in question for question in coordinator.questions()), "one more was handed on", 120)
    finally:
        coordinator.stop()
    assert "told" not in coordinator.questions()[0]

    def told():
        events = [event for event in stage.kubectl.get("events.events.k8s.io") if event["reason"] == "CheckpointSaved"]
        return sorted(event["note"].split("step ")[1].split()[0] for event in events)
    processes.until(lambda: len(told()) >= 3, "all of them are events of the job", 120)
    assert [step.strip(":,") for step in told()] == ["100", "150", "50"]


def test_metrics_and_health_are_there_and_the_log_is_json(stage):
    operator = stage.operator("--no-lease")
    stage.kubectl.apply(stage_rig.job("gpt"))
    stage.until_pods("worker", 3)
    processes.until(lambda: operator.get("/readyz") == (200, "ready\n"), "ready", 60)
    assert operator.get("/healthz") == (200, "ok\n")
    assert operator.get("/nothing")[0] == 404
    assert operator.metric("pods_created_total") == 4
    assert operator.metric("pods ") == 4
    assert operator.metric("leader") == 1
    assert {"time", "level", "program", "message"} <= operator.lines("create")[0].keys()


def test_promtool_has_nothing_against_the_operators_metrics_and_the_docs_name_them(stage):
    prometheus.install()
    operator = stage.operator("--no-lease")
    stage.kubectl.apply(stage_rig.job("gpt"))
    stage.until_pods("worker", 3)
    processes.until(lambda: operator.get("/readyz")[0] == 200, "ready", 60)
    assert prometheus.complaints(operator.get("/metrics")[1]) == ""
    found, told = prometheus.families(operator.get("/metrics", prometheus.OPENMETRICS)[1]), prometheus.documented("Of the operator")
    silent = {name for name, (_, labels) in told.items() if labels[:2] == ("training_job_namespace", "training_job")}  # these pods have no node, and cost nothing yet
    assert {name: (kind, told[name][1] if name in silent else labels) for name, (kind, labels) in found.items()} == told
