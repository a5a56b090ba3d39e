"""tools/text_to_shards.py: what it writes is what a job reads."""

import importlib
import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

import rig

TOOL = rig.ROOT / "tools/text_to_shards.py"


def tool(*arguments, env=None, python=sys.executable):
    return subprocess.run([python, str(TOOL), *map(str, arguments)], capture_output=True, text=True,
                          check=False, timeout=120, env={**os.environ, **(env or {})})


def made(*arguments, python=sys.executable):
    done = tool(*arguments, python=python)
    assert done.returncode == 0, done.stderr
    return done.stdout


def tokens_in(path, width, header):
    raw = path.read_bytes()
    if header:
        magic, version, count = struct.unpack_from("<3i", raw)
        assert (magic, version) == ({2: 20240520, 4: 20240801}[width], {2: 1, 4: 7}[width])
        assert raw[12:1024] == bytes(1012)
        raw = raw[1024:]
        assert count * width == len(raw)
    return list(struct.unpack(f"<{len(raw) // width}{'H' if width == 2 else 'I'}", raw))


@pytest.mark.parametrize("dtype, width", [("uint16", 2), ("uint32", 4)])
@pytest.mark.parametrize("header", ["llm.c", "none"])
def test_bytes_come_out_as_they_went_in(tmp_path, dtype, width, header):
    text = bytes(range(256)) * 5
    (tmp_path / "a").write_bytes(text[:700])
    (tmp_path / "b").write_bytes(text[700:])
    said = made("--bytes", "--dtype", dtype, "--header", header, "--shard-tokens", 500, "--output", tmp_path / "out",
                tmp_path / "a", tmp_path / "b")
    shards = sorted((tmp_path / "out").iterdir())
    assert [s.name for s in shards] == ["000000.bin", "000001.bin", "000002.bin"]
    tokens = [tokens_in(shard, width, header == "llm.c") for shard in shards]
    assert [len(t) for t in tokens] == [500, 500, 280]
    assert bytes(sum(tokens, [])) == text
    assert f"1280 tokens of 2 files in 3 shards in {tmp_path}/out; for the job: data.format Tokens{8 * width}" in said


def test_a_folder_is_taken_as_a_job_takes_it(tmp_path):
    data = tmp_path / "data"
    for name in ("b", "a/x", "a-b", ".hidden", "deep/.git/y", "Z"):
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        (data / name).write_text(f"<{name}>")
    (data / "link").symlink_to(data / "b")
    made("--bytes", "--header", "none", "--output", tmp_path / "out", data)
    assert bytes(tokens_in(tmp_path / "out/000000.bin", 2, False)) == b"<Z><a-b><a/x><b>"


@pytest.mark.parametrize("arguments, code, part", [
    (["--bytes", "nothing-there"], 3, "nothing-there: there is no such file"),
    (["--bytes", "empty"], 3, "no text"),
    (["--bytes", "--between", "<|endoftext|>", "text"], 2, "no special tokens"),
    (["--bytes", "--shard-tokens", "0", "text"], 2, "write a number from 1 to"),
    (["--tokenizer", "no.json", "text"], 2, "no.json: there is no such file"),
    (["text"], 2, "one of the arguments --tokenizer --bytes is required"),
])
def test_what_can_not_be_done_is_a_sentence(tmp_path, monkeypatch, arguments, code, part):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").write_text("")
    (tmp_path / "text").write_text("words")
    done = tool("--output", "out", *arguments)
    assert done.returncode == code and part in done.stderr, done.stderr


def test_shards_of_two_runs_are_never_mixed(tmp_path):
    (tmp_path / "text").write_text("words")
    made("--bytes", "--output", tmp_path / "out", tmp_path / "text")
    done = tool("--bytes", "--output", tmp_path / "out", tmp_path / "text")
    assert done.returncode == 2 and "not empty" in done.stderr
    assert len(list((tmp_path / "out").iterdir())) == 1


def test_without_a_library_there_is_a_sentence_and_a_code(tmp_path):
    """Stand-ins that can't be imported come first on the path, whatever is installed here."""
    (tmp_path / "text").write_text("words")
    (tmp_path / "tokenizer.json").write_text("{}")
    for name in ("tokenizers", "transformers"):
        (tmp_path / "lib" / name).mkdir(parents=True)
        (tmp_path / "lib" / name / "__init__.py").write_text("raise ImportError('not here')\n")
    done = tool("--tokenizer", tmp_path, "--output", tmp_path / "out", tmp_path / "text",
                env={"PYTHONPATH": str(tmp_path / "lib")})
    assert done.returncode == 77 and "neither tokenizers nor transformers is installed" in done.stderr, done.stderr
    assert not (tmp_path / "out").exists()


@pytest.fixture(name="tokenizers")
def library_of_that_python(tokenizers_python, monkeypatch):
    """The library that the tool finds in that Python, here."""
    site, = Path(tokenizers_python).parents[1].glob("lib/python3*/site-packages")
    monkeypatch.setattr(sys, "path", [*sys.path, str(site)])
    return importlib.import_module("tokenizers")


@pytest.fixture(name="trained")
def trained_tokenizer(tmp_path, tokenizers):
    """A byte-level BPE made on the spot: (path of its tokenizer.json, the library's object)."""
    made_here = tokenizers.Tokenizer(tokenizers.models.BPE())
    made_here.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made_here.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=400, special_tokens=["<|endoftext|>"], show_progress=False,
                                             initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet())
    made_here.train_from_iterator([rig.make_text(20000)], trainer)
    made_here.save(str(tmp_path / "tokenizer.json"))
    return tmp_path / "tokenizer.json", made_here


def test_a_tokenizer_s_numbers_are_written_and_decode_to_the_text(tmp_path, trained, tokenizers_python):
    path, tokenizer = trained
    texts = [rig.make_text(3000, seed=5), "Größe, naïve 数字\n" + rig.make_text(500, seed=6)]
    for i, text in enumerate(texts):
        (tmp_path / f"{i}.txt").write_text(text)
    said = made("--tokenizer", path, "--between", "<|endoftext|>", "--output", tmp_path / "out", tmp_path / "0.txt",
                tmp_path / "1.txt", python=tokenizers_python)
    tokens = tokens_in(tmp_path / "out/000000.bin", 2, True)
    border = tokens.index(tokenizer.token_to_id("<|endoftext|>"))
    assert tokens[:border] == tokenizer.encode(texts[0], add_special_tokens=False).ids
    assert tokenizer.decode(tokens[border + 1:]) == texts[1]
    assert f"model.vocabulary {tokenizer.get_vocab_size()}" in said


def test_text_that_is_none_and_tokens_that_are_unknown_are_named(tmp_path, trained, tokenizers_python):
    (tmp_path / "text").write_bytes(b"good \xff bad")
    done = tool("--tokenizer", trained[0], "--output", tmp_path / "out", tmp_path / "text", python=tokenizers_python)
    assert done.returncode == 3 and "byte 5 is not UTF-8" in done.stderr, done.stderr
    done = tool("--tokenizer", trained[0], "--between", "<nope>", "--output", tmp_path / "two", tmp_path / "text", python=tokenizers_python)
    assert done.returncode == 2 and "no such token" in done.stderr, done.stderr


def test_a_vocabulary_that_does_not_fit_is_refused_and_wide_by_default(tmp_path, tokenizers_python):
    words = {f"w{i}": i for i in range(70000)}
    (tmp_path / "tokenizer.json").write_text(json.dumps({
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
        "pre_tokenizer": {"type": "Whitespace"}, "post_processor": None, "decoder": None,
        "model": {"type": "WordLevel", "vocab": words, "unk_token": "w0"}}))
    (tmp_path / "text").write_text("w69999 w1 w65536")
    done = tool("--tokenizer", tmp_path, "--dtype", "uint16", "--output", tmp_path / "out", tmp_path / "text", python=tokenizers_python)
    assert done.returncode == 2 and "do not fit" in done.stderr, done.stderr
    made("--tokenizer", tmp_path, "--output", tmp_path / "wide", tmp_path / "text", python=tokenizers_python)
    assert tokens_in(tmp_path / "wide/000000.bin", 4, True) == [69999, 1, 65536]
