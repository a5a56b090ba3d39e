"""Bits that flip in a step's sum, or in a state: seen before anybody commits what comes of them, told by worker and step, and the run ends as
an undisturbed one."""

import re

import pytest

import rig
from fault_points import FLIPS

STEPS = 60
LONG = 800  # until who joins is there
NO_USE = "all that had come was of no use"  # of a listener
OWN = "its own sums of step "  # whose own memory did it
SUMS = [(point, setting) for point, settings in FLIPS.items() if point not in ("array-received", "chunk-received", "state-rests") for setting in settings]


def struck(run, point):
    return run.stderr.count(f"fault point {point}\n")


@pytest.mark.parametrize("point, setting", SUMS)
def test_a_bit_that_flips_in_a_sum_is_never_committed(finish, tmp_path, reference, point, setting):
    expected_hash, losses = reference(trainer__steps=STEPS)
    job = rig.make_job(tmp_path, workers__target=3, trainer__steps=STEPS, failurePolicy__maxRestarts=int(point == "words-added"))
    run = finish(job, env={"RINGMASTER_FAULT": f"{point}{setting}/flips"})
    assert struck(run, point) == 1, run.tail()
    assert run.code == 0, run.tail()
    told = run.of("proofFailed")
    assert told, run.tail()
    for event in told:
        assert event["cause"].startswith(("the words of step ", "the header of step ", OWN)), event
        held = int(re.search(r" of step (\d+) ", event["cause"]).group(1)) - 1
        assert event["step"] in (held, held + 1), f"others may have made it, and have told so: {event}"
    assert not run.of("workerLost") and not run.of("workerFailed"), run.tail()
    own = [event["worker"] for event in told if event["cause"].startswith(OWN)]
    assert own == ([int(setting.split("@")[1])] if point == "words-added" else []), "nobody else is to blame, as far as can be seen"
    assert [event["loss"] for event in run.of("step")] == losses, run.tail()
    assert run.the("complete")["weightsSha256"] == expected_hash and run.the("complete")["exact"], run.tail()


@pytest.mark.parametrize("setting, listens", [*((setting, "1") for setting in FLIPS["array-received"]), (":1@3", "0"), (":5@3", "0")])
def test_a_bit_that_flips_in_a_newcomers_state_is_seen_before_its_lanes_count(finish, tmp_path, reference, setting, listens):
    expected_hash, losses = reference(trainer__steps=LONG)
    job = rig.make_job(tmp_path, workers__target=3, trainer__steps=LONG)
    run = finish(job, "--drill", "join@10", env={"RINGMASTER_FAULT": f"array-received{setting}/flips", "RINGMASTER_LISTEN": listens})
    assert struck(run, "array-received") == 1, run.tail()
    assert run.code == 0, run.tail()
    told = run.of("proofFailed")
    assert len(told) == 1 or NO_USE in run.stderr, f"what came with another bit was thrown away, or told of: {run.tail()}"
    for each in told:
        assert each["worker"] == 3 and f"the state of step {each['step']} that it received has other bits" in each["cause"], each
    assert [event["loss"] for event in run.of("step")] == losses, run.tail()
    assert run.the("complete")["weightsSha256"] == expected_hash and run.the("complete")["exact"], run.tail()


@pytest.mark.parametrize("listens", ["0", "1"])
@pytest.mark.parametrize("fault", ["array-received:1@1", *("chunk-received" + setting for setting in FLIPS["chunk-received"])])
def test_of_two_who_received_its_state_with_other_bits_receives_it_once_more(finish, tmp_path, reference, fault, listens):
    expected_hash, losses = reference(trainer__steps=LONG)
    job = rig.make_job(tmp_path, workers__target=1, trainer__steps=LONG)
    run = finish(job, "--drill", "join@12", env={"RINGMASTER_FAULT": f"{fault}/flips", "RINGMASTER_LISTEN": listens})
    assert struck(run, fault.split(":")[0]) == 1, run.tail()
    assert run.code == 0, run.tail()
    told = run.of("proofFailed")
    assert len(told) == 1 or (listens == "1" and not told and NO_USE in run.stderr), f"what came with another bit was thrown away, or told of: {run.tail()}"
    for one in told:
        assert one["worker"] == 1 and f"the state of step {one['step']} that it received has other bits than those of who gave it" in one["cause"], one
    assert all(event["stepsRedone"] <= 2 for event in run.of("recovered")), "one pass to see it, one more where the ring broke before all had looked"
    assert [event["loss"] for event in run.of("step")] == losses, run.tail()
    assert run.the("complete")["weightsSha256"] == expected_hash and run.the("complete")["exact"], run.tail()


# Who drills is told nothing that others are not: the worker names itself, and the trainer's log has the step in which its bit flipped.
@pytest.mark.parametrize("workers", [2, 3])
def test_a_drill_flips_a_bit_and_the_run_names_worker_and_step_and_ends_with_the_same_weights(finish, tmp_path, reference, workers):
    expected_hash, losses = reference(trainer__steps=LONG)
    job = rig.make_job(tmp_path, workers__target=workers, trainer__steps=LONG, failurePolicy__maxRestarts=0)
    run = finish(job, "--drill", "corrupt:1@5", "--drill", "corrupt:0@300")
    assert run.code == 0, run.tail()
    flipped = [(int(worker), int(step)) for worker, step in re.findall(r"trainer (\d+).*a drill flips a bit in this worker's sums.* step=(\d+)", run.stderr)]
    assert [worker for worker, _ in flipped] == [1, 0] and flipped[0][1] > 5 and flipped[1][1] > 300, run.tail()
    named = [(event["worker"], int(re.search(r" of step (\d+) ", event["cause"]).group(1)))
             for event in run.of("proofFailed") if event["cause"].startswith(OWN)]
    assert named == flipped, run.tail()
    assert [event["cause"] for event in run.of("recovered")] == ["RingError"] * 2, run.tail()
    assert not run.of("workerLost") and not run.of("workerFailed") and not run.of("workerQuarantined"), "what was ordered is no failure"
    assert [event["loss"] for event in run.of("step")] == losses, run.tail()
    assert run.the("complete")["weightsSha256"] == expected_hash and run.the("complete")["exact"], run.tail()


def test_who_is_alone_does_not_commit_it_either(finish, tmp_path, reference):
    expected_hash, losses = reference(trainer__steps=LONG)
    job = rig.make_job(tmp_path, workers__target=1, trainer__steps=LONG)
    run = finish(job, "--drill", "corrupt:0@5")
    assert run.code == 0, run.tail()
    assert "a drill flips a bit in this worker's sums" in run.stderr, run.tail()
    assert run.of("recovered"), run.tail()
    assert [event["loss"] for event in run.of("step")] == losses, run.tail()
    assert run.the("complete")["weightsSha256"] == expected_hash and run.the("complete")["exact"], run.tail()


# Three have a majority. Of two, who has other bits than it wrote gives them up, and the other one keeps its own: nothing goes back.
@pytest.mark.parametrize("workers, words", [(3, "other bits than that of most workers"), (2, "other bits than it wrote there")])
@pytest.mark.parametrize("setting", FLIPS["state-rests"])
def test_a_bit_that_flips_in_a_state_at_rest_spoils_no_step(finish, tmp_path, reference, setting, workers, words):
    whole = {"trainer__steps": STEPS, "trainer__batch__laneSequences": 16}  # weights are read in parts where steps are smaller
    expected_hash, losses = reference(**whole)
    job = rig.make_job(tmp_path, workers__target=workers, failurePolicy__maxRestarts=1, **whole)
    run = finish(job, env={"RINGMASTER_FAULT": f"state-rests{setting}/flips"})
    assert struck(run, "state-rests") == 1, run.tail()
    assert run.code == 0, run.tail()
    told = run.the("proofFailed")
    assert told["worker"] == 1 and f"its state of step {told['step']} has {words}" in told["cause"], told
    assert all(event["stepsRedone"] <= 1 for event in run.of("recovered")), run.tail()
    assert [event["loss"] for event in run.of("step")] == losses, run.tail()
    assert run.the("complete")["weightsSha256"] == expected_hash and run.the("complete")["exact"], run.tail()
