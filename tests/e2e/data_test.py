"""What data are and whether they still are that: hashes of a folder, its index, sizes and times that are trusted, and bytes that change
unseen. What is made here is a few KB."""

import hashlib
import json
import os
import struct
import subprocess

import pytest
import rig

CHUNK = 16 << 20
LONG = 1_000_000  # steps: such a run ends by what is found


def number(value):
    return struct.pack("<q", value)


def files_of(data):
    return sorted((str(path.relative_to(data)).encode(), path) for path in data.rglob("*") if path.is_file() and not path.name.startswith("."))


def tree(data):
    """The identity that docs/file-formats.md describes, of text."""
    files = files_of(data)
    root = hashlib.sha256(number(-2) + number(CHUNK) + number(1) + number(len(files)))
    for name, path in files:
        content = path.read_bytes()
        root.update(number(len(name)) + name + number(len(content)))
        for at in range(0, len(content), CHUNK):
            root.update(hashlib.sha256(content[at:at + CHUNK]).digest())
    return root.hexdigest()


def chain(data):
    """That of checkpoints from before the tree."""
    whole = hashlib.sha256()
    for name, path in files_of(data):
        content = path.read_bytes()
        whole.update(number(len(name)) + name + number(len(content)) + content)
    return whole.hexdigest()


def change_unseen(path):
    """Another byte, and the time of the last change as it was."""
    before = path.stat()
    with open(path, "r+b") as file:
        file.seek(100)
        byte = file.read(1)[0]
        file.seek(100)
        file.write(bytes([byte ^ 1]))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def index(data):
    made = subprocess.run([rig.BIN / "ringmaster", "data", "index", data], capture_output=True, text=True, timeout=rig.DEADLINE_S, check=True)
    return made.stdout


def identity(job):
    """That of the last weights."""
    return json.loads((job.parent / "checkpoints" / "final" / "manifest.json").read_text())["data"]["sha256"]


def seal(manifest, text):
    """Its hash of itself, made anew."""
    body = text[:text.rindex(',\n  "manifestSha256"')]
    manifest.write_text(body + f',\n  "manifestSha256": "{hashlib.sha256(body.encode()).hexdigest()}"\n}}\n')


def test_the_identity_is_the_tree_that_the_docs_describe(tmp_path, finish):
    job = rig.make_job(tmp_path, trainer__steps=5)
    assert finish(job).code == 0
    assert identity(job) == tree(tmp_path / "data")


def test_a_checkpoint_from_before_the_tree_is_gone_on_from(tmp_path, launch, finish, reference):
    job = rig.make_job(tmp_path)
    run = launch(job)
    run.read_until("step", step=10)
    run.interrupt()
    assert run.wait() == 130, run.tail()
    (path,) = (tmp_path / "checkpoints").glob("step-*/manifest.json")
    text = path.read_text()
    assert tree(tmp_path / "data") in text
    seal(path, text.replace(tree(tmp_path / "data"), chain(tmp_path / "data")))
    again = finish(job)
    stopped = run.the("interrupted")["step"]
    assert rig.check_complete(again, first=stopped + 1)["weightsSha256"] == reference()[0]
    assert identity(job) == chain(tmp_path / "data"), "a job keeps that of what it goes on from"


def test_content_finds_at_the_start_what_times_do_not_see(tmp_path, launch):
    job = rig.make_job(tmp_path, trainer__steps=5)
    assert f"written to {tmp_path}/data/.ringmaster-index" in index(tmp_path / "data")
    change_unseen(tmp_path / "data" / "a.txt")
    run = launch(job)
    assert run.wait() == 3, run.stderr
    assert f"{tmp_path}/data/a.txt: chunk 0 (from byte 0) is not what its index says; bring it back" in run.stderr, run.tail()
    assert "ringmaster data index" in run.stderr, "what to do"
    run = launch(rig.make_job(tmp_path, trainer__data__trust="Times"))
    run.read_until("ringFormed")  # it may be found as soon as training begins


def test_who_reads_a_chunk_that_differs_as_its_share_is_named(tmp_path, launch):
    job = rig.make_job(tmp_path, workers__target=2, workers__min=2, trainer__data__trust="Share")
    index(tmp_path / "data")
    change_unseen(tmp_path / "data" / "more" / "b.txt")
    run = launch(job)
    assert run.wait() == 3, run.stderr
    said = [line for line in run.stderr.splitlines() if "/data/more/b.txt: chunk 0 (from byte 0) is not what its index says" in line]
    assert said and any("trainer 1: " in line for line in said) and not any("trainer 0: " in line for line in said), run.tail()
    index(tmp_path / "data")
    run = launch(job)
    assert run.wait() == 0, run.tail()


def test_what_times_do_not_see_is_found_while_training(tmp_path, launch):
    job = rig.make_job(tmp_path, workers__target=2, trainer__steps=LONG, trainer__data__trust="Times")
    index(tmp_path / "data")
    change_unseen(tmp_path / "data" / "more" / "b.txt")
    run = launch(job)
    assert run.wait() == 3, run.stderr
    assert "/data/more/b.txt: chunk 0 (from byte 0) is not what it was; bring it back" in run.stderr, run.tail()
    assert run.the("failed")["exitCode"] == 3


def test_a_byte_that_changes_while_training_is_found(tmp_path, launch):
    run = launch(rig.make_job(tmp_path, trainer__steps=LONG))
    run.read_until("step", step=2)
    change_unseen(tmp_path / "data" / "a.txt")
    assert run.wait() == 3, run.stderr
    assert "/data/a.txt: chunk 0 (from byte 0) is not what it was; bring it back" in run.stderr, run.tail()


@pytest.mark.parametrize("harm, part", [
    (lambda raw: raw[:50], "it is cut short"), (lambda raw: b"x" + raw[1:], "this is no index of data"),
    (lambda raw: raw[:60] + bytes([raw[60] ^ 1]) + raw[61:], "it was changed"), (lambda raw: raw[:8] + b"\x02" + raw[9:], "newer release"),
])
def test_an_index_that_is_none_is_refused_with_what_to_do(tmp_path, launch, harm, part):
    job = rig.make_job(tmp_path, trainer__steps=5, trainer__data__trust="Times")
    index(tmp_path / "data")
    path = tmp_path / "data" / ".ringmaster-index"
    path.write_bytes(harm(path.read_bytes()))
    run = launch(job)
    assert run.wait() == 3, run.stderr
    assert str(path) in run.stderr and part in run.stderr and "ringmaster data index" in run.stderr, run.stderr
    run = launch(rig.make_job(tmp_path, trainer__steps=5))
    assert run.wait() == 0, f"content needs none: {run.stderr}"
