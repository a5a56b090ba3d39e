"""run.svg: the picture of a run in its checkpoint folder."""

import subprocess
import xml.etree.ElementTree

import rig

SVG = "{http://www.w3.org/2000/svg}"


def words_of(folder):
    root = xml.etree.ElementTree.parse(folder / "checkpoints" / "run.svg").getroot()
    assert root.tag == SVG + "svg"
    assert not list(root.iter(SVG + "script"))
    return " ".join("".join(text.itertext()) for text in root.iter(SVG + "text"))


def check_numbers(steps):
    """Each step says what its update was made with, but for one that was found done after a death; clipNorm is 1."""
    keys = ("gradientNorm", "clipFactor", "learningRate")
    known = [step for step in steps if keys[0] in step]
    assert len(known) >= len(steps) - 2, len(known)
    for step in known:
        norm, clip, rate = (step[key] for key in keys)
        assert norm > 0 and rate >= 0, step  # at the end the schedule has come to 0
        assert clip == 1 if norm <= 0.999 else abs(clip - min(1, 1 / norm)) < 1e-5, step
    assert len({step["gradientNorm"] for step in known}) > len(known) / 2
    assert not [step for step in steps if keys[0] not in step and any(key in step for key in keys)]


def test_a_run_leaves_a_picture_of_what_happened_to_it(tmp_path, finish):
    job = rig.make_job(tmp_path, workers__target=3, trainer__steps=800, trainer__evaluation__everySteps=200,
                       trainer__evaluation__sequences=8, trainer__evaluation__holdOut=0.1)
    run = finish(job, "--drill", "kill:1@20", "--drill", "join@30")
    rig.check_complete(run, last=800)
    check_numbers(run.of("step"))
    words = words_of(tmp_path)
    for word in ("tiny", "gradient norm, 0 to ", "learning rate, 0 to ", "800 steps", "held-out loss", "worker 1 lost", "worker 1 joined", "worker 2"):
        assert word in words, words


def test_a_resumed_run_draws_its_own_part_and_says_so(tmp_path, launch, finish):
    job = rig.make_job(tmp_path)
    first = launch(job)
    first.read_until("step", step=20)
    first.interrupt()
    assert first.wait() == 130, first.tail()
    assert "interrupted" in words_of(tmp_path)
    at = first.the("interrupted")["step"]
    rig.check_complete(finish(job), first=at + 1)
    assert f"from step {at}" in words_of(tmp_path)


def test_a_picture_is_no_checkpoint_and_overwrite_takes_it_away(tmp_path, finish):
    job = rig.make_job(tmp_path)
    rig.check_complete(finish(job))
    folder = tmp_path / "checkpoints"
    listed = subprocess.run([str(rig.BIN / "ringmaster"), "checkpoint", "list", str(folder)], capture_output=True,
                            text=True, check=True, timeout=rig.DEADLINE_S)
    assert "svg" not in listed.stdout + listed.stderr
    (folder / "run.svg").write_text("old")
    run = finish(job)
    assert run.code == 0 and (folder / "run.svg").read_text() == "old", "nothing was trained"
    run = finish(job, "--overwrite", env={"RINGMASTER_TRAINER": "/bin/false"})
    assert run.code != 0
    assert not (folder / "run.svg").exists()


def test_a_picture_that_can_not_be_saved_does_not_fail_the_run(tmp_path, finish):
    job = rig.make_job(tmp_path)
    (tmp_path / "checkpoints" / "run.svg" / "in the way").mkdir(parents=True)
    run = finish(job)
    rig.check_complete(run)
    assert "the picture of the run was not saved" in run.tail()
