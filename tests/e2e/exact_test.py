"""One weightsSha256, whatever happens on the way: the claim that everything else serves."""

import random

import pytest

import rig

UPDATE_POINTS = ["words-complete", "update-record", "update-valid", "slot-filled", "slot-valid", "piece-updated",
                 "piece-stamped", "slot-cleared", "before-commit", "record-written", "after-commit"]
ODD = {"trainer__batch__lanes": 7, "trainer__model__width": 80, "trainer__model__heads": 5,
       "trainer__model__context": 37, "workers__max": 7, "trainer__steps": 100}
# So few words that one thread makes lanes and exchange (trainer/core/elastic.h).
FEW = {"trainer__model__layers": 1, "trainer__model__width": 16, "trainer__model__context": 16}


def check_same(run, reference, last=rig.STEPS, first=1, restarted=()):
    """Same weights and same loss at each step as the undisturbed run, and the files hold what is claimed."""
    expected_hash, expected_losses = reference
    complete = rig.check_complete(run, last=last, first=first, restarted=restarted)
    assert [e["loss"] for e in run.of("step")] == expected_losses[first - 1:], run.tail()
    assert complete["weightsSha256"] == expected_hash, run.tail()
    assert complete["exact"] is True
    assert rig.weights_sha256(rig.folder_of(complete["uri"])) == expected_hash
    return complete


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("workers", [1, 2, 3, 5, 8])
def test_the_number_of_workers_and_threads_changes_no_bit(tmp_path, finish, reference, workers, threads):
    run = finish(rig.make_job(tmp_path, workers__target=workers, trainer__threads=threads))
    check_same(run, reference())
    assert run.the("ringFormed")["world"] == workers
    assert not run.of("recovered", "workerLost", "workerLeft")


@pytest.mark.parametrize("drill", ["kill:1@10", "kill:0@10", "trainer:1@10", "trainer:0@10", "term:2@10", "term:0@10",
                                   "join@10"])
@pytest.mark.sanitized
def test_one_drill_changes_no_bit(tmp_path, finish, reference, drill):
    run = finish(rig.make_job(tmp_path, workers__target=3), "--drill", drill)
    check_same(run, reference())
    assert run.the("drill")["spec"] == drill
    assert run.of("recovered"), run.tail()


@pytest.mark.parametrize("workers, drills", [
    (2, ["kill:1@10", "join@20", "trainer:0@30"]),
    (3, ["term:0@10", "join@15", "kill:1@25", "join@35"]),
    (3, ["kill:1@10", "kill:2@10"]),
    (3, ["kill:1@10", "term:2@10"]),
    (4, ["trainer:0@10", "trainer:1@10", "trainer:2@10", "trainer:3@10"]),
    (5, ["kill:4@10", "kill:3@11", "kill:2@12", "kill:1@13"]),
    (2, ["join@5", "join@5", "join@10", "kill:0@20", "kill:1@20"]),
    (8, ["term:7@10", "term:6@10", "kill:0@20", "join@30", "trainer:3@30"]),
])
def test_several_drills_change_no_bit(tmp_path, finish, reference, workers, drills):
    arguments = [word for drill in drills for word in ("--drill", drill)]
    run = finish(rig.make_job(tmp_path, workers__target=workers), *arguments)
    check_same(run, reference())
    assert sorted(e["spec"] for e in run.of("drill")) == sorted(drills)


@pytest.mark.parametrize("drills", [["kill:1@10", "join@20", "trainer:0@30", "term:2@40"], ["trainer:0@10", "trainer:1@10", "trainer:2@10"]])
@pytest.mark.sanitized
def test_drills_change_no_bit_of_a_model_of_few_words(tmp_path, finish, reference, drills):
    run = finish(rig.make_job(tmp_path, workers__target=3, **FEW), *[word for drill in drills for word in ("--drill", drill)])
    check_same(run, reference(**FEW))
    assert sorted(e["spec"] for e in run.of("drill")) == sorted(drills)


@pytest.mark.parametrize("hit", [1, 7])
@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("point", UPDATE_POINTS)
@pytest.mark.slow
def test_a_trainer_that_dies_inside_the_update_changes_no_bit(tmp_path, finish, reference, point, workers, hit):
    job = rig.make_job(tmp_path, workers__target=workers)
    run = finish(job, env={"RINGMASTER_FAULT": f"{point}:{hit}@{workers // 2}"})
    check_same(run, reference(), restarted=[workers // 2])
    assert run.of("recovered"), f"nobody died at {point}: {run.tail()}"


@pytest.mark.parametrize("point", ["slot-valid", "piece-stamped", "before-commit"])
def test_a_lone_trainer_that_dies_inside_the_update_goes_on_from_its_memory(tmp_path, finish, reference, point):
    run = finish(rig.make_job(tmp_path), env={"RINGMASTER_FAULT": f"{point}:9@0"})
    check_same(run, reference(), restarted=[0])
    assert len(run.of("ringFormed")) == 2, run.tail()
    assert not run.of("resumed"), run.tail()


def random_history(seed, workers):
    """Drills that never take the last worker. (A newcomer that is still on its way when the others go can make
    the run start over from nothing: that costs steps, but no bit either.)"""
    chance = random.Random(seed)
    alive, drills, step = list(range(workers)), [], 3
    while step < 60:
        kind = chance.choice(["kill", "trainer", "term", "join"])
        if kind == "join" and len(alive) < 8:
            lowest = next(i for i in range(8) if i not in alive)
            alive.append(lowest)
            drills.append(f"join@{step}")
        elif kind == "trainer":
            drills.append(f"trainer:{chance.choice(alive)}@{step}")
        elif kind in ("kill", "term") and len(alive) > 1:
            gone = alive.pop(chance.randrange(len(alive)))
            drills.append(f"{kind}:{gone}@{step}")
        step += chance.randrange(1, 16)
    return drills


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.slow
def test_a_random_history_changes_no_bit(tmp_path, finish, reference, seed):
    workers = 1 + seed % 5
    drills = random_history(seed, workers)
    arguments = [word for drill in drills for word in ("--drill", drill)]
    run = finish(rig.make_job(tmp_path, workers__target=workers, failurePolicy__maxRestarts=20), *arguments)
    check_same(run, reference())


@pytest.mark.parametrize("before, after", [(1, 3), (3, 2), (2, 5), (5, 1)])
@pytest.mark.sanitized
def test_a_stop_and_a_resume_with_other_workers_change_no_bit(tmp_path, launch, finish, reference, before, after):
    run = launch(rig.make_job(tmp_path, workers__target=before))
    run.read_until("step", step=20)
    run.interrupt()
    assert run.wait() == 130, run.tail()
    stopped = run.the("interrupted")["step"]
    rig.check_steps(run, last=stopped)
    assert 20 <= stopped < rig.STEPS
    assert not run.left_over()

    again = finish(rig.make_job(tmp_path, workers__target=after))
    assert again.the("resumed")["step"] == stopped
    assert again.the("resumed")["skipped"] == []
    check_same(again, reference(), first=stopped + 1)


@pytest.mark.parametrize("drills", [["kill:2@10"], ["term:1@10", "join@20"]])
@pytest.mark.parametrize("workers", [1, 3, 7])
def test_odd_shapes_change_no_bit(tmp_path, finish, reference, workers, drills):
    arguments = [word for drill in drills if workers > 2 for word in ("--drill", drill)]
    run = finish(rig.make_job(tmp_path, workers__target=workers, trainer__threads=2, **ODD), *arguments)
    check_same(run, reference(**ODD), last=100)


def test_fast_sums_do_change_bits(tmp_path, finish):
    """The control: with sums in floating point the same comparison must find a difference."""
    hashes = set()
    for workers in (1, 2, 3, 5):
        run = finish(rig.make_job(tmp_path / str(workers), workers__target=workers, trainer__reduction="fast"))
        complete = rig.check_complete(run)
        assert complete["exact"] is False
        hashes.add(complete["weightsSha256"])
    assert len(hashes) > 1, "fast sums gave one hash for four world sizes: the comparison compares nothing"


def test_another_seed_gives_other_weights(tmp_path, finish, reference):
    """The other control: the hash depends on what it should depend on."""
    run = finish(rig.make_job(tmp_path, trainer__seed=2))
    assert rig.check_complete(run)["weightsSha256"] != reference()[0]


def test_the_loss_falls(reference):
    losses = reference()[1]
    assert losses[0] > 5.0 and losses[-1] < losses[0] - 1.5, losses
