"""The chart and the plain manifest: what they make, refuse, keep, and that the rights they give are enough."""

import json
import shutil
import subprocess

import cluster as clusters
import operator_rig as stage_rig
import processes
import pytest
import rig
import schemas

ROOT = stage_rig.ROOT
CHART = ROOT / "charts" / "ringmaster"
INSTALL = ROOT / "deploy" / "install.yaml"
EXAMPLES = [path for path in sorted((ROOT / "deploy" / "examples").glob("*.yaml")) if "template:" in path.read_text()]  # others run locally
MONITORS = sorted((clusters.CACHE / "src/prometheus-operator").glob("monitoring.coreos.com_*.yaml"))
HOME = "ringmaster-system"
VERSION = (CHART / "Chart.yaml").read_text().partition("\nversion: ")[2].partition("\n")[0]

DISK = "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0]"
AFFINITY = f"{DISK}.key=disk,{DISK}.operator=Exists"

# Settings with which each branch of a template is taken.
VARIANTS = [
    "replicas=2", "replicas=1", "metrics.podMonitor=true,metrics.serviceMonitor=true,metrics.open=true", "crds.install=false,namespace=ml",
    "namespace=ml,nodes=false,metrics.podMonitor=true", "networkPolicies=false,priorityClassName=high,nodeSelector.disk=ssd",
    "image.pullSecrets={a,b},image.pullPolicy=Always", "requests.perSecond=99999,requests.burst=99999",
    "tolerations[0].key=gpu,tolerations[0].operator=Exists,resources.limits.cpu=2,resources.requests.cpu=0.5",
    f"image.registry=example.invalid/ml,image.operatorDigest=sha256:{'0' * 64},image.workerDigest=sha256:{'1' * 64}",
    "metrics.podMonitor=true,metrics.serviceMonitor=true,metrics.interval=30s,metrics.labels.release=prometheus",
    "arch=,openshift=true,rbac.aggregate=false,logLevel=debug,podLabels.team=ml,serviceAccount.annotations.role=arn",
    "extraEnv[0].name=HTTPS_PROXY,extraEnv[0].value=http://proxy:3128,extraArgs={--coordinator-port=7070,--qps=9}",
    "metrics.open=true,metrics.namespaceSelector.team=ops,openshift=true", "prices.configMap=machine-prices", AFFINITY,
    "nodeAgent.enabled=true,image.pullSecrets={a},nodeAgent.nodeSelector.pool=spot", "nodeAgent.enabled=true,nodeAgent.createNamespace=false,openshift=true",
    "nodeAgent.enabled=true,nodeAgent.priorityClassName=,nodeAgent.metadata=http://[fd00:ec2::254]:80/"]


@pytest.fixture(name="helm", scope="module")
def fixture_helm(api_cluster):
    """helm as a function; a release that a test left is taken away."""
    def helm(*arguments):
        return api_cluster.call("helm", *arguments)

    yield helm
    everywhere = rig.Kubectl(api_cluster)
    everywhere("delete", "clusterrole,clusterrolebinding", "-l", "app.kubernetes.io/name=ringmaster-operator")
    everywhere("delete", "namespace", HOME, "--ignore-not-found", "--wait=false")


@pytest.fixture(name="home", scope="module")
def fixture_home(api_cluster):
    everywhere = rig.Kubectl(api_cluster)
    if not everywhere.exists("namespace", HOME):
        everywhere("create", "namespace", HOME)
    return rig.Kubectl(api_cluster, HOME)


def render(helm, *arguments):
    return helm("template", "ringmaster", str(CHART), "--namespace", HOME, "--kube-version", "1.36.0", *arguments)


def test_helm_has_nothing_against_the_chart(helm):
    assert "0 chart(s) failed" in helm("lint", "--strict", str(CHART))


@pytest.mark.parametrize("setting, sentence", [
    ("replicas=0", "replicas"), ("replica=2", "replica"), ("image.pullPolicy=Sometimes", "pullPolicy"), ("namespace=A_b", "namespace"),
    ("requests.perSecond=fast", "perSecond"), ("metrics.open=perhaps", "open"), ("image.operatorDigest=latest", "operatorDigest"), ("image.snapshotsDigest=new", "snapshotsDigest"),
    ("image.registry=example.invalid/", "registry"), ("metrics.interval=often", "interval"), ("logLevel=loud", "logLevel"),
    ("extraArgs={qps=9}", "extraArgs"), ("openshift=4", "openshift"), ("metrics.namespaceSelector.team=-ops", "team"),
    ("metrics.namespaceSelector.-team=ops", "team"), ("prices.configMap=A_b", "configMap"),
     ("nodeAgent.port=0", "port"), ("nodeAgent.namespace=A", "namespace"),
     ("nodeAgent.priorityClassName=High", "priorityClassName"), ("nodeAgent.metadata=169.254.169.254", "metadata")])
def test_a_value_that_is_none_is_refused_by_name(helm, setting, sentence):
    with pytest.raises(RuntimeError) as why:
        render(helm, "--set", setting)
    assert "don't meet the specifications of the schema" in str(why.value) and sentence in str(why.value)


def test_the_plain_manifest_is_what_the_chart_makes(helm, api_cluster):
    assert helm("version")
    made = api_cluster.call(str(ROOT / "deploy" / "render-install"))
    assert made == INSTALL.read_text(), "deploy/render-install >deploy/install.yaml"


def test_in_one_namespace_there_is_no_right_outside_but_to_see_nodes(helm):
    text = render(helm, "--set", "namespace=ml,crds.install=false,rbac.aggregate=false")
    assert text.count("kind: ClusterRole\n") == 1 and "resources: [nodes]" in text
    assert "--namespace=ml" in text
    assert "--lease-namespace=ml" in text, "other releases for that namespace see our Lease there"
    assert "kind: ClusterRole" not in render(helm, "--set", "namespace=ml,nodes=false,crds.install=false,rbac.aggregate=false")


def operator_pod(helm, home, *settings):
    """(the template of the operator's pods, its container) with these values, as the API server takes it."""
    text = render(helm, "--set", ",".join(settings or ["replicas=2"]), "--show-only", "templates/deployment.yaml")
    made = json.loads(home("apply", "--server-side", "--dry-run=server", "-f", "-", "-o", "json", stdin=text))
    (template,) = (item["spec"]["template"] for item in made["items"] if item["kind"] == "Deployment")
    return template, template["spec"]["containers"][0]


def test_an_image_has_the_registry_in_front_of_it_and_its_digest_behind(helm, home):
    digest = f"sha256:{'a' * 64}"
    _, container = operator_pod(helm, home, "image.registry=example.invalid/ml", f"image.operatorDigest={digest}")
    assert container["image"] == f"example.invalid/ml/ringmaster-operator:{VERSION}@{digest}"
    assert f"--worker-image=example.invalid/ml/ringmaster-worker:{VERSION}" in container["args"]
    text = render(helm, "--set", f"image.workerDigest={digest}")
    assert text.count(f"ringmaster-worker:{VERSION}@{digest}") == 2, "the operator's option, and the pod of helm test"


def test_the_operators_pod_is_as_the_values_say(helm, home):
    template, container = operator_pod(helm, home)
    assert template["spec"]["nodeSelector"] == {"kubernetes.io/arch": "amd64"}
    assert "podAntiAffinity" in template["spec"]["affinity"] and template["spec"]["securityContext"]["runAsUser"] == 65532
    assert container["env"] == [{"name": "RINGMASTER_LOG", "value": "info"}]
    template, container = operator_pod(
        helm, home, "nodeSelector.disk=ssd", "arch=", "openshift=true", "podLabels.team=ml", "logLevel=debug", "extraEnv[0].name=A",
        "extraEnv[0].value=b", "extraArgs={--qps=9}", AFFINITY)
    assert template["spec"]["nodeSelector"] == {"disk": "ssd"} and template["metadata"]["labels"]["team"] == "ml"
    assert list(template["spec"]["affinity"]) == ["nodeAffinity"]
    assert set(template["spec"]["securityContext"]) == {"runAsNonRoot", "seccompProfile"}
    assert container["env"] == [{"name": "RINGMASTER_LOG", "value": "debug"}, {"name": "A", "value": "b"}]
    assert container["args"][-1] == "--qps=9"


def test_the_operators_account_has_the_annotations_of_the_values(helm, home):
    text = render(helm, "--set", r"serviceAccount.annotations.eks\.amazonaws\.com/role-arn=arn", "--show-only", "templates/serviceaccount.yaml")
    account = json.loads(home("apply", "--server-side", "--dry-run=server", "-f", "-", "-o", "json", stdin=text))
    assert account["metadata"]["annotations"]["eks.amazonaws.com/role-arn"] == "arn"


def test_metrics_are_opened_to_everybody_or_to_chosen_namespaces(helm, home):
    def options(*settings):
        return [option for option in operator_pod(helm, home, *settings)[1]["args"] if "metrics" in option]

    name = "metrics.namespaceSelector.kubernetes\\.io/metadata\\.name=monitoring"
    assert options() == []
    assert options("metrics.open=true") == ["--open-metrics"]
    assert options("metrics.open=true", "metrics.namespaceSelector.team=ops", name) == ["--metrics-from=kubernetes.io/metadata.name=monitoring,team=ops"]
    with pytest.raises(RuntimeError, match="set metrics.open=true"):
        render(helm, "--set", "metrics.namespaceSelector.team=ops")


def test_on_openshift_no_pod_is_told_as_whom_to_run(helm):
    text = render(helm, "--set", "crds.install=false,openshift=true")
    assert "--leave-uid" in text and "runAs" in text
    for word in ("runAsUser", "runAsGroup", "fsGroup"):
        assert word not in text
    assert "--leave-uid" not in render(helm)


def test_snapshots_of_processes_are_allowed_where_that_is_asked_for(helm, home):
    def options(*settings):
        return [option for option in operator_pod(helm, home, *settings)[1]["args"] if "snapshot" in option]

    image = f"--worker-image=ringmaster-snapshots:{VERSION}"
    assert options() == []
    assert options("processSnapshots.enabled=true") == [image, "--process-snapshots"], "of the worker's images the one that has CRIU"
    pinned = f"image.snapshotsDigest=sha256:{'2' * 64}"
    assert options("processSnapshots.enabled=true", "image.registry=example.invalid/ml", pinned)[0] == (
        f"--worker-image=example.invalid/ml/ringmaster-snapshots:{VERSION}@sha256:{'2' * 64}")


def test_a_nodes_agent_has_its_machines_network_and_nothing_else(helm, api_cluster):
    assert "ringmaster-node" not in render(helm) and "--node-agent-port" not in render(helm)
    with pytest.raises(RuntimeError, match="nodeAgent.namespace is the release's own"):
        render(helm, "--set", f"nodeAgent.enabled=true,nodeAgent.namespace={HOME}")
    text = render(helm, "--set", "nodeAgent.enabled=true,nodeAgent.port=7999,nodeAgent.nodeSelector.pool=spot", "--show-only", "templates/nodeagent.yaml")
    made = json.loads(rig.Kubectl(api_cluster, "ringmaster-node")("apply", "--dry-run=client", "-f", "-", "-o", "json", stdin=text))["items"]
    space = next(o for o in made if o["kind"] == "Namespace")
    assert space["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "privileged"
    pod = next(o for o in made if o["kind"] == "DaemonSet")["spec"]["template"]["spec"]
    assert pod["hostNetwork"] and not pod["automountServiceAccountToken"] and "volumes" not in pod and "serviceAccountName" not in pod
    assert pod["securityContext"] == {"runAsNonRoot": True, "runAsUser": 65532, "runAsGroup": 65532, "seccompProfile": {"type": "RuntimeDefault"}}
    container, = pod["containers"]
    assert container["securityContext"] == {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
    assert pod["nodeSelector"] == {"pool": "spot", "kubernetes.io/arch": "amd64"}
    assert container["command"] == ["ringmaster-agent", "node", "--listen", "$(HOST_IP)", "--port", "7999"]


def node_agent(helm, api_cluster, settings):
    """What the chart makes of it, by kind."""
    text = render(helm, "--set", f"nodeAgent.enabled=true,{settings}", "--show-only", "templates/nodeagent.yaml")
    made = json.loads(rig.Kubectl(api_cluster, "ringmaster-node")("apply", "--dry-run=client", "-f", "-", "-o", "json", stdin=text))
    return {o["kind"]: o for o in made.get("items", [made])}


def test_a_nodes_agent_has_its_place_on_a_node_that_is_full_or_tainted(helm, api_cluster):
    made = node_agent(helm, api_cluster, "nodeAgent.port=7072")
    pod = made["DaemonSet"]["spec"]["template"]["spec"]
    assert pod["priorityClassName"] == "system-node-critical" and pod["tolerations"] == [{"operator": "Exists"}]
    assert pod["containers"][0]["resources"]["requests"] == {"cpu": "10m", "memory": "16Mi"}
    assert made["ResourceQuota"]["spec"]["scopeSelector"]["matchExpressions"] == [
        {"scopeName": "PriorityClass", "operator": "In", "values": ["system-node-critical"]}]
    assert made["ResourceQuota"]["metadata"]["namespace"] == made["DaemonSet"]["metadata"]["namespace"] == "ringmaster-node"
    made = node_agent(helm, api_cluster, "nodeAgent.priorityClassName=")
    assert "priorityClassName" not in made["DaemonSet"]["spec"]["template"]["spec"] and "ResourceQuota" not in made
    assert "ResourceQuota" not in node_agent(helm, api_cluster, "nodeAgent.priorityClassName=high")
    assert list(node_agent(helm, api_cluster, "nodeAgent.createNamespace=false")) == ["DaemonSet"]


def test_a_nodes_agent_is_admitted_where_the_chart_puts_it(helm, api_cluster):
    """By the namespace's standard, the class and the quota. Until the quota is counted for the first time nobody is."""
    there = rig.Kubectl(api_cluster, "agents-of-nodes")
    there.apply(render(helm, "--set", "nodeAgent.enabled=true,nodeAgent.namespace=agents-of-nodes", "--show-only", "templates/nodeagent.yaml"))
    template = there.get("daemonset", "ringmaster-node")["spec"]["template"]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "agent", "labels": template["metadata"]["labels"]}, "spec": template["spec"]}

    def admitted():
        try:
            there.apply(pod)
            return there.get("pod", "agent")
        except RuntimeError as why:
            assert "status unknown for quota" in str(why) or "serviceaccount" in str(why), why
            return None
    try:
        spec = processes.until(admitted, "it is admitted", 60)["spec"]
        assert spec["priorityClassName"] == "system-node-critical" and spec["priority"] == 2000001000
        there.until(lambda quota: quota.get("status", {}).get("used") == {"pods": "1"}, "the quota counts it", "quota", "ringmaster-node")
    finally:
        rig.Kubectl(api_cluster)("delete", "namespace", "agents-of-nodes", "--wait=false")


def test_a_nodes_agent_asks_where_it_is_told_that_the_metadata_answers(helm, api_cluster):
    made = node_agent(helm, api_cluster, "nodeAgent.metadata=http://[fd00:ec2::254]")
    assert made["DaemonSet"]["spec"]["template"]["spec"]["containers"][0]["command"][-2:] == ["--metadata", "http://[fd00:ec2::254]"]


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_operator_knows_every_option_that_the_chart_gives_it(helm, home, variant):
    _, container = operator_pod(helm, home, variant)
    done = subprocess.run([stage_rig.BIN / "ringmaster-operator", *container["args"], "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.startswith("usage:"), (container["args"], done.stderr)


def test_who_may_edit_a_namespace_may_edit_its_jobs_and_who_may_view_it_may_only_look(helm, home, api):
    """By Kubernetes' own roles, asked as somebody who has no other."""
    everywhere = rig.Kubectl(home.cluster)
    everywhere("apply", "-f", str(stage_rig.CRD))
    everywhere.until_served()
    roles = render(helm, "--show-only", "templates/rbac.yaml")
    home("apply", "-f", "-", stdin=roles)
    for role in ("view", "edit"):
        api("create", "rolebinding", role, f"--clusterrole={role}", f"--user={role}er")

    def may(who, verb, subresource=""):
        try:
            return api("auth", "can-i", verb, "trainingjobs.ringmaster.dev", f"--subresource={subresource}", f"--as={who}").strip() == "yes"
        except RuntimeError:  # its exit code says no
            return False

    processes.until(lambda: may("viewer", "get") and may("editer", "create"), "the roles are taken up", 120)
    assert may("viewer", "list") and may("viewer", "get", "status")
    assert not any(may("viewer", verb) for verb in ("create", "patch", "delete"))
    assert all(may("editer", verb) for verb in ("get", "create", "patch", "delete")) and may("editer", "patch", "scale")
    assert not may("editer", "update", "status"), "that is the operator's"
    assert not may("nobody", "get")
    home("delete", "-f", "-", stdin=roles)  # no release made them: none could be installed over them


def test_monitors_are_made_when_asked_for(helm):
    assert "monitoring.coreos.com" not in render(helm, "--set", "crds.install=false")
    text = render(helm, "--set", "crds.install=false,metrics.podMonitor=true,metrics.serviceMonitor=true")
    assert "kind: PodMonitor" in text and "kind: ServiceMonitor" in text and "interval" not in text
    text = render(helm, "--set", "crds.install=false,metrics.podMonitor=true,metrics.serviceMonitor=true,metrics.interval=30s,metrics.labels.release=one")
    assert text.count("interval: 30s") == 2 and text.count("release: one") == 2


@pytest.fixture(name="schemas", scope="module")
def fixture_schemas(api_cluster, tmp_path_factory):
    """Schemas of Kubernetes, of TrainingJobs and of Prometheus Operator's kinds."""
    clusters.build("--tools")
    kubectl = rig.Kubectl(api_cluster)
    found = schemas.Schemas(kubectl, tmp_path_factory.mktemp("schemas"))
    for crd in (stage_rig.CRD, *MONITORS):
        found.add(json.loads(kubectl("create", "--dry-run=client", "-f", str(crd), "-o", "json")))
    return found


def test_kubeconform_has_nothing_against_what_is_installed_and_what_is_shown(helm, schemas):
    manifests = {variant: render(helm, "--set", variant) for variant in VARIANTS}
    manifests |= {path.name: path.read_text() for path in (INSTALL, *EXAMPLES)}
    if schemas.complaints("\n---\n".join(manifests.values())):  # all at once is quicker; one by one says which
        for name, text in manifests.items():
            assert schemas.complaints(text) == [], name
        raise AssertionError("together they are wrong")


@pytest.mark.parametrize("right, wrong, sentence", [
    ("replicas: 2", "replica: 2", "replica"), ("replicas: 2", "replicas: two", "integer"), ("replicas: 2", "replicas: 2\n  replicas: 2", "already"),
    ("containerPort: 8080", "containerport: 8080", "containerport"), ("minAvailable: 1", "minAvailable: [1]", "minAvailable"),
    ("podMetricsEndpoints:", "podMetricEndpoints:", "podMetric"), ("endpoints:\n", "endpoint:\n", "endpoint")])
def test_kubeconform_finds_a_mistake_in_the_chart(helm, schemas, right, wrong, sentence):
    text = render(helm, "--set", "crds.install=false,metrics.podMonitor=true,metrics.serviceMonitor=true")
    assert right in text
    found = schemas.complaints(text.replace(right, wrong, 1))
    assert len(found) == 1 and sentence in found[0], found


@pytest.mark.parametrize("right, wrong", [("workers:", "worker:"), ("target: 8", "target: eight"), ("containers:", "container:"), ("cpu: \"4\"", "cpu: [4]")])
def test_kubeconform_finds_a_mistake_in_a_job_and_in_its_pods(schemas, right, wrong):
    text = next(path for path in EXAMPLES if path.name == "spot.yaml").read_text()
    assert right in text
    assert len(schemas.complaints(text.replace(right, wrong, 1))) == 1


def test_monitors_are_taken_where_prometheus_operator_is_installed(helm, home, schemas):
    assert schemas and MONITORS, "they come with the schemas"
    everywhere = rig.Kubectl(home.cluster)
    everywhere("delete", "crd", "trainingjobs.ringmaster.dev", "--ignore-not-found")
    for crd in MONITORS:
        everywhere("apply", "--server-side", "-f", str(crd))
    try:
        for kind in ("podmonitors", "servicemonitors"):
            everywhere.until_condition("Established", "crd", f"{kind}.monitoring.coreos.com")
        made = home("apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-", stdin=render(
            helm, "--set", "metrics.podMonitor=true,metrics.serviceMonitor=true", "--show-only", "templates/monitors.yaml"))
        assert "podmonitor.monitoring.coreos.com/ringmaster-jobs" in made and "servicemonitor.monitoring.coreos.com/ringmaster-operator" in made
        for settings, warned in (("metrics.podMonitor=true", True), ("metrics.podMonitor=true,metrics.open=true", False), ("replicas=2", False)):
            said = helm("install", "ringmaster", str(CHART), "--namespace", HOME, "--dry-run=server", "--set", settings)
            assert ("admit no Prometheus" in said) == warned, said[-2000:]
    finally:
        for crd in MONITORS:
            everywhere("delete", "-f", str(crd), "--wait=false")


def test_the_manifest_is_taken_by_a_server_that_enforces_restricted_pods(home):
    """Pods of the Deployment's template, tried as the ReplicaSet controller would make them."""
    rig.Kubectl(home.cluster)("label", "namespace", HOME, "pod-security.kubernetes.io/enforce=restricted", "--overwrite")
    made = json.loads(home("apply", "--server-side", "--dry-run=server", "-f", str(INSTALL), "-o", "json"))
    items = [item for item in made["items"] if item["kind"] == "Deployment"]
    template = items[0]["spec"]["template"]
    template["spec"].pop("serviceAccountName")
    template["spec"].pop("serviceAccount", None)
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one", "labels": template["metadata"]["labels"]}, "spec": template["spec"]}
    assert "created" in home("create", "--dry-run=server", "-f", "-", stdin=json.dumps(pod))


def token_config(home, folder, release="ringmaster"):
    """A kubeconfig of the operator's ServiceAccount."""
    config = json.loads(home("config", "view", "--raw", "--minify", "-o", "json"))
    config["users"] = [{"name": config["users"][0]["name"], "user": {"token": home("create", "token", f"{release}-operator").strip()}}]
    path = folder / f"{release}.kubeconfig"
    path.write_text(json.dumps(config))
    return path


def test_install_work_upgrade_uninstall_and_install_again(helm, home, api, tmp_path):
    where = ("--namespace", HOME)
    everywhere = rig.Kubectl(home.cluster)
    everywhere("delete", "crd", "trainingjobs.ringmaster.dev", "--ignore-not-found")
    helm("install", "ringmaster", str(CHART), *where)
    everywhere.until_served()
    stage = stage_rig.Stage(api)
    try:
        operator = stage.operator("--no-lease", kubeconfig=token_config(home, tmp_path))
        api.apply(stage_rig.job("gpt"))
        stage.until_pods("worker", 3)
        assert operator.metric("reconciles_refused") == 0
        newer = tmp_path / "ringmaster"
        shutil.copytree(CHART, newer)
        crd = newer / "files" / "trainingjob.yaml"
        text = crd.read_text()
        crd.write_text(text.replace("                suspend:\n", "                novelty:\n                  type: string\n                suspend:\n"))
        helm("upgrade", "ringmaster", str(newer), *where)
        assert "novelty" in everywhere("get", "crd", "trainingjobs.ringmaster.dev", "-o", "json")
        helm("uninstall", "ringmaster", *where)
        assert not home.exists("deployment", "ringmaster-operator")
        assert len(stage.pods("worker")) == 3 and api.exists("trainingjob", "gpt"), "jobs outlive the operator"
        helm("install", "ringmaster", str(CHART), *where)
        assert "novelty" not in everywhere("get", "crd", "trainingjobs.ringmaster.dev", "-o", "json")
        assert home.exists("deployment", "ringmaster-operator")
        helm("uninstall", "ringmaster", *where)
    finally:
        stage.close()


def released_operator(stage, home, folder, release):
    """An operator with the rights that the release gives, and with its options but for where it listens."""
    (container,) = home.get("deployment", f"{release}-operator")["spec"]["template"]["spec"]["containers"]
    options = [option for option in container["args"] if not option.startswith(("--listen=", "--port="))]
    return stage.operator(*options, kubeconfig=token_config(home, folder, release), everywhere=True)


def test_two_releases_for_a_namespace_each_are_installed_beside_each_other_and_either_goes_without_the_other(helm, home, api, other, tmp_path):
    everywhere = rig.Kubectl(home.cluster)
    everywhere("delete", "crd", "trainingjobs.ringmaster.dev", "--ignore-not-found")
    here, there = stage_rig.Stage(api), stage_rig.Stage(other)
    try:
        helm("install", "one", str(CHART), "--namespace", HOME, "--set", f"namespace={api.namespace}")
        everywhere.until_served()
        for arguments in (["two"], ["one", "--set", "crds.install=false"]):
            with pytest.raises(RuntimeError, match="exists and cannot be imported into the current release"):
                helm("install", *arguments, str(CHART), "--namespace", other.namespace, "--set", f"namespace={other.namespace}")
        helm("install", "two", str(CHART), "--namespace", other.namespace, "--set", f"namespace={other.namespace},crds.install=false")
        first, second = released_operator(here, home, tmp_path, "one"), released_operator(there, other, tmp_path, "two")
        for stage in (here, there):
            stage.kubectl.apply(stage_rig.job("gpt"))
            stage.until_pods("worker", 3)
        for operator in (first, second):
            processes.until(lambda o=operator: o.get("/readyz") == (200, "ready\n"), "ready", 60)
            assert operator.metric("reconciles_refused") == 0 and not operator.lines("another release acts")
        helm("uninstall", "one", "--namespace", HOME)
        roles = [role["metadata"]["name"] for role in everywhere.get("clusterroles", "-l", "app.kubernetes.io/name=ringmaster-operator")]
        assert sorted(roles) == ["two-operator-nodes", "two-trainingjobs-edit", "two-trainingjobs-view"]
        there.kubectl("patch", "trainingjob", "gpt", "--type=merge", "-p", json.dumps({"spec": {"workers": {"target": 4}}}))
        there.until_pods("worker", 4)
        assert len(here.pods("worker")) == 3, "its jobs outlive it"
        helm("uninstall", "two", "--namespace", other.namespace)
    finally:
        here.close()
        there.close()


def test_every_example_is_taken_by_the_api_server(home, api):
    everywhere = rig.Kubectl(home.cluster)
    everywhere("apply", "-f", str(stage_rig.CRD))
    everywhere.until_served()
    everywhere("label", "namespace", api.namespace, "pod-security.kubernetes.io/enforce=restricted", "--overwrite")
    examples = [ROOT / "deploy" / "examples" / f"{name}.yaml" for name in ("s3", "spot", "hpa", "irsa", "launch", "elastic")]
    for example in examples:
        said = api("create", "--dry-run=server", "--validate=strict", "-f", str(example))
        assert "trainingjob.ringmaster.dev" in said, example.name


def test_the_chart_holds_the_crd_of_this_tree():
    assert (CHART / "files" / "trainingjob.yaml").resolve() == stage_rig.CRD
    done = subprocess.run(["git", "-C", str(ROOT), "check-ignore", "charts/ringmaster/files/trainingjob.yaml"], check=False)
    assert done.returncode == 1
