"""The contract of `ringmaster-snapshot`: commands, exit codes, sentences, and what becomes of a process. It runs against the stand-in of the tests,
which has CRIU's place alone taken (tests/snapshot_rig), and, where libcriu is and it was built, against the real one."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import rig

STANDIN = rig.BIN.parent / "tests/standin/ringmaster-snapshot"
# Of a build where libcriu is, or of a bundle that is looked at (tests/cluster/snapshots_image_test.py).
REAL = Path(os.environ.get("RINGMASTER_TRIED_SNAPSHOT", rig.BIN / "ringmaster-snapshot"))
PROGRAMS = [pytest.param(program, id=name) for name, program in (("standin", STANDIN), ("criu", REAL)) if program.exists()]
TOOL = rig.BIN.parent / "tests/frozen_tool"
STORY = rig.ROOT / "tests/snapshot_rig/story.py"


@pytest.fixture(params=PROGRAMS)
def tell(request, tmp_path):
    """tell(story): what was seen."""
    def run(story, images=None):
        images = images or tmp_path / "images"
        images.mkdir(exist_ok=True)
        user = [] if os.geteuid() == 0 else ["--map-root-user"]
        done = subprocess.run(["unshare", *user, "--mount", "--pid", "--fork", "--mount-proc", sys.executable, STORY, request.param, story, images],
                              capture_output=True, text=True, timeout=rig.DEADLINE_S, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)
    return run


def test_there_is_one_to_try():
    assert STANDIN.exists()


def test_a_process_that_was_frozen_goes_on_with_its_next_number_and_its_pid(tell):
    seen = tell("moved")
    assert seen["dumped"]["code"] == 0 and seen["signal"] == 9, seen
    assert set(json.loads(seen["dumped"]["out"])) == {"frozenUs", "freezingUs", "writtenUs", "bytes"}
    assert seen["restored"]["code"] == 0 and json.loads(seen["restored"]["out"]) == {"pid": seen["pid"]}, seen
    assert seen["numbers"] == list(range(len(seen["numbers"]))) and len(seen["numbers"]) >= seen["before"] + 5
    assert seen["parent"] == 1, "it is a child of whoever reaps orphans"


def test_one_that_was_left_running_runs_on_and_lives_again_from_where_it_was(tell):
    seen = tell("left_running")
    assert seen["dumped"]["code"] == 0, seen
    assert seen["first"] == list(range(len(seen["first"])))
    assert seen["taken"]["code"] == 4 and "ringmaster-snapshot: the restore failed: criu: " in seen["taken"]["err"], "its pid is not free"
    assert seen["restored"]["code"] == 0, seen
    again = seen["again"]
    assert seen["at"] <= again[0] < len(seen["first"]) and again == list(range(again[0], again[0] + len(again)))


def test_what_is_named_comes_back_as_it_was_with_the_memory_it_belongs_to(tell):
    seen = tell("named")
    assert seen["dumped"]["code"] == 0 and seen["restored"]["code"] == 0, seen
    assert seen["log"] == list(range(len(seen["log"]))), "no line twice, and none left out"
    assert seen["numbers"][0] > 0 and seen["log"][-1] >= seen["numbers"][-1] - 1, seen


def test_a_file_that_is_open_for_writing_travels_by_itself_where_it_is_the_containers_own(tell):
    seen = tell("by_itself")
    assert seen["dumped"]["code"] == 0, seen
    if seen["own"]:  # as it is wherever /tmp is no mount
        assert seen["restored"]["code"] == 0 and seen["log"] == list(range(len(seen["log"]))), seen
    else:
        assert not seen["log"] or seen["log"][0] > 0, "a volume's files stay where they are"


def said(done, code, sentence):
    """libcriu says things of its own before it."""
    assert done["code"] == code and done["err"].splitlines()[-1].startswith(f"ringmaster-snapshot: {sentence}"), done


def test_what_can_not_be_done_is_refused_by_its_code_and_sentence(tell):
    seen = tell("refused")
    said(seen["words"], 2, "--pid N is missing: the process whose tree is dumped")
    said(seen["path"], 2, "--path work: write it from the root, as /tmp/work")
    said(seen["no_room"], 4, "there is no room for a snapshot: files of ")
    said(seen["folder"], 2, "--images FOLDER is missing: where the snapshot lies")
    assert seen["odd"]["code"] == 2 and seen["none"]["code"] == 2 and "usage: ringmaster-snapshot check" in seen["none"]["err"]
    assert "there is no process " in seen["nobody"]["err"] and seen["nobody"]["code"] == 4, seen["nobody"]
    said(seen["no_images"], 3, "this folder is no snapshot: ringmaster-streams can't be read")
    said(seen["no_folder"], 4, "can't open ")
    if seen["ringed"]:  # a kernel may give none
        assert seen["ringed"]["code"] == 4 and "io_uring cannot be in a snapshot; tell the program to do without it" in seen["ringed"]["err"]
    said(seen["no_criu"], 4, "there is no criu that runs here (")
    check = seen["check"]
    assert (check["code"], check["err"]) == (0, ""), check
    assert re.fullmatch(r"a process was frozen and lives again: snapshots work here \(criu [4-9]\.\d+\.\d+\)\n", check["out"]), check


def test_a_gpu_is_refused_by_name(tell):
    seen = tell("gpu")["dumped"]
    assert seen["code"] == 4 and "has /dev/nvidia0 open: a GPU's state cannot be in a snapshot; remove checkpoint.process from the job" in seen["err"]


def test_rights_that_are_missing_are_named(tell):
    said(tell("without_rights")["check"], 4, "this container may not freeze processes: it lacks the capabilities SYS_PTRACE, CHECKPOINT_RESTORE, which its "
         "securityContext has to add, to a container that runs as uid 0")


def test_a_criu_that_is_too_old_is_refused(tmp_path):
    """The stand-in alone: nobody has an old one beside the one that works."""
    old = tmp_path / "criu"
    old.write_text("criu 3.17\n")
    done = subprocess.run([STANDIN, "check", "--criu", old], capture_output=True, text=True, check=False)
    sentence = "ringmaster-snapshot: criu is 3.17, which is too old: a snapshot wants 4.1 or later, as Debian 13 has it\n"
    assert done.returncode == 4 and done.stderr == sentence
    old.chmod(0o755)
    beside = tmp_path / "ringmaster-snapshot"
    shutil.copy(STANDIN, beside)
    done = subprocess.run([beside, "check"], capture_output=True, text=True, check=False)
    assert done.returncode == 4 and done.stderr == sentence, "the one beside it goes before the one in PATH, as in the bundle"


def tool(*words, env=None):
    return subprocess.run([TOOL, *map(str, words)], capture_output=True, text=True, timeout=rig.DEADLINE_S, check=False, env={**os.environ, **(env or {})})


def checkpoint(verb, store, *words):
    return subprocess.run([rig.BIN / "ringmaster", "checkpoint", verb, store, *words], capture_output=True, text=True, timeout=rig.DEADLINE_S,
                          check=False)


def publish(images, store, number, key="mine", keep=3):
    done = tool("publish", store, images, number, key, keep)
    assert done.returncode == 0, done.stderr


def fetch(store, images, key="mine"):
    images.mkdir()
    return tool("fetch", store, images, key)


def change_byte(path, at):
    with path.open("r+b") as file:
        file.seek(at)
        (byte,) = file.read(1)
        file.seek(at)
        file.write(bytes([byte ^ 1]))


def test_a_process_goes_through_the_store_and_goes_on_elsewhere(tell, tmp_path):
    store = tmp_path / "store"
    first = tell("frozen")
    publish(tmp_path / "images", store, 1)
    fetched = fetch(store, tmp_path / "elsewhere")
    assert fetched.returncode == 0 and fetched.stdout == "1\n", fetched.stderr
    second = tell("thawed", tmp_path / "elsewhere")
    assert second["restored"]["code"] == 0, second
    numbers = first["numbers"] + second["numbers"]
    assert numbers == list(range(len(numbers)))


@pytest.fixture
def images(tmp_path):
    """A folder with what could be a snapshot."""
    made = tmp_path / "made"
    made.mkdir()
    (made / "core-1000.img").write_bytes(os.urandom(3000))
    (made / "pages-1.img").write_bytes(bytes(5 << 20))
    return made


def test_a_changed_byte_and_another_jobs_signature_are_never_restored(images, tmp_path):
    store = tmp_path / "store"
    for number in (1, 2, 3):
        publish(images, store, number, keep=9)
    publish(images, store, 4, key="theirs", keep=9)
    assert fetch(store, tmp_path / "a").stdout == "3\n"
    change_byte(store / "process-00000003/manifest.json", 100)
    assert fetch(store, tmp_path / "b").stdout == "2\n"
    change_byte(next((store / "process-00000002").glob("image-*")), 3500)
    last = fetch(store, tmp_path / "c")
    assert last.stdout == "1\n" and "process-00000004: it was not sealed with this job's key" in last.stderr, last.stderr
    assert (tmp_path / "c/core-1000.img").read_bytes() == (images / "core-1000.img").read_bytes()
    refused = fetch(store, tmp_path / "d", key="a third")
    assert refused.returncode == 2 and "checkpoint.processKeyRef" in refused.stderr, refused.stderr


def test_the_commands_for_checkpoints_know_snapshots_of_processes(images, tmp_path):
    store = tmp_path / "store"
    for number in (1, 2, 3):
        publish(images, store, number)
    listed = checkpoint("list", store)
    assert listed.returncode == 0 and "process-00000003          3" in listed.stdout and "processes" in listed.stdout, listed.stdout
    sound = checkpoint("verify", store)
    assert sound.returncode == 0 and sound.stdout.count("  verified, not its seal") == 3, sound.stdout
    assert "whose they are only a job's key tells" in sound.stderr
    change_byte(next((store / "process-00000002").glob("image-*")), 3500)
    change_byte(store / "process-00000001/manifest.json", 100)
    told = checkpoint("verify", store, "--output", "json")
    assert told.returncode == 3, told.stderr
    assert {one["name"]: one["verified"] for one in json.loads(told.stdout)} == {"process-00000003": True, "process-00000002": False, "process-00000001": False}
    assert [one["step"] for one in json.loads(checkpoint("list", store, "--output", "json").stdout)] == [3, 2]
    assert checkpoint("export", store, tmp_path / "model", "--name", "process-00000003").returncode == 2
    asked = checkpoint("delete", store, "--name", "process-00000002")
    assert asked.returncode == 2 and (store / "process-00000002").exists()
    assert checkpoint("delete", store, "--name", "process-00000002", "--yes").returncode == 0
    assert not (store / "process-00000002").exists() and (store / "process-00000003").exists()
    assert checkpoint("delete", store, "--all", "--yes").returncode == 0
    assert not list(store.glob("process-*"))


def test_a_bucket_gives_back_what_it_took_in_pieces_and_keeps_no_more_than_it_is_to(images, tmp_path, s3):
    (images / "pages-2.img").write_bytes(os.urandom(40 << 20))  # three pieces
    for number in (1, 2, 3):
        done = tool("publish", s3.uri, images, number, "mine", 2, env=s3.env)
        assert done.returncode == 0, done.stderr
    assert s3.checkpoints() == ["process-00000002", "process-00000003"] and not s3.uploads()
    again = tool("publish", s3.uri, images, 3, "mine", 2, env=s3.env)
    assert again.returncode == 4 and "somebody else has published that number" in again.stderr, again.stderr
    there = tmp_path / "there"
    there.mkdir()
    fetched = tool("fetch", s3.uri, there, "mine", env=s3.env)
    assert fetched.returncode == 0 and fetched.stdout == "3\n", fetched.stderr
    assert all((there / file.name).read_bytes() == file.read_bytes() for file in images.iterdir())
    name = next(name for name in s3.names("process-00000003/") if "image-" in name)
    body = bytearray(s3.get(name))
    body[20 << 20] ^= 1
    s3.put(name, bytes(body))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    older = tool("fetch", s3.uri, elsewhere, "mine", env=s3.env)
    assert older.stdout == "2\n" and "piece 2 of 3" in older.stderr, older.stderr


def test_who_was_given_up_publishes_nothing_in_a_place_that_is_anothers_now(images, tmp_path, s3):
    assert tool("publish", s3.uri, images, 1, "mine", 3, env=s3.env).returncode == 0
    with subprocess.Popen([TOOL, "hold", s3.uri, "another"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **s3.env}) as holder:
        assert holder.stdout.readline() == "held\n"
        late = tool("publish", s3.uri, images, 2, "mine", 3, env=s3.env)
        assert late.returncode == 4 and s3.checkpoints() == ["process-00000001"], late.stderr
        holder.stdin.close()
        assert holder.wait(timeout=rig.DEADLINE_S) == 0
    (tmp_path / "there").mkdir()
    assert tool("fetch", s3.uri, tmp_path / "there", "mine", env=s3.env).stdout == "1\n"
