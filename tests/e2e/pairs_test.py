"""Machines that are well and can't reach each other: a wall between two pods, in one direction, while both
reach everybody else. Some walls let a handshake through, and nothing that is larger."""

import json

import pytest

import pod_rig
import rig

STEPS = 300
ENDLESS = 10 ** 9

pytestmark = pytest.mark.skipif(not pod_rig.can_be(), reason="no mount namespaces to be had here")


@pytest.fixture(name="wall", scope="module")
def wall_to_preload(tmp_path_factory):
    """The library that stands between two of them (wall.c)."""
    return rig.preloadable("wall", tmp_path_factory.mktemp("wall"))


@pytest.fixture(name="parted")
def three_pods_with_a_wall(launch, tmp_path, wall):
    """parted(steps): three workers under way of whom worker 1 can't call worker 2 while `group.wall` is there.

    With `does` (cut, hold) it can, and what it sends there after the handshake ends the connection, or is lost."""
    made = []

    def make(steps, does=None):
        job = rig.make_job(tmp_path / "alone", workers__min=2, workers__max=4, workers__target=3,
                           trainer__steps=STEPS, elasticity__joinWindow="2s", elasticity__heartbeat="100ms",
                           elasticity__stepTimeout="2s")
        text, sha256 = pod_rig.spec_of(launch, job)
        spec = json.loads(text.replace(f"file://{job.parent}/checkpoints", f"file://{tmp_path}/checkpoints"))
        spec["spec"]["trainer"]["steps"] = steps
        group = pod_rig.Pods(tmp_path / "pods", json.dumps(spec))
        made.append(group)
        group.sha256, group.wall = sha256, tmp_path / "wall"
        group.wall.touch()
        two = group.worker(2)
        preload = {"LD_PRELOAD": str(wall), "WALL_AGAINST": two.ip, "WALL_WHILE": str(group.wall)}
        if does:
            preload.update(WALL_AFTER="1000", WALL_DOES=does)
        group.workers = [group.worker(0), group.worker(1, env=preload), two]
        group.first = group.coordinator()
        return group

    yield make
    for group in made:
        group.clean_up()


def events(status, name):
    return [e for e in status["events"] if e["event"] == name]


def test_of_two_pods_that_cant_reach_each_other_one_is_left_out_and_the_job_is_completed(parted):
    group = parted(STEPS)
    status = group.ring((0, 1), (1, 1))
    (left_out,) = events(status, "workerLeftOut")
    assert left_out["worker"] == 2, "it was blamed: nobody could call it"
    assert "it and worker 1 can't reach each other" in left_out["cause"], left_out
    assert "connect to" in left_out["cause"], left_out
    assert [w["phase"] for w in status["workers"] if w["worker"] == 2] == ["leftOut"]
    assert status["failures"] == 0, "neither of them has failed"
    assert group.first.wait() == 0, group.tail()
    assert group.first.last_word()["weightsSha256"] == group.sha256
    for worker in group.workers:
        assert worker.wait() == 0, group.tail()


@pytest.mark.parametrize("does", ["cut", "hold"])
def test_of_two_pods_between_whom_only_handshakes_pass_one_is_left_out_and_the_job_is_completed(parted, does):
    group = parted(STEPS, does)
    status = group.until(lambda s: events(s, "workerLeftOut"), "one is left out")
    left_out = events(status, "workerLeftOut")[0]
    assert left_out["worker"] in (1, 2)
    assert f"it and worker {3 - left_out['worker']} can't reach each other" in left_out["cause"], left_out
    assert "nothing comes from worker 1 to worker 2" in left_out["cause"] or does == "cut", left_out
    assert status["failures"] == 0, "nobody has failed, and nobody's trainer was killed"
    assert group.first.wait() == 0, group.tail()
    assert group.first.last_word()["weightsSha256"] == group.sha256
    for worker in group.workers:
        assert worker.wait() == 0, group.tail()


def test_who_was_left_out_comes_back_when_the_wall_is_gone_and_training_goes_on_meanwhile(parted):
    group = parted(ENDLESS)
    status = group.ring((0, 1), (1, 1))
    group.until_step(status["progress"]["step"] + 20)
    group.wall.unlink()
    status = group.ring((0, 1), (1, 1), (2, 1))
    group.until_step(status["progress"]["step"] + 20)
    assert status["stepsRedone"] == {"announced": 0, "sudden": 0}, "it came back at a boundary"
    assert status["failures"] == 0
