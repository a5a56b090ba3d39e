"""A store that is away: training goes on, the newest state waits, and the person is told once."""

import pytest

import rig
from s3_rig import faults

FIELDS = {"workers__target": 2, "trainer__steps": 2000, "checkpoint__everySteps": 10, "checkpoint__keep": 2}


def steps_on(run, count):
    """Reads on until so many more steps were told."""
    first = run.read_until("step")["step"]
    run.read_until("step", step=first + count)


@pytest.mark.turns
@pytest.mark.parametrize("how", ["busy", "reset"])
def test_training_goes_on_while_the_store_is_away_and_the_newest_state_goes_through_later(tmp_path, launch, s3, s3_proxy,
                                                                                          reference, how):
    run = launch(rig.make_job(tmp_path, checkpoint__uri=s3.uri, **FIELDS), env=s3_proxy.environment)
    before = run.read_until("checkpointSaved")["step"]
    s3_proxy.script = faults.Always(how)
    waiting = run.read_until("checkpointWaiting")
    assert waiting["step"] > before and waiting["uri"] == f"{s3.uri}/step-{waiting['step']:08d}", waiting
    assert waiting["reason"], waiting
    steps_on(run, 5 * FIELDS["checkpoint__everySteps"])
    s3_proxy.script = faults.Quiet()
    saved = run.read_until("checkpointSaved", waitedSeconds=lambda waited: waited > 0)
    assert saved["step"] > waiting["step"], "an old state went through in the place of a newer one"
    run.interrupt()
    assert run.wait() == 130, run.tail()
    assert len(run.of("checkpointWaiting")) == 1, run.of("checkpointWaiting")
    steps = [event["step"] for event in run.of("step")]
    assert steps == list(range(1, len(steps) + 1))
    losses = reference(trainer__steps=2000)[1]
    assert [event["loss"] for event in run.of("step")] == losses[:len(steps)]


def test_a_store_that_answers_in_drops_is_slow_and_not_away(tmp_path, launch, s3, s3_proxy):
    """To open an upload takes 6 s there, in which no byte of the state moves and newer states come up."""
    fields = {**FIELDS, "trainer__steps": 20000}
    s3_proxy.script = faults.Always("slow", picked=lambda request: request.method == "POST" and "uploads" in request.query,
                                    pause_s=0.15)
    run = launch(rig.make_job(tmp_path, checkpoint__uri=s3.uri, **fields), env=s3_proxy.environment)
    saved = run.read_until("checkpointSaved")
    assert run.of("step")[-1]["step"] > saved["step"] + FIELDS["checkpoint__everySteps"], "a newer state waited meanwhile"
    assert run.of("checkpointWaiting") == []
    s3_proxy.script = faults.Quiet()
    run.interrupt()
    assert run.wait() == 130, run.tail()


def no_room_for(name):
    """A store that is full for objects of that name alone."""
    return faults.Says(507, "InsufficientStorage", picked=lambda request: request.method == "PUT" and request.key.endswith(name))


def test_a_store_with_room_for_the_pieces_alone_ends_the_run_when_its_patience_does(tmp_path, launch, s3, s3_proxy):
    run = launch(rig.make_job(tmp_path, checkpoint__uri=s3.uri, checkpoint__endTimeout="3s", **{**FIELDS, "trainer__steps": 600}),
                 env=s3_proxy.environment)
    run.read_until("checkpointSaved")
    s3_proxy.script = no_room_for("/config.json")
    assert run.wait() == 4, run.tail()
    assert "endTimeout" in run.stderr and "step 600" in run.stderr and "full" in run.stderr, run.stderr


def test_a_manifest_that_found_no_room_makes_way_for_a_newer_one(tmp_path, launch, s3, s3_proxy):
    run = launch(rig.make_job(tmp_path, checkpoint__uri=s3.uri, **FIELDS), env=s3_proxy.environment)
    run.read_until("checkpointSaved")
    s3_proxy.script = no_room_for("/config.json")
    waiting = run.read_until("checkpointWaiting")
    s3_proxy.script = no_room_for(f"step-{waiting['step']:08d}/config.json")
    saved = run.read_until("checkpointSaved")
    assert saved["step"] > waiting["step"], "the store still refuses the older one"
    run.interrupt()
    assert run.wait() == 130, run.tail()


def test_a_successor_of_the_coordinator_tells_the_same_outage_no_second_time(tmp_path, launch, s3, s3_proxy):
    job = rig.make_job(tmp_path, checkpoint__uri=s3.uri, **FIELDS)
    run = launch(job, "--drill", "coordinator@60", "--drill", "coordinator@200", env=s3_proxy.environment)
    run.read_until("ringFormed")
    s3_proxy.script = faults.Always("busy", picked=lambda request: request.method == "PUT")
    while len(run.of("recovered")) < 2 or not run.of("checkpointWaiting"):
        assert run.next_event() is not None, run.tail()
    steps_on(run, 30)
    s3_proxy.script = faults.Quiet()
    run.read_until("checkpointSaved", waitedSeconds=lambda waited: waited > 0)
    run.interrupt()
    assert run.wait() == 130, run.tail()
    assert len(run.of("checkpointWaiting")) == 1, run.of("checkpointWaiting")


def test_an_interrupted_run_waits_for_its_store_and_saves_where_it_stood(tmp_path, launch, s3, s3_proxy):
    run = launch(rig.make_job(tmp_path, checkpoint__uri=s3.uri, **FIELDS), env=s3_proxy.environment)
    run.read_until("checkpointSaved")
    s3_proxy.script = faults.Always("busy")
    run.read_until("checkpointWaiting")
    run.interrupt()
    s3_proxy.script = faults.Quiet()
    interrupted = run.read_until("interrupted")
    assert run.wait() == 130, run.tail()
    assert interrupted["step"] == run.of("step")[-1]["step"], run.tail()
    assert f"step-{interrupted['step']:08d}" in s3.checkpoints()
