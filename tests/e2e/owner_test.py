"""Who owns a place for checkpoints, at stores that make sure of it and at one that does not."""

import pytest

import rig
from s3_rig import Place, Stranger, faults, proxy

FIELDS = {"checkpoint__everySteps": 10, "checkpoint__keep": 2}
UNFENCED = "overwrites what is to be created only where nothing is"


def is_owner(request, method):
    return request.method == method and "/.owner-" in request.key


def writes(between):
    """What was written about the owner, without questions to it: (key, condition)."""
    return [(seen.request.key.rsplit("/", 1)[1], seen.request.headers.get("if-none-match", ""))
            for seen in between.seen if is_owner(seen.request, "PUT") and not seen.request.key.endswith("-asks")]


@pytest.fixture(name="moto_between")
def proxy_before_moto(moto_server):
    between = proxy.Proxy(moto_server)
    yield between
    between.stop()


def run_on(launch, folder, between, uri, **fields):
    return launch(rig.make_job(folder, checkpoint__uri=uri, **{**FIELDS, **fields}), env=between.environment)


def test_an_owner_whom_nobody_asks_writes_nothing_that_a_bucket_with_versions_would_keep(tmp_path, launch, s3, s3_proxy):
    looks = []

    class Watches(faults.Quiet):
        def fault(self, request):
            if is_owner(request, "HEAD") and request.key.endswith("-asks"):
                looks.append(len(writes(s3_proxy)))

    s3_proxy.script = Watches()
    run = run_on(launch, tmp_path, s3_proxy, s3.uri, trainer__steps=10 ** 6)
    run.read_until("step")
    rig.until(lambda: len(looks) >= 3, "it has looked three times whether somebody asks")
    assert looks[:3] == [2, 2, 2], "a creation, a second one that the store has to refuse, and then nothing"
    assert writes(s3_proxy) == [(".owner-00000001", "*"), (".owner-00000001", "*")]
    run.interrupt()
    assert run.wait() == 130, run.tail()
    assert UNFENCED not in run.stderr


def test_who_asks_a_living_owner_is_answered_and_goes(tmp_path, launch, finish, s3, s3_proxy):
    first = run_on(launch, tmp_path / "one", s3_proxy, s3.uri, trainer__steps=10 ** 6)
    first.read_until("step")
    second = finish(rig.make_job(tmp_path / "two", checkpoint__uri=s3.uri, **FIELDS), env=s3_proxy.environment)
    assert second.code == 4 and "another run uses this place" in second.stderr, second.stderr
    assert [seen.status for seen in s3_proxy.seen if is_owner(seen.request, "PUT") and seen.request.key.endswith("-asks")] == [200]
    rig.until(lambda: ".owner-00000001-asks" not in s3.names(), "the question is taken away again")
    first.interrupt()
    assert first.wait() == 130, first.tail()


def test_a_run_whose_place_another_one_keeps_waits_at_its_end_as_for_a_store_that_is_away(tmp_path, launch, s3, s3_proxy):
    run = run_on(launch, tmp_path, s3_proxy, s3.uri, trainer__steps=400, checkpoint__endTimeout="2s")
    run.read_until("checkpointSaved")
    s3_proxy.script = stranger = Stranger(s3)
    stranger.take()
    assert run.wait() == 4, run.tail()
    reason = run.the("failed")["reason"]
    assert "given up after checkpoint.endTimeout" in reason and "belongs to another run now: job stranger" in reason, reason
    assert stranger.newest() == stranger.name and "final" not in s3.checkpoints()


def stderr_of_one_that_begins(launch, folder, between):
    """moto can't put together what several programs upload, so such a run saves nothing: it owns the place, and that is all."""
    place = Place(between.server)
    run = run_on(launch, folder, between, place.uri, trainer__steps=10 ** 6, checkpoint__everySteps=10 ** 6)
    run.read_until("step")
    run.process.kill()
    run.wait()
    return place, run.stderr


def test_a_store_that_overwrites_in_spite_of_the_condition_is_found_out_and_said_in_a_sentence(tmp_path, launch, moto_between):
    moto_between.script = faults.Ignores("If-None-Match")
    place, stderr = stderr_of_one_that_begins(launch, tmp_path, moto_between)
    assert stderr.count(UNFENCED) == 1 and place.uri in stderr, stderr


def test_a_store_that_keeps_to_the_condition_is_left_in_peace(tmp_path, launch, moto_between):
    _, stderr = stderr_of_one_that_begins(launch, tmp_path, moto_between)
    assert UNFENCED not in stderr, stderr
