"""Pods whose data and checkpoints are in a bucket: what the coordinator has to look at before anybody trains."""

import json
import re
import signal

import pytest

import pod_rig
import rig
from s3_rig import Place, Stranger, client, faults, sts

STEPS = 1500

pytestmark = pytest.mark.skipif(not pod_rig.can_be(), reason="no mount namespaces to be had here")


@pytest.fixture(name="bucket")
def data_in_a_bucket(s3_server):
    """A prefix that holds what rig.make_job writes into its data folder."""
    place = Place(s3_server)
    place.put("data/a.txt", rig.make_text(30000).encode())
    place.put("data/more/b.txt", rig.make_text(10000, seed=2).encode())
    return place


@pytest.fixture(name="pods")
def pods_of_a_job(launch, tmp_path, bucket):
    """pods(**fields of the spec's trainer): as pod_test's, over a bucket; `sha256` of an undisturbed run."""
    job = rig.make_job(tmp_path / "alone", data=False, workers__min=2, workers__max=4, workers__target=2,
                       trainer__steps=STEPS, elasticity__joinWindow="2s", elasticity__lostAfter="5s",
                       trainer__data__uri=f"{bucket.uri}/data", trainer__data__cache=str(tmp_path / "cache"))
    text, sha256 = pod_rig.spec_of(launch, job, env=bucket.env)
    made = []

    def make(endpoint=None, every_steps=None, **trainer):
        spec = json.loads(text)
        spec["spec"]["checkpoint"]["uri"] = f"{bucket.uri}/checkpoints"
        spec["spec"]["trainer"]["data"].update(listing=None, format="Auto", **trainer.pop("data", {}))
        spec["spec"]["trainer"].update(trainer)
        if every_steps:
            spec["spec"]["checkpoint"]["everySteps"] = every_steps
        if endpoint:
            spec["spec"]["checkpoint"]["endpoint"] = spec["spec"]["trainer"]["data"]["endpoint"] = endpoint
        group = pod_rig.Pods(tmp_path / f"pods-{len(made)}", json.dumps(spec), env=bucket.env)
        group.sha256 = sha256
        made.append(group)
        return group

    yield make
    for group in made:
        group.clean_up()


def test_data_and_checkpoints_in_a_bucket_give_the_weights_of_a_run(pods, bucket, s3_proxy, tmp_path):
    group = pods()
    workers = [group.worker(i) for i in range(2)]
    coordinator = group.coordinator()
    group.ring((0, 1), (1, 1))
    group.until_step(20)
    for worker in workers:
        worker.signal(signal.SIGTERM)
    assert [worker.wait() for worker in workers] == [0, 0], group.tail()
    coordinator.signal(signal.SIGKILL)
    coordinator.wait()
    saved = int(bucket.checkpoints()[-1].rsplit("-", 1)[1])
    # What may change while a job is suspended: the store is found elsewhere, the cache lies elsewhere, there are more threads.
    spec = json.loads(group.spec.read_text(encoding="utf-8"))
    spec["spec"]["trainer"]["data"].update(endpoint=s3_proxy.endpoint, cache=f"file://{tmp_path}/another-cache", cacheBytes=1 << 30)
    spec["spec"]["trainer"].update(threads=2)
    group.spec.write_text(json.dumps(spec), encoding="utf-8")
    second = group.coordinator(term=2)
    for i in range(2):
        group.worker(i, attempt=2)
    status = group.ring((0, 2), (1, 2))
    assert any((tmp_path / "another-cache").iterdir())
    assert [e["step"] for e in status["events"] if e["event"] == "checkpointLoaded"] == [saved]
    assert second.wait() == 0, group.tail()
    assert second.last_word()["weightsSha256"] == group.sha256
    assert second.last_word()["uri"] == f"{bucket.uri}/checkpoints/final"

    again = group.coordinator(term=3)
    assert again.wait() == 0, group.tail()
    assert again.last_word()["weightsSha256"] == group.sha256, "the result is told once more, without a worker"

    other = pods(seed=77)
    other.key.write_text(group.key.read_text())
    refused = other.coordinator()
    assert refused.wait() == 2, other.tail()
    assert "trainer.seed is 77 here" in refused.last_word()["reason"]


def test_a_store_that_is_away_is_waited_for_with_a_sentence(pods):
    group = pods(endpoint="http://127.0.0.1:1")
    coordinator = group.coordinator()
    status = group.until(lambda s: "127.0.0.1:1" in s["message"], "it says which store is away")
    assert status["state"] == "Gathering" and status["workers"] == []
    assert [event["reason"] for event in status["events"] if event["event"] == "waiting"] == [status["message"]]
    worker = group.worker(0)
    coordinator.signal(signal.SIGTERM)
    assert coordinator.wait() == 0, group.tail()
    assert worker.process.poll() is None


def secret_of(group, **keys):
    """The folder in which the operator mounts a job's Secret."""
    folder = group.folder / "secret"
    folder.mkdir(exist_ok=True)
    for name, value in keys.items():
        (folder / name).write_text(value)
    return folder


def test_a_wrong_key_is_waited_for_by_all_and_heals_when_the_secret_is_mended(pods, bucket):
    group = pods()
    right = bucket.env["AWS_SECRET_ACCESS_KEY"]
    secret = secret_of(group, AWS_ACCESS_KEY_ID=bucket.env["AWS_ACCESS_KEY_ID"], AWS_SECRET_ACCESS_KEY="mistyped")
    group.env = {**group.env, "AWS_SECRET_ACCESS_KEY": "mistyped", "RINGMASTER_POD_CREDENTIALS": str(secret)}
    coordinator = group.coordinator()
    status = group.until(lambda s: s["storeWaiting"], "it says that the store refuses")
    assert status["preparing"] and status["storeWaiting"]["person"]
    assert "doesn't take the credentials from the Secret of checkpoint.secretRef" in status["storeWaiting"]["reason"]
    workers = [group.worker(i) for i in range(2)]
    (secret / "AWS_SECRET_ACCESS_KEY").write_text(right)
    status = group.ring((0, 1), (1, 1))
    assert status["storeWaiting"] is None
    assert [worker.wait() for worker in workers] == [0, 0], group.tail()
    assert coordinator.wait() == 0, group.tail()
    assert coordinator.last_word()["weightsSha256"] == group.sha256


def test_under_a_role_whose_token_comes_late_and_whose_sts_is_busy_the_job_waits_and_begins(pods, moto_server, tmp_path):
    """At moto, as versitygw knows no session tokens."""
    group, place, token = pods(), Place(moto_server), tmp_path / "token"
    stand = sts.Sts(moto_server, "header.claims.signature")
    place.put("data/a.txt", rig.make_text(30000).encode())
    spec = json.loads(group.spec.read_text())
    spec["spec"]["checkpoint"]["uri"], spec["spec"]["trainer"]["data"]["uri"] = f"{place.uri}/checkpoints", f"{place.uri}/data"
    group.spec.write_text(json.dumps(spec))
    group.env = {name: value for name, value in place.env.items() if name not in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")}
    group.env.update(AWS_ROLE_ARN=stand.role, AWS_WEB_IDENTITY_TOKEN_FILE=str(token), AWS_ENDPOINT_URL_STS=stand.endpoint)
    stand.says = "Throttling"
    group.coordinator()
    status = group.until(lambda s: s["storeWaiting"], "it waits")
    assert str(token) in status["storeWaiting"]["reason"] and status["storeWaiting"]["person"]
    token.write_text(stand.token + "\n", encoding="ascii")
    status = group.until(lambda s: s["storeWaiting"] and "Throttling" in s["storeWaiting"]["reason"], "it says that STS is busy")
    assert not status["storeWaiting"]["person"], "that passes by itself"
    stand.says = ""
    status = group.until(lambda s: not s["preparing"], "the job begins")
    assert status["storeWaiting"] is None and status["fenced"]
    stand.stop()


def test_a_bucket_is_waited_for_until_somebody_makes_it(pods, bucket):
    group = pods()
    spec = json.loads(group.spec.read_text())
    spec["spec"]["checkpoint"]["uri"] = f"s3://{bucket.prefix}-later"
    group.spec.write_text(json.dumps(spec))
    group.coordinator()
    group.until(lambda s: s["storeWaiting"] and "there is no bucket" in s["storeWaiting"]["reason"], "it names the bucket")
    client.make_bucket(bucket.server, f"{bucket.prefix}-later")
    group.until(lambda s: not s["preparing"], "it is made, and the job begins")


def test_a_place_that_can_be_none_ends_the_job_at_once(pods):
    group = pods()
    spec = json.loads(group.spec.read_text())
    spec["spec"]["checkpoint"]["uri"] = "s3://no_bucket$/x"
    group.spec.write_text(json.dumps(spec))
    coordinator = group.coordinator()
    assert coordinator.wait() == 2, group.tail()
    assert "can't be a bucket's name" in coordinator.last_word()["reason"]


def test_data_that_is_not_there_is_waited_for_until_somebody_uploads_it(pods, bucket):
    group = pods(data={"uri": f"{bucket.uri}/later"})
    coordinator = group.coordinator()
    status = group.until(lambda s: s["storeWaiting"], "it says what is missing")
    assert status["preparing"] and status["storeWaiting"]["person"], status
    assert f"there is nothing under {bucket.uri}/later: suspend the job, upload all of its data there" in status["storeWaiting"]["reason"]
    workers = [group.worker(i) for i in range(2)]
    bucket.put("later/a.txt", b"too few")
    group.until(lambda s: s["storeWaiting"] and "1 files have come" in s["storeWaiting"]["reason"], "one has come, and more may")
    group.until(lambda s: s["storeWaiting"] and "have come" not in s["storeWaiting"]["reason"], "there were no more, and they are too few")
    bucket.put("later/a.txt", rig.make_text(30000).encode())
    group.until(lambda s: s["storeWaiting"] and "1 files have come" in s["storeWaiting"]["reason"], "one has come, and more may")
    bucket.put("later/more/b.txt", rig.make_text(10000, seed=2).encode())
    status = group.ring((0, 1), (1, 1))
    assert status["storeWaiting"] is None
    assert [worker.wait() for worker in workers] == [0, 0], group.tail()
    assert coordinator.wait() == 0, group.tail()
    assert coordinator.last_word()["weightsSha256"] == group.sha256, "trained on all that came"


def test_data_that_are_too_few_end_the_job_with_their_place(pods, bucket):
    bucket.put("few/a.txt", b"too few")
    group = pods(data={"uri": f"{bucket.uri}/few"})
    coordinator = group.coordinator()
    assert coordinator.wait() == 3, group.tail()
    assert "/few" in coordinator.last_word()["reason"]


def is_piece(request):
    return request.method == "PUT" and request.key.endswith(".safetensors")


def test_all_who_leave_in_less_time_than_saving_takes_say_so_and_the_checkpoint_before_stands(pods, bucket, s3_proxy):
    group = pods(endpoint=s3_proxy.endpoint, steps=10 ** 9, every_steps=3000)  # rarely enough that nobody waits for the save before, and can't stop
    # a piece takes 40 pauses to the store: 4.4 s, and half of the grace is there for the stop
    s3_proxy.script = faults.Always("slow", is_piece, pause_s=0.11)
    workers = [group.worker(i, grace=6) for i in range(2)]
    coordinator = group.coordinator()
    group.ring((0, 1), (1, 1))
    group.until(lambda s: s["checkpoint"], "saving has been measured")
    for worker in workers:
        worker.signal(signal.SIGTERM)
    status = group.until(lambda s: [e for e in s["events"] if e["event"] == "checkpointSkipped"], "why nothing is saved")
    skipped = next(e for e in status["events"] if e["event"] == "checkpointSkipped")
    assert "leave within" in skipped["reason"] and "saving it takes about" in skipped["reason"], skipped
    assert [worker.wait() for worker in workers] == [0, 0], group.tail()
    coordinator.signal(signal.SIGTERM)
    assert coordinator.wait() == 0, group.tail()
    stands = int(bucket.checkpoints()[-1].rsplit("-", 1)[1])
    said = re.search(r"the checkpoint of step (\d+) stands|the save of step \d+ that is under way goes on", skipped["reason"])
    assert said and int(said.group(1) or 0) <= stands < skipped["step"], "one that was being written may have become whole meanwhile"

    s3_proxy.script = faults.Quiet()
    group.coordinator(term=2)
    for i in range(2):
        group.worker(i, attempt=2)
    status = group.ring((0, 2), (1, 2))
    assert [e["step"] for e in status["events"] if e["event"] == "checkpointLoaded"] == [stands]


def test_a_coordinator_that_lost_its_place_takes_it_again_and_what_was_trained_meanwhile_is_saved(pods, bucket, s3_proxy):
    steps = 500
    group = pods(endpoint=s3_proxy.endpoint, every_steps=20, steps=steps)
    workers = [group.worker(i) for i in range(2)]
    coordinator = group.coordinator()
    group.until(lambda s: s["checkpoint"], "a checkpoint stands")
    place = Place(bucket.server, f"{bucket.prefix}/checkpoints")
    s3_proxy.script = stranger = Stranger(place)
    stranger.take()
    status = group.until(lambda s: s["storeWaiting"] and s["storeWaiting"]["person"], "the other one lives, and it stays out")
    assert "job stranger" in status["storeWaiting"]["reason"] and "since 2026-" in status["storeWaiting"]["reason"], status["storeWaiting"]
    assert "end one of two runs" in status["storeWaiting"]["reason"] and not status["preparing"]
    assert status["storeWaiting"]["reason"] in [e["reason"] for e in status["events"] if e["event"] == "waiting"]
    group.until(lambda s: s["state"] == "Saving", "all is trained")
    rig.until(lambda: group.status()["checkpointWaiting"]["step"] == steps, "the last state waits", rig.DEADLINE_S)
    assert stranger.asked and stranger.newest() == stranger.name, "it is asked, and left in peace"
    stranger.say(released=True)
    s3_proxy.script = faults.Quiet()
    status = group.until(lambda s: not s["storeWaiting"], "the place is taken again")
    assert [worker.wait() for worker in workers] == [0, 0], group.tail()
    assert coordinator.wait() == 0, group.tail()
    assert coordinator.last_word()["step"] == steps and "final" in place.checkpoints()
    assert status["stepsRedone"] == {"announced": 0, "sudden": 0} and status["recoveries"] == 0
    assert stranger.newest() > stranger.name
