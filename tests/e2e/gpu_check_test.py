"""tools/gpu-check: the pack that goes to a machine with a GPU, and what its run says; here on the stand-ins."""

import json
import os
import signal
import struct
import subprocess
import sys
from pathlib import Path

import pytest

import rig

sys.path.append(str(rig.ROOT / "tools"))
import gpu_check_pack  # noqa: E402  (its folder is on the path only now)
import gpu_check_run  # noqa: E402

TOOL = rig.ROOT / "tools/gpu-check"
PARTS = ["device", "kernels", "model", "train", "arena", "nccl", "sanitizer", "bench", "steps"]
STANDINS = rig.BIN.parent / "standin"

pytestmark = pytest.mark.skipif(not any((rig.BIN.parent / "cuda").glob("*.fatbin")),
                                reason="built without a CUDA compiler: tools/install-packages --cuda")


def environment(**more):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RINGMASTER_")}
    return {**kept, "RINGMASTER_BIN": str(rig.BIN), **more}


@pytest.fixture(name="pack", scope="module")
def a_pack(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pack") / "gpu-check"
    done = subprocess.run([sys.executable, TOOL, "pack", "--to", folder], env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def checked(pack, folder, *parts, **more):
    """(exit code, what it said, the file of all results) of the program that the pack carries along."""
    (folder / "tmp").mkdir()
    done = subprocess.run([sys.executable, pack / "gpu-check", "run", *parts, "--to", folder / "all.json"],
                          env=environment(TMPDIR=str(folder / "tmp"), **more), capture_output=True, text=True, check=False)
    assert not list((folder / "tmp").iterdir()), "it left files behind"
    return done.returncode, done.stdout + done.stderr, json.loads((folder / "all.json").read_text())


def check_told(said, told, parts):
    """That the file has all that a reader needs, whatever came out."""
    assert [part["part"] for part in told["parts"]] == parts, said
    for part in told["parts"]:
        if part["outcome"] == "left out":
            assert not part["results"] and f"left out: {part['part']}: {part['why']}" in said, said
        else:
            assert part["results"] and part["seconds"] >= 0, said
    assert told["on"] == "stand-ins" and told["why"] and said.startswith("on stand-ins, which say nothing of a GPU"), said
    assert told["found"]["gpu"] == "Stand-in GPU" and told["found"]["cublasLtVersion"] == "13.0.2"
    assert told["pack"]["version"] and told["system"]["kernel"] and told["seconds"] > 0


def test_a_kernel_that_computes_wrong_is_named_and_nothing_else_is(pack, tmp_path):
    """One of attention's kernels does nothing the first time in each process."""
    parts = ["device", "kernels", "arena", "nccl", "sanitizer", "bench", "steps"]
    code, said, told = checked(pack, tmp_path, *parts, RINGMASTER_STANDIN_CUDA="seed=1,sms=1,skip:attend_keys_128@1")
    check_told(said, told, parts)
    assert code == 1 and told["counts"] == {"passed": 3, "failed": 1, "left out": 3}, said
    (wrong,) = [result for part in told["parts"] for result in part["results"] if result["outcome"] == "failed"]
    assert wrong["name"] == "attend_test: heads_may_share_keys_and_values" and f"FAILED kernels: {wrong['name']}" in said, said
    assert "attend_keys_128: other bits in order 1" in wrong["said"], wrong
    assert told["parts"][5]["results"][0]["values"]["graphs.exact.ms"] > 0, said


def test_a_run_on_the_standins_goes_through_all_its_parts(pack, tmp_path):
    code, said, told = checked(pack, tmp_path)
    check_told(said, told, PARTS)
    assert code == 0 and told["counts"] == {"passed": 6, "failed": 0, "left out": 3}, said
    (train,) = [part["results"] for part in told["parts"] if part["part"] == "train"]
    assert len(train) == 2 and train[1]["values"]["rings"] == [2, 1], train


def test_a_library_that_is_missing_is_a_sentence_and_what_needs_it_is_left_out(pack, tmp_path):
    code, said, told = checked(pack, tmp_path, "device", "model", RINGMASTER_CUDA_LIBRARY=str(STANDINS / "libcuda.so.1"),
                               RINGMASTER_CUBLASLT_LIBRARY="/nowhere/libcublasLt.so.13")
    assert code == 0 and told["on"] == "gpu", said
    device, model = told["parts"]
    assert device["outcome"] == "passed" and model["outcome"] == "left out", said
    assert model["why"].startswith("no cuBLASLt: /nowhere/libcublasLt.so.13 can't be loaded;"), model


def of_the_run(folder):
    """Names of living processes that have this folder for what is temporary, as all have that a run starts."""
    wanted, found = f"TMPDIR={folder}".encode(), []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.append((entry / "comm").read_text().strip())
        except OSError:
            continue
    return found


def test_a_run_that_is_ended_ends_what_it_started(pack, tmp_path):
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    with subprocess.Popen([sys.executable, pack / "gpu-check", "run", "train", "--to", tmp_path / "all.json"], stdout=subprocess.DEVNULL,
                          env=environment(TMPDIR=str(scratch))) as run:
        rig.until(lambda: any(name.startswith("ringmaster-trai") for name in of_the_run(scratch)), "a trainer is there", rig.DEADLINE_S)
        run.send_signal(signal.SIGTERM)
        assert run.wait(timeout=rig.DEADLINE_S) == 128 + signal.SIGTERM
    rig.until(lambda: not of_the_run(scratch), "nobody is left")
    assert not list(scratch.iterdir()) and not (tmp_path / "all.json").exists()


def test_a_run_that_is_told_to_end_again_and_again_ends_what_it_started(pack, tmp_path):
    """`timeout` signals its child and then the child's group: the second one came in the midst of the ending, and broke it off."""
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    with subprocess.Popen([sys.executable, pack / "gpu-check", "run", "train", "--to", tmp_path / "all.json"], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, env=environment(TMPDIR=str(scratch))) as run:
        rig.until(lambda: any(name.startswith("ringmaster-trai") for name in of_the_run(scratch)), "a trainer is there", rig.DEADLINE_S)
        def ends():
            run.send_signal(signal.SIGTERM)
            return run.poll() is not None
        rig.until(ends, "it ends", rig.DEADLINE_S)
        assert run.returncode == 128 + signal.SIGTERM
    rig.until(lambda: not of_the_run(scratch), "nobody is left")
    assert not list(scratch.iterdir()) and not (tmp_path / "all.json").exists()


def test_what_holds_a_killed_programs_output_open_is_waited_for_by_nobody(tmp_path, monkeypatch):
    """A grandchild in a session of its own, which reads until this test has closed what it reads from."""
    monkeypatch.setattr(gpu_check_run, "END_S", 0.1)
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    held = os.open(fifo, os.O_RDWR)
    check = gpu_check_run.Check.__new__(gpu_check_run.Check)
    check.left = lambda: 1.0
    try:
        code, _ = check.call(["sh", "-c", f"setsid cat <'{fifo}' & exec sleep 1000"], env=dict(os.environ))
    finally:
        os.close(held)
    assert code is None


def test_the_programs_of_a_pack_load_nothing_of_the_systems_folder(pack, tmp_path):
    """On a machine without libwebsockets its plugin is not there, and it is looked for in one folder, which is written in the library."""
    gpu_check_pack.unpack(pack, tmp_path / "files")
    with pytest.raises(AssertionError, match="is longer"):
        gpu_check_pack.use_plugin_of(tmp_path / "files", tmp_path)
    short = Path("/tmp") / f"gpu-{os.getpid()}"
    short.mkdir()
    try:
        gpu_check_pack.use_plugin_of(tmp_path / "files", short)
        (library,) = (tmp_path / "files/lib").glob("libwebsockets.so.*")
        assert gpu_check_pack.PLUGIN_FOLDER.encode() not in library.read_bytes() and str(short).encode() + b"\0" in library.read_bytes()
        assert (short / gpu_check_pack.PLUGIN).exists()
    finally:
        (short / gpu_check_pack.PLUGIN).unlink(missing_ok=True)
        short.rmdir()


def test_of_nccl_the_code_of_one_kind_of_gpu_is_carried(tmp_path):
    """A library with two fat binaries, each with code for two kinds."""
    def entry(kind, architecture, payload):
        return struct.pack("<HHIQIIII", kind, 1, 64, len(payload), 0, 0, 0, architecture).ljust(64, b"\0") + payload
    def fat(*entries):
        return struct.pack("<IHHQ", 0xba55ed50, 1, 16, len(b"".join(entries))) + b"".join(entries)
    whole = b"head" + fat(entry(2, 80, b"a" * 40), entry(2, 90, b"b" * 24)) + b"between" + fat(entry(1, 90, b"c" * 16), entry(2, 90, b"d" * 8))
    (tmp_path / "lib").write_bytes(whole)
    assert gpu_check_pack.keep_architecture(tmp_path / "lib", tmp_path / "small", 90) == 32
    assert (tmp_path / "small").read_bytes() == whole.replace(b"a" * 40, bytes(40)).replace(b"c" * 16, bytes(16))
    assert gpu_check_pack.keep_architecture(tmp_path / "lib", tmp_path / "small", 100) == 0


def test_a_pack_that_is_too_large_is_refused_and_a_folder_that_is_none_too(pack, tmp_path):
    assert gpu_check_pack.LIMIT_MIB == 60 and gpu_check_pack.hold_size(pack, gpu_check_pack.LIMIT_MIB) > 10
    with pytest.raises(gpu_check_pack.Refused, match=r"the pack has \d+\.\d MiB, and 10 are the limit"):
        gpu_check_pack.hold_size(pack, 10)
    done = subprocess.run([sys.executable, TOOL, "run", "--pack", tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 4 and "is no pack" in done.stderr, done.stderr
