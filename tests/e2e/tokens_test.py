"""Token shards as training data: the same tokens give the same bits, and shards that can't be right are refused."""

import json
import re
import shutil
import struct
import subprocess
import urllib.request

import pytest

import rig

STEPS = 40
TOKENS = 20000
LLM_C = {2: (20240520, 1), 4: (20240801, 7)}


def shard(tokens, width, header=False):
    start = struct.pack("<256i", *LLM_C[width], len(tokens), *[0] * 253) if header else b""
    return start + struct.pack(f"<{len(tokens)}{'H' if width == 2 else 'I'}", *tokens)


def make_job(folder, shards, **fields):
    """shards: {name: bytes} below the data folder."""
    (folder / "data").mkdir(parents=True)
    for name, content in shards.items():
        (folder / "data" / name).write_bytes(content)
    return rig.make_job(folder, data=False, **{"trainer__steps": STEPS, **fields})


def some_tokens(vocabulary, count=TOKENS):
    """Numbers with something to learn in them that use the whole vocabulary."""
    return [(7 * i + i // 50) % vocabulary for i in range(count)]


def the_hash(run, last=STEPS):
    return rig.check_complete(run, last=last)["weightsSha256"]


@pytest.mark.sanitized
def test_shards_give_one_hash_for_any_number_of_workers_and_any_cut(tmp_path, finish):
    tokens = some_tokens(300)
    half = TOKENS // 2 + 1
    jobs = {
        "one": ({"a.bin": shard(tokens, 2)}, {"workers__target": 1, "trainer__data__format": "Tokens16"}),
        "three": ({"a.bin": shard(tokens[:half], 2, header=True), "b.bin": shard(tokens[half:], 2, header=True)},
                  {"workers__target": 3}),
        "wide": ({"a.bin": shard(tokens, 4, header=True)}, {"workers__target": 2}),
        "killed": ({"a.bin": shard(tokens, 4)}, {"workers__target": 3, "trainer__data__format": "Tokens32"}),
    }
    hashes = {}
    for name, (shards, fields) in jobs.items():
        drill = ["--drill", "kill:1@10"] if name == "killed" else []
        run = finish(make_job(tmp_path / name, shards, trainer__model__vocabulary=300, **fields), *drill)
        hashes[name] = the_hash(run)
    assert len(set(hashes.values())) == 1, hashes


def test_a_model_of_tokens_that_are_no_bytes_does_not_write_them_as_if_they_were(tmp_path, finish):
    job = make_job(tmp_path, {"a.bin": shard(some_tokens(300), 2)}, trainer__data__format="Tokens16", trainer__model__vocabulary=300,
                   trainer__steps=4)
    rig.check_complete(finish(job), last=4)
    asked = subprocess.run([str(rig.BIN / "ringmaster"), "generate", str(tmp_path / "checkpoints/final"), "--tokens", "5"], capture_output=True,
                           text=True, check=False, timeout=rig.DEADLINE_S)
    assert asked.returncode == 3 and not asked.stdout, asked
    assert "its vocabulary of 300 is not one of bytes" in asked.stderr and "no tokenizer.json" in asked.stderr, asked


def script(python, name, *arguments):
    return subprocess.run([python, rig.ROOT / name, *map(str, arguments)], capture_output=True, check=True, timeout=rig.DEADLINE_S).stdout.decode()


@pytest.fixture(name="tokenized")
def job_of_bpe_tokens(tmp_path, tokenizers_python):
    """A job of shards that a small tokenizer of GPT-2's kind made; it names the tokenizer."""
    text = tmp_path / "text.txt"
    text.write_text(rig.make_text(40000) + " Zürich, 東京 it's 1234.\n")
    vocabulary = int(script(tokenizers_python, "tests/reference/make_tokenizer.py", tmp_path / "tokenizer.json", 330, text))
    script(tokenizers_python, "tools/text_to_shards.py", "--tokenizer", tmp_path / "tokenizer.json", "--header", "llm.c", "--output", tmp_path / "data", text)
    return rig.make_job(tmp_path, data=False, trainer__model__vocabulary=vocabulary, trainer__model__context=64, trainer__data__tokenizer="tokenizer.json",
                        trainer__steps=STEPS)


def test_what_a_job_leaves_to_read_its_tokens_by_is_what_tokenizers_reads(tmp_path, tokenized, finish, tokenizers_python):
    """Of tokens its tokenizer, as it was named; of text one of bytes."""
    rig.check_complete(finish(tokenized), last=STEPS)
    assert int(script(tokenizers_python, "tests/reference/check_tokenizer.py", tmp_path / "checkpoints/final")) > 256
    rig.check_complete(finish(rig.make_job(tmp_path / "text", trainer__steps=4)), last=4)
    assert int(script(tokenizers_python, "tests/reference/check_tokenizer.py", tmp_path / "text/checkpoints/final")) == 256


def test_a_model_of_tokens_takes_its_tokenizer_along_and_writes_what_transformers_writes(tmp_path, tokenized, finish, reference_python):
    rig.check_complete(finish(tokenized), last=STEPS)
    final = tmp_path / "checkpoints/final"
    assert (final / "tokenizer.json").read_bytes() == (tmp_path / "tokenizer.json").read_bytes()
    named = [entry["name"] for entry in json.loads((final / "manifest.json").read_text())["files"]]
    assert {"tokenizer.json", "tokenizer_config.json", "generation_config.json"} <= set(named)
    prompt = "the ring isn't  Zürich, 東京 1234 "
    ours = subprocess.run([rig.BIN / "ringmaster", "generate", final, "--prompt", prompt, "--tokens", "20", "--temperature", "0"], capture_output=True,
                          timeout=rig.DEADLINE_S, check=True).stdout.decode()
    theirs = script(reference_python, "tests/reference/write_with_transformers.py", final, prompt, 20)
    assert ours == theirs + "\n" and len(ours) > len(prompt) + 20, "more than a letter a token"

    tokenizer = json.loads((final / "tokenizer.json").read_text())
    tokenizer["model"]["type"] = "Unigram"
    (final / "tokenizer.json").write_text(json.dumps(tokenizer))
    other = subprocess.run([rig.BIN / "ringmaster", "generate", final], capture_output=True, text=True, timeout=rig.DEADLINE_S, check=False)
    assert other.returncode == 3 and "its model is Unigram, and generate knows BPE alone" in other.stderr and not other.stdout


@pytest.mark.parametrize("content, fields, code, part", [
    (None, {}, 3, "spec.trainer.data.tokenizer: there is no file file://"),
    ("[1", {}, 3, "spec.trainer.data.tokenizer (file://"),
    ("{}", {}, 3, "it has no model.vocab; write the tokenizer.json"),
    (json.dumps({"model": {"vocab": {"a": 0, "b": 1, "c": 1}}}), {}, 3, "two tokens have the number 1"),
    (json.dumps({"model": {"vocab": {"a": 0, "b": -1}}}), {}, 3, "the token b has no number, or none that can be one"),
    (json.dumps({"model": {"vocab": {str(i): i for i in range(301)}}}), {}, 3, "it has 301 tokens, but spec.trainer.model.vocabulary is 300"),
    (json.dumps({"model": {"vocab": {"a": 0}}, "added_tokens": [{"id": 300, "content": "<pad>"}]}), {}, 3, "it has 301 tokens, but"),
    ("{}", {"trainer__data__format": "Text"}, 2, "text has bytes for tokens, which need none; leave it out"),
])
def test_a_tokenizer_that_can_not_be_right_is_refused_before_anything_is_trained(tmp_path, finish, content, fields, code, part):
    if content:
        (tmp_path / "own.json").write_text(content)
    fields = {"trainer__data__format": "Tokens16", "trainer__data__tokenizer": "own.json", "trainer__model__vocabulary": 300, **fields}
    run = finish(make_job(tmp_path, {"a.bin": shard(some_tokens(300), 2)}, **fields))
    assert run.code == code and part in run.stderr, run.tail()
    assert not run.of("step")


def test_a_tokenizer_beside_text_that_is_found_out_to_be_text_is_refused(tmp_path, finish):
    (tmp_path / "own.json").write_text(json.dumps({"model": {"vocab": {"a": 0}}}))
    run = finish(rig.make_job(tmp_path, trainer__data__tokenizer="own.json"))
    assert run.code == 2 and "but the data are text, which has bytes for tokens and needs none; leave it out" in run.stderr, run.tail()


def test_weights_are_there_though_their_tokenizer_has_gone(tmp_path, launch):
    own = tmp_path / "own.json"
    own.write_text(json.dumps({"model": {"vocab": {"a": 0}}}))
    run = launch(make_job(tmp_path, {"a.bin": shard(some_tokens(300), 2)}, trainer__data__format="Tokens16", trainer__data__tokenizer="own.json",
                          trainer__model__vocabulary=300))
    run.read_until("step", step=1)
    own.unlink()
    assert run.wait() == 0, run.tail()
    assert (tmp_path / "checkpoints/final/model.safetensors").exists() and not (tmp_path / "checkpoints/final/tokenizer.json").exists()
    assert "the last weights have no tokenizer beside them" in run.stderr
    again = launch(tmp_path / "job.yaml")
    assert again.wait() == 0 and "there is no file" not in again.stderr, again.tail()


def test_a_model_of_text_writes_whatever_room_its_vocabulary_has(tmp_path, finish):
    rig.check_complete(finish(rig.make_job(tmp_path, trainer__steps=4, trainer__model__vocabulary=300)), last=4)
    asked = subprocess.run([str(rig.BIN / "ringmaster"), "generate", str(tmp_path / "checkpoints/final"), "--tokens", "5"], capture_output=True,
                           text=True, check=False, timeout=rig.DEADLINE_S)
    assert asked.returncode == 0, asked


def test_byte_shards_of_a_text_train_as_the_text_does(tmp_path, finish):
    text = rig.make_text(TOKENS).encode()
    as_text = finish(make_job(tmp_path / "text", {"a.txt": text}))
    as_shards = finish(make_job(tmp_path / "shards", {"a.bin": shard(list(text), 2, header=True)}, workers__target=2))
    assert the_hash(as_text) == the_hash(as_shards)
    losses = [[event["loss"] for event in run.of("step")] for run in (as_text, as_shards)]
    assert losses[0] == losses[1]


def test_the_manifest_names_the_data_and_the_ring(tmp_path, finish):
    content = shard(some_tokens(256), 2, header=True)
    run = finish(make_job(tmp_path, {"a.bin": content, "b.bin": content}))
    folder = rig.folder_of(rig.check_complete(run, last=STEPS)["uri"])
    manifest = json.loads((folder / "manifest.json").read_text())
    ring = run.of("ringFormed")[-1]
    assert (manifest["data"]["files"], manifest["data"]["bytes"]) == (2, 2 * len(content))
    assert (manifest["term"], manifest["generation"]) == (ring["term"], ring["generation"])
    compared = manifest["compared"]
    compared = json.loads(compared) if isinstance(compared, str) else compared
    assert compared["trainer.data.format"] == "Tokens16", "what Auto turned out to mean"


def test_a_resume_goes_on_with_the_same_tokens_only(tmp_path, finish):
    tokens = some_tokens(256)
    fields = {"checkpoint__everySteps": 10}
    first = finish(make_job(tmp_path, {"a.bin": shard(tokens, 2, header=True)}, trainer__steps=20, **fields))
    rig.check_complete(first, last=20)
    shutil.rmtree(tmp_path / "checkpoints/final")
    shutil.rmtree(tmp_path / "checkpoints/step-00000020", ignore_errors=True)
    job = tmp_path / "job.yaml"
    again = finish(job, "--set", "spec.trainer.data.format=Tokens16")
    assert again.code == 0, again.tail()
    assert again.the("resumed")["step"] == 10, again.tail()
    shutil.rmtree(tmp_path / "checkpoints/final")
    (tmp_path / "data/a.bin").write_bytes(shard(tokens[:-1] + [0], 2, header=True))
    other = finish(job)
    assert other.code == 3 and "is not what" in other.stderr, other.stderr


@pytest.mark.parametrize("shards, fields, part", [
    ({"a.bin": shard(some_tokens(256), 2)}, {}, "a.bin: has no header that says how wide its tokens are"),
    ({"a.bin": shard(some_tokens(256), 2, True), "b.txt": b"x" * 9000}, {}, "the folder mixes token shards (a.bin)"),
    ({"a.bin": shard(some_tokens(256), 2)[:-1]}, {"trainer__data__format": "Tokens16"},
     "a.bin: 39999 bytes are no whole number of tokens of 2 bytes"),
    ({"a.bin": shard(some_tokens(256), 2, True)[:-2]}, {}, "a.bin: the header tells of 20000 tokens of 2 bytes"),
    ({"a.bin": shard(some_tokens(256), 2, True)}, {"trainer__data__format": "Tokens32"},
     "a.bin: its header says Tokens16, but spec.trainer.data.format is Tokens32"),
    ({"a.bin": shard(some_tokens(300), 2, True)}, {},
     "a.bin: token 259 at byte 1098 is not in the model's vocabulary of 256"),
])
def test_shards_that_can_not_be_right_are_refused_with_a_sentence(tmp_path, finish, shards, fields, part):
    run = finish(make_job(tmp_path, shards, **fields))
    assert run.code == 3, run.tail()
    assert part in run.stderr, run.tail()
    assert not run.left_over()


def test_the_wait_for_data_is_in_the_metrics(tmp_path, launch):
    run = launch(rig.make_job(tmp_path, workers__target=2, trainer__steps=100000))
    address = run.read_until("started")["address"]
    run.read_until("step", step=5)
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=20) as answer:
        metrics = answer.read().decode()
    assert "# TYPE ringmaster_data_wait_seconds_total counter" in metrics
    assert re.search(r"^ringmaster_data_wait_seconds_total \d", metrics, re.M), metrics
