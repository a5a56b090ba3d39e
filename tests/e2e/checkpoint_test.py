"""Checkpoints across runs: what is kept, what is refused, and what a damaged one costs."""

import json
import os
import signal
import subprocess

import pytest

import rig


def stopped_run(launch, job, at):
    """Trains to about step `at`, then Ctrl-C; returns the run, whose last checkpoint is of the step it stopped at."""
    run = launch(job)
    run.read_until("step", step=at)
    run.interrupt()
    assert run.wait() == 130, run.tail()
    return run


def manifests(folder):
    return sorted(p.parent.name for p in (folder / "checkpoints").glob("*/manifest.json"))


def test_an_interrupt_saves_the_step_it_stopped_at(tmp_path, launch):
    run = stopped_run(launch, rig.make_job(tmp_path, workers__target=2), 15)
    step = run.the("interrupted")["step"]
    saved = run.of("checkpointSaved")[-1]
    assert saved["step"] == step
    folder = rig.folder_of(saved["uri"])
    assert folder.name == f"step-{step:08d}"
    payload = [p for p in folder.iterdir() if p.suffix == ".safetensors"]
    assert len(payload) == 3 and saved["bytes"] >= sum(p.stat().st_size for p in payload)
    assert run.stderr.strip(), "an exit code other than 0 comes with a sentence"


def test_keep_deletes_older_ones_and_does_not_count_the_final_one(tmp_path, finish):
    run = finish(rig.make_job(tmp_path, workers__target=2, checkpoint__everySteps=20, checkpoint__keep=2))
    complete = rig.check_complete(run)
    assert manifests(tmp_path) == ["final", "step-00000080", "step-00000100"]
    assert rig.folder_of(complete["uri"]) == (tmp_path / "checkpoints" / "final").resolve()
    saved = [e["step"] for e in run.of("checkpointSaved")]
    assert saved == [20, 40, 60, 80, 100, 120]


def test_a_finished_job_prints_complete_again_and_trains_nothing(tmp_path, finish):
    job = rig.make_job(tmp_path)
    first = rig.check_complete(finish(job))
    again = finish(job)
    assert again.code == 0, again.tail()
    assert not again.of("step", "ringFormed")
    second = again.the("complete")
    assert {k: second[k] for k in ("step", "weightsSha256", "exact", "uri")} == \
           {k: first[k] for k in ("step", "weightsSha256", "exact", "uri")}


def test_overwrite_starts_anew(tmp_path, launch, finish, reference):
    job = rig.make_job(tmp_path)
    stopped_run(launch, job, 20)
    (tmp_path / "checkpoints" / "notes.txt").write_text("not ours")
    run = finish(job, "--overwrite")
    assert not run.of("resumed")
    assert rig.check_complete(run)["weightsSha256"] == reference()[0]
    assert manifests(tmp_path) == ["final"]
    assert (tmp_path / "checkpoints" / "notes.txt").exists(), "only what is ours is deleted"


def test_overwrite_deletes_nothing_where_the_data_is_missing(tmp_path, finish):
    job = rig.make_job(tmp_path)
    rig.check_complete(finish(job))
    os.rename(tmp_path / "data", tmp_path / "elsewhere")
    run = finish(job, "--overwrite")
    assert run.code == 3, run.tail()
    assert manifests(tmp_path) == ["final"]


def flip_a_byte(path, at):
    raw = bytearray(path.read_bytes())
    raw[int(len(raw) * at)] ^= 0x10
    path.write_bytes(raw)


def cut_short(path):
    os.truncate(path, path.stat().st_size * 2 // 3)


DAMAGES = {
    "weights flipped": lambda folder: flip_a_byte(folder / "model.safetensors", 0.7),
    "weights cut": lambda folder: cut_short(folder / "model.safetensors"),
    "header flipped": lambda folder: flip_a_byte(folder / "model.safetensors", 0.001),
    "weights gone": lambda folder: (folder / "model.safetensors").unlink(),
    "moments flipped": lambda folder: flip_a_byte(sorted(folder.glob("optimizer-*"))[-1], 0.9),
    "moments cut": lambda folder: cut_short(sorted(folder.glob("optimizer-*"))[0]),
    "manifest cut": lambda folder: cut_short(folder / "manifest.json"),
    "manifest emptied": lambda folder: (folder / "manifest.json").write_text(""),
}


@pytest.mark.parametrize("damage", sorted(DAMAGES))
@pytest.mark.sanitized
def test_a_damaged_checkpoint_is_said_and_the_one_before_is_used(tmp_path, launch, finish, reference, damage):
    job = rig.make_job(tmp_path, workers__target=2, checkpoint__everySteps=10)
    stopped = stopped_run(launch, job, 25).the("interrupted")["step"]
    newest = manifests(tmp_path)[-1]
    older = stopped // 10 * 10 if stopped % 10 else stopped - 10
    DAMAGES[damage](tmp_path / "checkpoints" / newest)

    run = finish(job)
    resumed = run.the("resumed")
    assert resumed["step"] == older, run.tail()
    assert len(resumed["skipped"]) == 1, resumed
    assert resumed["skipped"][0]["uri"].rstrip("/").endswith(newest) and resumed["skipped"][0]["reason"]
    assert not list((tmp_path / "checkpoints").glob("*/manifest.damaged.json")), "who reads renames nothing"
    assert rig.check_complete(run, first=older + 1)["weightsSha256"] == reference()[0]


@pytest.mark.parametrize("workers", [1, 2])
def test_with_every_checkpoint_damaged_a_run_ends_and_names_them(tmp_path, launch, finish, workers):
    job = rig.make_job(tmp_path, checkpoint__everySteps=10, workers__target=workers)
    stopped_run(launch, job, 25)
    names = manifests(tmp_path)
    for name in names:
        flip_a_byte(tmp_path / "checkpoints" / name / "model.safetensors", 0.5)
    run = finish(job)
    assert run.code == 3, run.tail()
    assert all(name in run.stderr for name in names) and "--overwrite" in run.stderr, run.stderr
    assert manifests(tmp_path) == names, "nothing was deleted or renamed"


def test_a_read_that_fails_for_a_moment_at_one_of_two_agents_passes_over_no_checkpoint(tmp_path, launch, finish, reference):
    job = rig.make_job(tmp_path, workers__target=2, checkpoint__everySteps=10)
    stopped = stopped_run(launch, job, 25).the("interrupted")["step"]
    run = finish(job, env={"RINGMASTER_FAULT": "file-read:4@1/fails-3"})
    assert "fault point file-read" in run.stderr, "this test lets reads fail"
    resumed = run.the("resumed")
    assert (resumed["step"], resumed["skipped"]) == (stopped, []), resumed
    assert rig.check_complete(run, first=stopped + 1)["weightsSha256"] == reference()[0]


def resume_while_a_call_hangs(tmp_path, launch, finish, point, steps=rig.STEPS):
    job = rig.make_job(tmp_path, workers__target=2, workers__min=1, checkpoint__everySteps=10, trainer__steps=steps)
    stopped = stopped_run(launch, job, 25).the("interrupted")["step"]
    run = finish(job, env={"RINGMASTER_FAULT": f"{point}@1/hangs"})
    assert f"fault point {point}" in run.stderr, "this test lets a call not return"
    assert run.the("resumed")["step"] == stopped
    return run, rig.check_complete(run, first=stopped + 1, last=steps)["weightsSha256"]


def test_a_machine_that_hangs_in_a_list_holds_up_nobody_and_has_the_state_from_the_others(tmp_path, launch, finish, reference):
    steps = 800  # a fast machine has made 120 before the other one is taken in
    run, weights = resume_while_a_call_hangs(tmp_path, launch, finish, "listed", steps)
    assert not run.of("workerQuarantined") and run.of("ringFormed")[-1]["world"] == 2, run.tail()
    assert weights == reference(trainer__steps=steps)[0]


def test_a_machine_that_hangs_in_a_load_is_left_out_and_the_others_go_on_from_the_same_checkpoint(tmp_path, launch, finish, reference):
    steps = 400  # a fast machine has made 120 before the other one's back-off is over
    run, weights = resume_while_a_call_hangs(tmp_path, launch, finish, "checkpoint-loaded", steps)
    told = run.the("workerQuarantined")
    assert told["worker"] == 1 and "reading the checkpoint has not returned for more than 30 s" in told["cause"], told
    assert weights == reference(trainer__steps=steps)[0]


def test_data_that_can_not_be_read_for_a_moment_cost_no_bit(tmp_path, finish, reference):
    run = finish(rig.make_job(tmp_path, workers__target=2), env={"RINGMASTER_FAULT": "data-read:20@1/fails-3"})
    assert run.stderr.count("fault point data-read") == 3, run.stderr
    assert rig.check_complete(run)["weightsSha256"] == reference()[0]


def test_with_every_manifest_damaged_a_run_ends_and_names_them_instead_of_beginning_anew(tmp_path, launch, finish):
    job = rig.make_job(tmp_path, checkpoint__everySteps=10)
    stopped_run(launch, job, 25)
    names = manifests(tmp_path)
    before = sorted(path for path in (tmp_path / "checkpoints").rglob("*"))
    for name in names:
        cut_short(tmp_path / "checkpoints" / name / "manifest.json")
    run = finish(job)
    assert run.code == 3, run.tail()
    assert all(name in run.stderr for name in names) and "--overwrite" in run.stderr, run.stderr
    assert sorted(path for path in (tmp_path / "checkpoints").rglob("*")) == before, "nothing was deleted or renamed"
    assert finish(job, "--overwrite").code == 0


@pytest.mark.parametrize("field, value, name", [
    ("trainer__optimizer__learningRate", 0.002, "learningRate"),
    ("trainer__batch__lanes", 4, "lanes"),
    ("trainer__model__layers", 3, "layers"),
    ("trainer__steps", 70, "steps"),
    ("trainer__seed", 9, "seed"),
    ("trainer__reduction", "fast", "reduction"),
])
def test_a_changed_field_is_refused_by_name(tmp_path, launch, finish, field, value, name):
    stopped_run(launch, rig.make_job(tmp_path, workers__max=4), 10)
    run = finish(rig.make_job(tmp_path, **{"workers__max": 4, field: value}))
    assert run.code == 2, run.tail()
    assert name in run.stderr, run.stderr
    assert manifests(tmp_path), "the checkpoints are still there"


def change_content(data):
    flip_a_byte(data / "a.txt", 0.5)


def add_file(data):
    (data / "zz.txt").write_text("more")


def rename_file(data):
    os.rename(data / "a.txt", data / "aa.txt")


@pytest.mark.parametrize("change", [change_content, add_file, rename_file])
def test_changed_data_is_refused(tmp_path, launch, finish, change):
    job = rig.make_job(tmp_path)
    stopped_run(launch, job, 10)
    change(tmp_path / "data")
    run = finish(job)
    assert run.code == 3, run.tail()
    assert "data" in run.stderr, run.stderr


def test_data_that_only_moved_is_the_same_data(tmp_path, launch, finish, reference):
    stopped = stopped_run(launch, rig.make_job(tmp_path), 10).the("interrupted")["step"]
    os.rename(tmp_path / "data", tmp_path / "elsewhere")
    run = finish(rig.make_job(tmp_path, data=False, trainer__data__uri="elsewhere"))
    assert rig.check_complete(run, first=stopped + 1)["weightsSha256"] == reference()[0]


def test_a_second_run_on_the_same_folder_is_refused(tmp_path, launch, finish):
    job = rig.make_job(tmp_path, trainer__steps=100000)
    first = launch(job)
    first.read_until("step", step=2)
    second = finish(job)
    assert second.code == 4, second.tail()
    assert "checkpoints" in second.stderr
    first.interrupt()
    assert first.wait() == 130


@pytest.fixture(name="small_disk")
def mount_a_small_disk(tmp_path):
    """A file system of a given size in KiB at tmp_path/checkpoints; None where mounting is not allowed."""
    folder = tmp_path / "checkpoints"
    folder.mkdir()

    def mount(size_kib):
        options = f"size={size_kib}k" + (",remount" if os.path.ismount(folder) else "")
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"cannot mount a small file system here: {done.stderr.strip()}")
        return folder

    yield mount
    if os.path.ismount(folder):
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_ends_the_run_and_loses_nothing(tmp_path, small_disk, finish, reference):
    whole = rig.make_job(tmp_path / "measure", checkpoint__everySteps=10, checkpoint__keep=10)
    rig.check_complete(finish(whole))
    each = max(sum(p.stat().st_size for p in f.iterdir()) for f in (tmp_path / "measure/checkpoints").iterdir() if f.is_dir())
    folder = small_disk(each * 5 // 2 // 1024)  # room for two checkpoints and a half

    job = rig.make_job(tmp_path, workers__target=2, checkpoint__everySteps=10, checkpoint__keep=10)
    run = finish(job)
    assert run.code == 4, run.tail()
    assert "space" in run.stderr.lower() or "full" in run.stderr.lower(), run.stderr
    assert not run.left_over()
    newest = int(manifests(tmp_path)[-1].removeprefix("step-"))
    assert newest >= 10

    small_disk(each * 16 // 1024)  # ten are kept, with what was half written, the last one and those that are not taken away yet
    again = finish(job)
    assert again.the("resumed")["step"] == newest, again.tail()
    assert rig.check_complete(again, first=newest + 1)["weightsSha256"] == reference()[0]
    assert folder.is_mount()


STORE_POINTS = ["upload-begun", "part-written", "slice-written", "sums-written", "upload-named", "model-whole", "before-manifest", "after-manifest", "before-delete"]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("point", STORE_POINTS)
@pytest.mark.slow
def test_an_agent_that_dies_while_it_saves_leaves_a_checkpoint_to_go_on_from(tmp_path, finish, reference, point, workers):
    """Whether this run gets over it or ends, the next one goes on and comes to the same bits.

    Alone, a restarted agent may be asked to publish what its predecessor left before its trainer is up: what it
    writes has to name data and arithmetic all the same."""
    fields = {"workers__target": workers, "checkpoint__everySteps": 10,
              "checkpoint__keep": 1 if point == "before-delete" else 100}
    run = finish(rig.make_job(tmp_path, **fields), env={"RINGMASTER_FAULT": f"{point}:2"})
    assert run.of("workerLost") or run.code, f"nobody died at {point}: {run.tail()}"
    assert not run.left_over()
    for path in (tmp_path / "checkpoints").glob("*/manifest.json"):
        manifest = json.loads(path.read_text())
        assert manifest["fingerprint"] and manifest["data"]["sha256"].strip("0"), f"{path}: {manifest['data']}"
    again = finish(rig.make_job(tmp_path, **fields))
    assert again.code == 0, again.tail()
    assert again.the("complete")["weightsSha256"] == reference()[0]
    for folder in (tmp_path / "checkpoints").glob("*/manifest.json"):
        manifest = json.loads(folder.read_text())
        known = rig.weights_sha256(folder.parent) if folder.parent.name == "final" else None
        assert manifest["weightsSha256"] == known, folder


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.slow
def test_runs_killed_again_and_again_come_to_the_same_bits(tmp_path, launch, reference, seed):
    """SIGKILL of `run` at moments that differ by seed, until one run gets through."""
    fields = {"checkpoint__everySteps": 5, "checkpoint__keep": 2}
    seen = 0
    for attempt in range(8):
        run = launch(rig.make_job(tmp_path, workers__target=1 + (seed + attempt) % 3, **fields))
        aim = seen + 6 + seed
        event = run.next_event()
        while event is not None and not (event["event"] == "step" and event["step"] >= aim):
            event = run.next_event()
        if event is None:
            break
        seen = event["step"]
        os.kill(run.pid, signal.SIGKILL)
        rig.until(lambda: not run.left_over(), "every process of the run is gone")
    run.wait()
    if run.code != 0:
        run = launch(rig.make_job(tmp_path, **fields))
        run.wait()
    assert run.code == 0, run.tail()
    assert run.the("complete")["weightsSha256"] == reference()[0]


def test_a_checkpoint_is_saved_when_its_time_has_come(tmp_path, launch):
    """No step is planned for it: the clock of one worker says when, and all save the same step."""
    run = launch(rig.make_job(tmp_path, workers__target=2, trainer__steps=100000, checkpoint__every="1s"))
    first = run.read_until("checkpointSaved")["step"]
    second = run.read_until("checkpointSaved")["step"]
    assert 0 < first < second
    run.interrupt()
    assert run.wait() == 130, run.tail()


def command(*words):
    return subprocess.run([rig.BIN / "ringmaster", "checkpoint", *map(str, words)], capture_output=True, text=True,
                          timeout=120, check=False)


def test_weights_are_exported_checked_and_never_over_another_model(tmp_path, finish):
    rig.check_complete(finish(rig.make_job(tmp_path, workers__target=2, checkpoint__everySteps=60)))
    store, target = tmp_path / "checkpoints", tmp_path / "exported"
    done = command("export", store, target)
    assert done.returncode == 0, done.stderr
    names = ["README.md", "config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"]
    for name in names:
        assert (target / name).read_bytes() == (store / "final" / name).read_bytes()
    assert sorted(p.name for p in target.iterdir()) == names
    head, row, place = done.stdout.splitlines()
    assert head.split()[0] == "NAME" and row.split()[:2] == ["final", "120"] and place == f"written to {target}"

    earlier = command("export", store, tmp_path / "earlier", "--name", "step-00000060")
    assert earlier.returncode == 0, earlier.stderr
    assert sorted(p.name for p in (tmp_path / "earlier").iterdir()) == [name for name in names if name != "README.md"]
    assert all((tmp_path / "earlier" / name).read_bytes() == (target / name).read_bytes() for name in names if name.endswith("json"))

    again = command("export", store, target, "--name", "step-00000060")
    assert again.returncode == 2 and "holds a model already" in again.stderr, again.stderr
    flip_a_byte(store / "step-00000060" / "model.safetensors", 0.9)
    damaged = command("export", store, tmp_path / "damaged", "--name", "step-00000060")
    assert damaged.returncode == 3 and "step-00000060" not in damaged.stdout, damaged.stderr
    assert not (tmp_path / "damaged" / "model.safetensors").exists()


def test_a_model_is_exported_to_no_place_among_the_checkpoints_and_generate_takes_the_last_one(tmp_path, finish):
    """It lay there beside final, and from then on `generate` of that folder took it, however old."""
    rig.check_complete(finish(rig.make_job(tmp_path, trainer__steps=20, checkpoint__everySteps=10)), last=20)
    store = tmp_path / "checkpoints"
    (tmp_path / "link").symlink_to(store)
    before = sorted(p.name for p in store.iterdir())
    for target in (store, store / "exported", store / "final", tmp_path / "link/exported"):
        refused = command("export", store, target)
        assert refused.returncode == 2 and "name another place for the model" in refused.stderr, refused.stderr
    assert sorted(p.name for p in store.iterdir()) == before
    (store / "config.json").write_text("{}")
    done = subprocess.run([rig.BIN / "ringmaster", "generate", store, "--tokens", "3"], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    for word in ("step-10", "10", "step-000010"):
        meant = command("delete", store, "--name", word)
        assert meant.returncode == 3 and "did you mean step-00000010?" in meant.stderr, meant.stderr


def test_deleting_tells_first_what_would_go(tmp_path, launch, finish):
    job = rig.make_job(tmp_path, workers__target=1, checkpoint__everySteps=40)
    run = launch(job)
    run.read_until("checkpointSaved")
    busy = command("delete", tmp_path / "checkpoints", "--all", "--yes")
    assert busy.returncode == 4 and "another run uses" in busy.stderr, busy.stderr
    assert run.wait() == 0, run.tail()

    store = tmp_path / "checkpoints"
    before = manifests(tmp_path)
    asked = command("delete", store, "--name", before[1])
    assert asked.returncode == 2 and before[1] in asked.stdout and before[2] not in asked.stdout, asked.stderr
    assert manifests(tmp_path) == before
    assert command("delete", store, "--name", before[1], "--yes").returncode == 0
    assert manifests(tmp_path) == [before[0]] + before[2:]
    assert command("delete", store, "--all", "--yes").returncode == 0
    assert manifests(tmp_path) == []
    assert command("list", store).returncode == 3
