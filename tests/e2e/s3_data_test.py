"""Training data in a bucket: the same samples and weights as from a folder, whoever reads it and whatever happens."""

import os
import random
import signal
import subprocess

import pytest

import rig
from s3_rig import Place, faults

FIELDS = {"trainer__steps": 40, "checkpoint__everySteps": 10, "checkpoint__keep": 2}


@pytest.fixture(name="data")
def data_in_a_bucket(s3_server):
    """A prefix that holds what rig.make_job writes into its data folder."""
    place = Place(s3_server)
    place.put("data/a.txt", rig.make_text(30000).encode())
    place.put("data/more/b.txt", rig.make_text(10000, seed=2).encode())
    place.put("data/more/.hidden", b"no data")
    place.put("data/zero", b"")
    return place


def make_job(folder, data, **fields):
    fields = {**FIELDS, "trainer__data__uri": f"{data.uri}/data", "trainer__data__cache": str(folder / "cache"), **fields}
    return rig.make_job(folder, data=False, **fields)


def chunks(folder):
    return sorted(path for path in (folder / "cache").iterdir())


def listings(folder):
    return [path.name for path in folder.iterdir() if path.name.startswith("data-")]


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_a_bucket_gives_the_weights_that_a_folder_gives(tmp_path, finish, data, reference, workers):
    run = finish(make_job(tmp_path, data, workers__target=workers), env=data.env)
    complete = rig.check_complete(run, last=40)
    assert complete["weightsSha256"] == reference(trainer__steps=40)[0]
    assert len(chunks(tmp_path)) == 2, "each file was fetched once, by whichever worker came first"
    assert len(listings(tmp_path / "checkpoints")) == 1


def shards(folder, count=3, tokens=9000, vocabulary=300):
    """Token shards with llm.c's header, of words that repeat: {name: bytes}."""
    chance = random.Random(5)
    made = {}
    for i in range(count):
        body = [(7 * at + at // 50 + chance.randrange(3)) % vocabulary for at in range(tokens + 11 * i)]
        header = [20240520, 1, len(body)] + [0] * 253
        made[f"part-{i}.bin"] = (b"".join(n.to_bytes(4, "little") for n in header)
                                 + b"".join(n.to_bytes(2, "little") for n in body))
    folder.mkdir(parents=True)
    for name, content in made.items():
        (folder / name).write_bytes(content)
    return made


def test_token_shards_and_held_out_samples_come_from_a_bucket_as_from_a_folder(tmp_path, finish, data):
    fields = {"trainer__model__vocabulary": 300, "trainer__evaluation__holdOut": 0.2, "trainer__evaluation__everySteps": 10,
              "trainer__evaluation__sequences": 32}
    for name, content in shards(tmp_path / "local" / "data").items():
        data.put(f"tokens/{name}", content)
    here = finish(rig.make_job(tmp_path / "local", **{**FIELDS, **fields}))
    there = finish(make_job(tmp_path / "remote", data, workers__target=2, trainer__data__uri=f"{data.uri}/tokens", **fields),
                   env=data.env)
    for run in (here, there):
        rig.check_complete(run, last=40)
    assert here.the("complete")["weightsSha256"] == there.the("complete")["weightsSha256"]
    assert [e["loss"] for e in here.of("evaluated")] == [e["loss"] for e in there.of("evaluated")] != []


def big_text(data, bytes_wanted=3 << 20):
    text = rig.make_text(bytes_wanted, seed=9)
    for i in range(3):
        data.put(f"big/{i}.txt", text[i::3].encode())
    return {f"{i}.txt": text[i::3] for i in range(3)}


def test_a_cache_smaller_than_the_data_changes_no_weights_and_stays_small(tmp_path, finish, data):
    (tmp_path / "local" / "data").mkdir(parents=True)
    for name, text in big_text(data).items():
        (tmp_path / "local" / "data" / name).write_text(text)
    here = finish(rig.make_job(tmp_path / "local", **FIELDS))
    there = finish(make_job(tmp_path / "remote", data, workers__target=2, trainer__data__uri=f"{data.uri}/big",
                            trainer__data__cacheBytes=1 << 20), env=data.env)
    for run in (here, there):
        rig.check_complete(run, last=40)
    assert here.the("complete")["weightsSha256"] == there.the("complete")["weightsSha256"]
    bound = (1 << 20) * 5 // 4 + 2 * (256 << 10)  # each of two writers may overstep it by an eighth and a chunk
    assert 0 < sum(path.stat().st_size for path in chunks(tmp_path / "remote")) <= bound


@pytest.mark.parametrize("drill", ["kill:1@15", "trainer:1@15", "term:1@15"])
def test_workers_that_go_and_come_back_read_the_same_samples(tmp_path, finish, data, reference, drill):
    run = finish(make_job(tmp_path, data, workers__target=2), "--drill", drill, env=data.env)
    assert run.code == 0, run.tail()
    assert run.the("complete")["weightsSha256"] == reference(trainer__steps=40)[0], run.tail()


def killed_after_a_checkpoint(launch, job, env):
    run = launch(job, env=env)
    run.read_until("checkpointSaved", step=lambda step: step >= 10)
    run.process.send_signal(signal.SIGKILL)
    run.clean_up()
    assert not run.of("complete")


def test_on_another_machine_it_goes_on_with_the_files_that_it_began_with(tmp_path, launch, finish, data, reference):
    saved = {"checkpoint__uri": f"{data.uri}/run", "trainer__steps": 400}
    killed_after_a_checkpoint(launch, make_job(tmp_path / "one", data, **saved), data.env)
    data.put("data/aa.txt", b"added later " * 1000)
    run = finish(make_job(tmp_path / "two", data, workers__target=2, **saved), env=data.env)
    assert run.code == 0, run.tail()
    assert run.the("resumed")["step"] >= 10
    assert run.the("complete")["weightsSha256"] == reference(trainer__steps=400)[0]
    assert len(chunks(tmp_path / "two")) == 2
    assert len([name for name in data.names("run") if name.startswith("run/data-")]) == 1


def removed(data):
    data.delete("data/more/b.txt")


def shorter(data):
    data.put("data/more/b.txt", b"short")


def other_content(data):
    data.put("data/more/b.txt", rig.make_text(10000, seed=3).encode())


@pytest.mark.parametrize("harm, words", [(removed, "gone"), (shorter, "10000 bytes then, 5 now"),
                                         (other_content, "another content of the same size")])
def test_a_file_that_is_gone_or_has_changed_is_told_by_its_name(tmp_path, launch, finish, data, harm, words):
    killed_after_a_checkpoint(launch, make_job(tmp_path, data, trainer__steps=400), data.env)
    harm(data)
    run = finish(make_job(tmp_path, data, trainer__steps=400), env=data.env)
    assert run.code == 3, run.tail()
    assert "more/b.txt" in run.stderr and words in run.stderr, run.stderr
    assert not run.of("step")


def test_a_file_that_changes_while_training_runs_ends_it_by_name(tmp_path, launch, data):
    big_text(data)
    run = launch(make_job(tmp_path, data, trainer__steps=100000, trainer__data__uri=f"{data.uri}/big",
                          trainer__data__cacheBytes=1 << 20), env=data.env)
    run.read_until("step", step=2)
    data.put("big/1.txt", rig.make_text(1 << 20, seed=11).encode())
    assert run.wait() == 3, run.tail()
    assert "big/1.txt" in run.stderr, run.stderr


def test_a_flipped_byte_in_the_cache_is_found_and_fetched_again(tmp_path, finish, data, reference):
    first = finish(make_job(tmp_path, data), env=data.env)
    rig.check_complete(first, last=40)
    for path in chunks(tmp_path):
        raw = bytearray(path.read_bytes())
        raw[len(raw) // 2] ^= 1
        path.write_bytes(raw)
    again = finish(make_job(tmp_path, data), "--overwrite", env=data.env)
    assert rig.check_complete(again, last=40)["weightsSha256"] == reference(trainer__steps=40)[0]


def test_a_full_cache_needs_no_store_but_for_the_listing(tmp_path, finish, data, s3_proxy):
    rig.check_complete(finish(make_job(tmp_path, data), env=data.env), last=40)
    again = finish(make_job(tmp_path, data), "--overwrite", env=s3_proxy.environment)
    rig.check_complete(again, last=40)
    assert not [seen for seen in s3_proxy.seen if "a.txt" in seen.request.key], s3_proxy.seen


def test_a_folder_for_the_cache_that_can_not_be_made_costs_speed_only(tmp_path, finish, data, reference):
    (tmp_path / "file").write_text("no folder")
    run = finish(make_job(tmp_path, data, trainer__data__cache=str(tmp_path / "file" / "cache")), env=data.env)
    assert rig.check_complete(run, last=40)["weightsSha256"] == reference(trainer__steps=40)[0]
    assert "data is not cached" in run.stderr


def test_from_a_folder_to_a_bucket_the_contents_are_compared(tmp_path, launch, finish, data, reference):
    local = rig.make_job(tmp_path, **{**FIELDS, "trainer__steps": 400})
    (tmp_path / "data" / "zero").write_bytes(b"")
    killed_after_a_checkpoint(launch, local, None)
    run = finish(make_job(tmp_path, data, trainer__steps=400), env=data.env)
    assert run.code == 0, run.tail()
    assert run.the("resumed")["step"] >= 10
    assert run.the("complete")["weightsSha256"] == reference(trainer__steps=400)[0]


def test_from_a_folder_to_a_bucket_with_other_contents_is_refused(tmp_path, launch, finish, data):
    killed_after_a_checkpoint(launch, rig.make_job(tmp_path, **{**FIELDS, "trainer__steps": 400}), None)
    other_content(data)
    run = finish(make_job(tmp_path, data, trainer__steps=400), env=data.env)
    assert run.code == 3, run.tail()
    assert "not what" in run.stderr, run.stderr


def test_a_store_that_is_away_for_a_while_makes_training_wait_and_say_so(tmp_path, launch, data, s3_proxy):
    text = big_text(data)
    (tmp_path / "local" / "data").mkdir(parents=True)
    for name, content in text.items():
        (tmp_path / "local" / "data" / name).write_text(content)
    here = launch(rig.make_job(tmp_path / "local", **FIELDS))
    here.wait()
    run = launch(make_job(tmp_path, data, trainer__data__uri=f"{data.uri}/big", trainer__data__cacheBytes=1 << 20),
                 env=s3_proxy.environment)
    run.read_until("step", step=2)
    s3_proxy.script = faults.Always("busy")
    rig.until(lambda: len([1 for seen in s3_proxy.seen if seen.fault == "busy"]) > 20, "requests that were turned away", deadline_s=60)
    s3_proxy.script = faults.Quiet()
    run.wait()
    assert rig.check_complete(run, last=40)["weightsSha256"] == here.the("complete")["weightsSha256"]


def is_data(request):
    return request.method == "GET" and "/data/" in request.key and "list-type" not in request.query


# what a store or a wire may do to a read -> how often at most, for who waits
HARM = {"silence": 1, "reset": 3, "busy": 3, "page": 3, "cut-down": 4, "flip-down": 1, "short": 2, "long": 2, "lost-answer": 3,
        "half-head": 3, "slow": None, "skew": 1}


@pytest.mark.parametrize("kind", sorted(HARM))
def test_whatever_happens_to_a_read_training_has_the_right_samples(tmp_path, finish, data, reference, s3_proxy, kind):
    s3_proxy.script = faults.Always(kind, is_data, times=HARM[kind], pause_s=0.01)
    run = finish(make_job(tmp_path, data), env=s3_proxy.environment)
    assert rig.check_complete(run, last=40)["weightsSha256"] == reference(trainer__steps=40)[0]
    assert kind in [seen.fault for seen in s3_proxy.seen], "nothing was done to any read"


def test_a_byte_that_was_changed_on_its_way_is_told(tmp_path, finish, data, s3_proxy):
    s3_proxy.script = faults.Always("flip-down", is_data, times=1)
    run = finish(make_job(tmp_path, data), env=s3_proxy.environment)
    rig.check_complete(run, last=40)
    assert "data came with other bytes than the store has" in run.stderr


def test_how_long_training_waits_for_its_data_is_said(tmp_path, launch, data, s3_proxy):
    big_text(data)
    run = launch(make_job(tmp_path, data, trainer__data__uri=f"{data.uri}/big", trainer__data__cacheBytes=1 << 20),
                 env=s3_proxy.environment)
    run.read_until("step", step=2)
    s3_proxy.script = faults.Always("busy", lambda request: "/big/" in request.key)
    rig.until(lambda: "training waits for its data" in run.tail(), "a word about the store", deadline_s=120)
    s3_proxy.script = faults.Quiet()
    run.wait()
    rig.check_complete(run, last=40)
    assert "away_s=" in run.stderr and "the data's store answers again" in run.stderr


@pytest.mark.parametrize("words, env", [("bucket", {}), ("credentials", {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""})])
def test_data_that_can_not_be_listed_is_a_sentence(tmp_path, finish, data, words, env):
    job = make_job(tmp_path, data, trainer__data__uri="s3://no-such-bucket-here/x") if not env else make_job(tmp_path, data)
    run = finish(job, env={**data.env, **env})
    assert run.code == 2, run.tail()
    assert words in run.stderr, run.stderr
    assert not run.of("step")


def test_a_run_that_starts_anew_keeps_the_listing_of_its_own_data_only(tmp_path, finish, data, s3):
    """Both kinds of places for checkpoints; what is not ours in them stays."""
    for name, uri in (("folder", str(tmp_path / "checkpoints")), ("bucket", s3.uri)):
        fields = {"checkpoint__uri": uri, "trainer__steps": 4}
        assert finish(make_job(tmp_path / name, data, **fields), env=data.env).code == 0
        data.put(f"data/new-{name}.txt", rig.make_text(5000, seed=7).encode())
        again = finish(make_job(tmp_path / name, data, **fields), "--overwrite", env=data.env)
        assert again.code == 0, again.tail()
        kept = listings(tmp_path / "checkpoints") if name == "folder" else [n for n in s3.names() if n.startswith("data-")]
        assert len(kept) == 1, kept
