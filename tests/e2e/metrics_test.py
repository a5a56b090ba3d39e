"""/metrics as Prometheus and people read it: pages that promtool accepts, names that the docs tell, and a real Prometheus that
scrapes a job whose worker dies and answers what a person would ask."""

import signal
import sys
import urllib.request
from pathlib import Path

import pytest

import pod_rig
import rig

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "prometheus_rig"))

import prometheus  # noqa: E402  (its folder is on the path only now)

pytestmark = pytest.mark.skipif(not pod_rig.can_be(), reason="no mount namespaces to be had here")

WORKERS = 3


@pytest.fixture(name="pods")
def fixture_pods(launch, tmp_path):
    """A job of three that trains without end under the eyes of a Prometheus; worker 1 died and was replaced."""
    try:
        prometheus.install()
    except prometheus.Offline as why:
        pytest.skip(str(why))
    job = rig.make_job(tmp_path, workers__min=2, workers__max=4, workers__target=WORKERS, trainer__steps=40, checkpoint__everySteps=500,
                       trainer__evaluation__everySteps=10, trainer__evaluation__sequences=2, trainer__evaluation__holdOut=0.1,
                       elasticity__joinWindow="2s", elasticity__lostAfter="5s")
    text, _ = pod_rig.spec_of(launch, job)
    spec = text.replace('"steps":40', '"steps":1000000000').replace(f"file://{tmp_path}/checkpoints", f"file://{tmp_path}/others")
    assert "1000000000" in spec and "/others" in spec, spec
    group = pod_rig.Pods(tmp_path / "pods", spec)
    try:
        yield from watched(group, tmp_path / "prometheus")
    finally:
        group.clean_up()


def watched(group, folder):
    workers = [group.worker(i) for i in range(WORKERS)]
    group.coordinator()
    group.ring(*((i, 1) for i in range(WORKERS)))
    group.server = prometheus.Prometheus(folder, scrapes(group))
    try:
        group.server.until(lambda: group.server.query("ringmaster_step > 20"), "a scrape of step 20")
        workers[1].signal(signal.SIGKILL)
        workers[1].wait()
        group.ring((0, 1), (2, 1))
        group.replacement = group.worker(1, attempt=2)
        group.ring((0, 1), (1, 2), (2, 1))
        yield group
    finally:
        group.server.stop()


def scrapes(group):
    """The coordinator and its workers, one of which is not there yet: addresses of a job are given out in turn."""
    agents = [p.ip for p in group.programs if hasattr(p, "index")]
    next_ip = f"{group.net}.{group.next_host + 1}"
    return [{"job_name": "coordinator", "static_configs": [{"targets": [f"{group.coordinator_ip}:{pod_rig.METRICS}"]}]},
            {"job_name": "worker", "static_configs": [{"targets": [f"{ip}:{pod_rig.PAGES}" for ip in [*agents, next_ip]]}]}]


def page(address, accept=None):
    request = urllib.request.Request(f"http://{address}/metrics", headers={"Accept": accept} if accept else {})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.headers["Content-Type"], answer.read().decode()


def check_page(address, section):
    """promtool has nothing against it, and the docs name what is on it."""
    kind, older = page(address)
    assert kind.startswith("text/plain; version=0.0.4")
    assert prometheus.complaints(older) == ""
    kind, newer = page(address, prometheus.OPENMETRICS)
    assert kind.startswith(prometheus.OPENMETRICS)
    assert prometheus.families(newer) == prometheus.documented(section)


def in_peace(pods, check):
    """A check once more where the ring changed meanwhile, as it may on a busy machine."""
    while True:
        before = pods.status()["ring"]
        try:
            check(pods)
            return
        except AssertionError:
            if pods.status()["ring"] == before:
                raise


def check_openmetrics(pods):
    kinds = pods.server.until(lambda: (found := pods.server.kinds()) and "ringmaster_worker_phase" in found and found, "kinds")
    assert kinds["ringmaster_coordinator"] == "info" and kinds["ringmaster_coordinator_state"] == "stateset"
    assert kinds["ringmaster_worker_steps"] == "counter" and kinds["ringmaster_worker_phase"] == "stateset"


def check_goodput(pods):
    shares, ratio = prometheus.questions()[:2]
    before = pods.status()["goodput"]
    productive = 'ringmaster_goodput_seconds{class="productive"}'
    said = pods.server.until_one(productive, lambda value: value >= before["productiveSeconds"])
    after = pods.status()["goodput"]
    assert said <= after["productiveSeconds"]
    for name in ("recovery", "waiting", "rework", "checkpoint"):
        assert before[f"{name}Seconds"] <= pods.server.until_one(f'ringmaster_goodput_seconds{{class="{name}"}}',
                                                                 lambda value: value >= before[f"{name}Seconds"] - 1e-6) + 1e-6
    assert after["recoverySeconds"] > 0, "a worker died"
    classes = {labels["class"]: share for labels, share in pods.server.query(shares)}
    assert set(classes) == {"productive", "checkpoint", "recovery", "waiting", "rework"}
    assert sum(classes.values()) == pytest.approx(1)
    assert 0 < pods.server.until_one(ratio) < 1
    difference = f"sum({ratio}) - sum({productive}) / sum(ringmaster_goodput_seconds)"  # of one scrape
    assert abs(pods.server.until_one(difference)) < 1e-9


def check_interruptions(pods):
    causes, mean, tail = prometheus.questions()[2:5]
    status = pods.status()
    told, spent_ms = {}, 0
    for event in status["events"]:
        if event["event"] == "recovered":
            told[event["cause"]] = told.get(event["cause"], 0) + 1
            spent_ms += sum(event[f"{phase}Ms"] for phase in ("detect", "agree", "ring", "state", "firstStep"))
    assert told.get("WorkerLost", 0) >= 1, status["events"]
    count = sum(told.values())
    assert count == status["recoveries"]
    pods.server.until_one("sum(ringmaster_ring_changes_total)", lambda value: value == count)
    assert {labels["cause"]: value for labels, value in pods.server.query(causes)} == told
    assert pods.server.until_one(mean) == pytest.approx(spent_ms / 1000 / count, rel=1e-3, abs=1e-3)
    assert pods.server.until_one("ringmaster_recovery_duration_seconds_count") == count
    assert 0 < pods.server.until_one(tail) <= 300


def check_speed(pods):
    tokens, ring_share, held_out, norm = prometheus.questions()[5:9]
    before = pods.status()["progress"]["step"]
    step = pods.server.until_one("ringmaster_step", lambda value: value > before)
    assert step <= pods.status()["progress"]["step"]
    pods.server.until_one(tokens, lambda value: value > 0)
    assert pods.server.until_one(held_out) > 0 and pods.server.until_one(norm) > 0
    assert 0 < pods.server.until_one("ringmaster_clip_factor") <= 1 and pods.server.until_one("ringmaster_learning_rate") > 0
    assert pods.server.until_one("ringmaster_tokens_total / ringmaster_step_tokens >= 20") >= 20

    def shares():
        found = pods.server.query(ring_share)
        return found if len(found) >= WORKERS else None
    assert all(0 < share < 1 for _, share in pods.server.until(shares, "each worker's share"))
    sent = pods.server.query("ringmaster_worker_reduce_bytes_total")
    assert len(sent) >= WORKERS and all(value > 0 for _, value in sent)


def check_workers(pods):
    status = pods.status()
    assert pods.server.until_one("ringmaster_workers_connected", lambda value: value == len(status["workers"])) == WORKERS
    pods.server.until_one("ringmaster_ring_size", lambda value: value == status["ring"]["size"])
    assert pods.server.until(lambda: len(pods.server.query("ringmaster_worker_step")) == WORKERS, "the workers that are left")


def test_what_the_pages_tell_is_what_the_docs_name_and_what_prometheus_answers_from(pods):
    for port in (pod_rig.METRICS, pod_rig.PORT):
        check_page(f"{pods.coordinator_ip}:{port}", "Of a coordinator")
    check_page(f"{pods.replacement.ip}:{pod_rig.PAGES}", "Of a worker")
    check_openmetrics(pods)
    for check in (check_goodput, check_interruptions, check_speed, check_workers):
        in_peace(pods, check)
    for question in prometheus.questions():
        assert pods.server.until(lambda q=question: pods.server.query(q), question)


def test_promtool_finds_what_is_wrong_with_a_page():
    try:
        prometheus.install()
    except prometheus.Offline as why:
        pytest.skip(str(why))
    assert "no help text" in prometheus.complaints("# TYPE a_total counter\na_total 1\n")
    assert prometheus.complaints("# TYPE a info\na_info 1\n"), "infos are for the newer format"
