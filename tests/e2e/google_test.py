"""A bucket at Google as a service account: by tokens of the metadata server, which end while a job saves, and without any key."""

import json
import os
import re
import signal
from pathlib import Path

import pytest

import pod_rig
import rig
from s3_rig import googles

STEPS = 60
FIELDS = {"trainer__steps": STEPS, "checkpoint__everySteps": 10, "checkpoint__keep": 2, "workers__target": 2}


@pytest.fixture(name="cloud")
def google_under_way():
    stand = googles.Google()
    yield stand
    stand.stop()


def make_job(folder, **fields):
    return rig.make_job(folder, checkpoint__uri=f"s3://{googles.Google.bucket}/run", **{**FIELDS, **fields})


def sentence(run):
    lines = run.stderr.strip().splitlines()
    assert lines and lines[-1].startswith("ringmaster: "), run.stderr
    return lines[-1]


def checkpoints(cloud):
    return sorted(re.findall(r"run/([^/]+)/manifest\.json", "\n".join(cloud.objects)))


class Outlives:
    """Of each of these, (method, pattern of the key), the first request is answered only when the token that came with it is over."""

    def __init__(self, *wanted):
        self.left = list(wanted)

    def __call__(self, method, key):
        found = [each for each in self.left if each[0] == method and re.search(each[1], key)]
        self.left = [each for each in self.left if each not in found[:1]]
        return bool(found)


@pytest.mark.turns
def test_a_job_saves_loses_a_worker_and_resumes_by_tokens_that_end_in_between(tmp_path, launch, finish, cloud, reference):
    fields = {"trainer__steps": 200, "checkpoint__everySteps": 20}
    cloud.lifetime = 2
    cloud.outlives = Outlives(("PUT", r"\.owner-\d+$"))  # no step is made meanwhile: none of the moments is one of training
    run = launch(make_job(tmp_path / "one", **fields), env=cloud.environment)
    ring = run.read_until("ringFormed", members=lambda members: len(members) == 2)
    run.read_until("checkpointSaved")
    os.kill(next(m["agentPid"] for m in ring["members"] if m["worker"] == 1), signal.SIGKILL)
    run.read_until("workerLost", worker=1)
    lost_at = run.of("step")[-1]["step"]
    run.read_until("checkpointSaved", step=lambda step: step > lost_at)
    run.process.send_signal(signal.SIGKILL)
    run.clean_up()
    assert not cloud.outlives.left and len(cloud.came) > 3, "the coordinator, two agents, and one that asked once more"

    cloud.outlives = Outlives(("GET", r"/step-\d+/[^.]+$|/step-\d+/model"), ("PUT", r"/final/"))
    before = set(cloud.ends)
    resumed = finish(make_job(tmp_path / "two", **fields), env=cloud.environment)
    assert resumed.code == 0, resumed.tail()
    first = resumed.the("resumed")["step"]
    complete = rig.check_complete(resumed, last=200, first=first + 1)
    assert first > lost_at and complete["weightsSha256"] == reference(trainer__steps=200)[0]
    assert complete["uri"] == f"s3://{googles.Google.bucket}/run/final"
    assert not cloud.outlives.left and len(set(cloud.came) - before) > 3, sorted(cloud.objects)
    assert checkpoints(cloud)[0] == "final" and not cloud.uploads
    assert cloud.wrongs == []


def test_a_token_that_is_revoked_is_asked_for_anew_and_nobody_notices(tmp_path, launch, cloud, reference):
    run = launch(make_job(tmp_path), env=cloud.environment)
    run.read_until("checkpointSaved", step=lambda step: step >= 20)
    before = set(cloud.ends)
    cloud.revoke()
    assert run.wait() == 0, run.tail()
    assert run.the("complete")["weightsSha256"] == reference(trainer__steps=STEPS)[0]
    assert cloud.denied and any(cloud.came.get(token) for token in set(cloud.ends) - before)
    assert not run.of("checkpointWaiting") and cloud.wrongs == []


def test_two_runs_on_one_place_are_told_apart(tmp_path, launch, finish, cloud):
    first = launch(make_job(tmp_path / "one", trainer__steps=4000), env=cloud.environment)
    first.read_until("checkpointSaved")
    second = finish(make_job(tmp_path / "two", trainer__steps=4000), env=cloud.environment)
    assert second.code == 4 and not second.of("step"), second.tail()
    first.interrupt()
    assert first.wait() == 130, first.tail()
    assert cloud.wrongs == []


REFUSALS = {
    "no service account": (lambda cloud: setattr(cloud, "metadata_says", 404), 2, "knows no service account (status 404 not found)"),
    "no identity": (lambda cloud: setattr(cloud, "metadata_says", 403), 2, "roles/iam.workloadIdentityUser"),
    "no metadata now": (lambda cloud: setattr(cloud, "metadata_says", 503), 4, "gives no token now: status 503"),
    "no role": (lambda cloud: setattr(cloud, "grants", False), 2, "roles/storage.objectUser"),
}


@pytest.mark.parametrize("what", REFUSALS)
def test_what_is_missing_is_said_in_a_sentence(tmp_path, finish, cloud, what):
    harm, code, words = REFUSALS[what]
    harm(cloud)
    run = finish(make_job(tmp_path), env=cloud.environment)
    assert run.code == code and words in sentence(run), run.tail()
    assert not run.of("step") and not cloud.objects


@pytest.mark.skipif(not pod_rig.can_be(), reason="no mount namespaces to be had here")
def test_in_pods_an_account_that_comes_late_is_waited_for_with_a_sentence(launch, tmp_path, tmp_path_factory, cloud):
    with pod_rig.made_pods(launch, tmp_path, tmp_path_factory, STEPS) as make:
        group = make()
        spec = json.loads(group.spec.read_text(encoding="utf-8"))
        spec["spec"]["checkpoint"]["uri"] = f"s3://{googles.Google.bucket}/run"
        group.spec.write_text(json.dumps(spec), encoding="utf-8")
        group.env, cloud.grants = cloud.environment, False
        coordinator, workers = group.coordinator(), None
        for says, words, person in ((404, "knows no service account", True), (503, "status 503", False), (403, "workloadIdentityUser", True),
                                    (0, "roles/storage.objectUser", True)):
            cloud.metadata_says = says
            status = group.until(lambda s, words=words: s["storeWaiting"] and words in s["storeWaiting"]["reason"], f"it says {words}")
            assert status["storeWaiting"]["person"] == person and status["preparing"]
            workers = workers or [group.worker(i) for i in range(3)]
        cloud.grants = True
        assert [worker.wait() for worker in workers] == [0, 0, 0], group.tail()
        assert coordinator.wait() == 0, group.tail()
        assert coordinator.last_word()["weightsSha256"] == group.sha256
        assert checkpoints(cloud) == ["final"] and cloud.wrongs == []


def test_no_token_goes_to_a_store_that_is_not_googles_for_sure(tmp_path, finish, cloud):
    env = {name: value for name, value in cloud.environment.items() if name != "RINGMASTER_GOOGLE_ENDPOINT"}
    run = finish(make_job(tmp_path), env={**env, "AWS_EC2_METADATA_DISABLED": "true"})
    assert run.code == 2 and "no credentials: set AWS_ACCESS_KEY_ID" in sentence(run), run.tail()
    assert not cloud.ends and not cloud.denied, "nobody asked for a token, nor came to the store"


def test_a_token_is_in_no_log_and_no_command_line(tmp_path, launch, cloud):
    run = launch(make_job(tmp_path), env={**cloud.environment, "RINGMASTER_LOG": "debug"})
    run.read_until("checkpointSaved")
    lines = [Path(f"/proc/{pid}/{file}").read_bytes() for pid in rig.marked_processes(run.mark) for file in ("cmdline", "environ")]
    assert lines and run.wait() == 0, run.tail()
    said = run.stderr + str(run.events)
    for token in cloud.ends:
        assert token not in said and not any(token.encode() in line for line in lines)
