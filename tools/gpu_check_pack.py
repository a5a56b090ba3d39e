"""The folder that tools/gpu-check carries to a machine with a GPU: what is in it, and how it is made and opened."""

import json
import lzma
import os
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOLD, FILES, NCCL = "pack.json", "files.tar.xz", "nccl.so.xz"
LIMIT_MIB = 60
FAT_MAGIC, FAT_CODE = struct.pack("<I", 0xba55ed50), 2
PROGRAMS = ("ringmaster", "ringmaster-agent", "ringmaster-trainer")
KERNEL_TESTS = ("exact_test", "embed_test", "norm_test", "gelu_test", "classify_test", "attend_test", "halve_test")
TESTS = (*KERNEL_TESTS, "lane_test", "backend_gpu_test", "gpu_tool")
STANDINS = ("libcuda.so.1", "libcublasLt.so.13")
OWN = ("tools/gpu-check", "tools/gpu_check_pack.py", "tools/gpu_check_run.py", "tools/gpu_check_parts.py",
       "tools/gpu_check_nccl.py", "tests/e2e/rig.py")
# Of the C library itself, which comes with the machine: newer ones run what was made for older ones.
SYSTEMS = re.compile(r"(ld-linux.*|lib(c|m|dl|rt|pthread|resolv|util|anl))\.so\.\d+")

# libwebsockets loads this by itself, from one folder that is written in it.
PLUGIN, PLUGIN_FOLDER = "libwebsockets-evlib_uv.so", "/usr/lib/x86_64-linux-gnu"

# What is trained: with a GPU; there also so long that a trainer that starts in it comes before its end; and on the stand-ins.
OF_A_GPU = {"trainer__model__layers": 2, "trainer__model__heads": 2, "trainer__model__width": 64, "trainer__model__context": 32,
            "trainer__batch__lanes": 4, "trainer__batch__laneSequences": 2, "workers__max": 4,
            # Quicker it has spikes, each at another step in another precision; so a CPU's bf16 leaves its fp32 by 0.02 % at most.
            "trainer__optimizer__learningRate": 0.001}
JOBS = {
    "gpu": {**OF_A_GPU, "trainer__steps": 200},
    "long": {**OF_A_GPU, "trainer__steps": 1500},
    "nccl": {**OF_A_GPU, "trainer__steps": 4000},  # so long that communicators are made on the way
    "gpt2": {"trainer__model__layers": 12, "trainer__model__heads": 12, "trainer__model__width": 768, "trainer__model__context": 1024,
             "trainer__model__vocabulary": 50257, "trainer__batch__lanes": 4, "trainer__batch__laneSequences": 8, "workers__max": 4,
             "trainer__steps": 40},
    "standins": {"trainer__model__layers": 1, "trainer__model__heads": 1, "trainer__model__width": 8, "trainer__model__context": 8,
                 "trainer__batch__lanes": 4, "trainer__batch__laneSequences": 1, "trainer__steps": 4, "workers__max": 4},
}


class Refused(Exception):
    """A sentence: why there is no pack, or why it can't run here."""


def built():
    """Folders of the programs, and of the tests' build; both are built unless RINGMASTER_BIN names programs beside their tests."""
    if os.environ.get("RINGMASTER_BIN"):
        programs = Path(os.environ["RINGMASTER_BIN"])
        return programs, programs.parent
    subprocess.run([ROOT / "tools/build"], check=True)
    for command in (["cmake", "--preset", "test"],
                    ["cmake", "--build", "--preset", "test", "--target", *TESTS, "standin_cuda", "standin_cublaslt"]):
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return ROOT / "build/release/bin", ROOT / "build/test"


def stripped(program, to):
    """A copy without what only a debugger reads."""
    to.parent.mkdir(parents=True, exist_ok=True)
    if subprocess.run(["strip", "--strip-debug", "-o", to, program], check=False, capture_output=True).returncode:
        shutil.copy2(program, to)


def use_plugin_of(files, folder):
    """Has the pack's libwebsockets load its plugin from this folder: a short path, for it takes the place of the one that it knows."""
    shutil.copy2(files / "plugin" / PLUGIN, folder)
    known, wanted = (str(path).encode() + b"\0" for path in (PLUGIN_FOLDER, folder))
    for library in (files / "lib").glob("libwebsockets.so.*"):
        data = library.read_bytes()
        assert known in data and len(wanted) <= len(known), f"{library} has no {PLUGIN_FOLDER}, or {folder} is longer"
        library.write_bytes(data.replace(known, wanted.ljust(len(known), b"\0")))


def libraries(programs):
    """{name: path} of what they are linked with, but for the C library."""
    found = {}
    for program in programs:
        for line in subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout.splitlines():
            words = line.split()
            if len(words) > 2 and words[1] == "=>" and not SYSTEMS.fullmatch(words[0]):
                found[words[0]] = words[2]
    return found


def c_library(paths):
    """The newest version of the C library that any of these files asks for: "2.36"."""
    wanted = {(2, 17)}
    for path in paths:
        wanted |= {(int(a), int(b)) for a, b in re.findall(rb"GLIBC_(\d+)\.(\d+)\0", path.read_bytes())}
    return "{}.{}".format(*max(wanted))


def gather(folder, programs, tests):
    """All that the archive holds."""
    for name in PROGRAMS:
        stripped(programs / name, folder / "bin" / name)
    for name in TESTS:
        stripped(tests / "tests" / name, folder / "tests" / name)
    for name in STANDINS:
        stripped(tests / "standin" / name, folder / "standin" / name)
    for image in sorted((tests / "cuda").glob("*.fatbin")):
        (folder / "cuda").mkdir(exist_ok=True)
        shutil.copy2(image, folder / "cuda")
    (folder / "lib").mkdir()
    for name, path in libraries(p for p in folder.glob("*/*") if p.parent.name in ("bin", "tests", "standin")).items():
        stripped(path, folder / "lib" / name)
    stripped(Path(PLUGIN_FOLDER) / PLUGIN, folder / "plugin" / PLUGIN)


def curve(rig, folder, fields):
    """Each step's loss on CPUs, in fp32."""
    run = rig.Run(rig.make_job(folder, trainer__precision="fp32", **fields))
    try:
        code = run.wait()
    finally:
        run.clean_up()
    if code:
        raise Refused(f"what a CPU computes of the same job is not to be had: {run.tail()}")
    return {event["step"]: event["loss"] for event in run.of("step")}


def expected(programs):
    """What a GPU's curve is laid beside."""
    os.environ["RINGMASTER_BIN"] = str(programs)
    sys.path.insert(0, str(ROOT / "tests/e2e"))
    import rig  # pylint: disable=import-outside-toplevel  (it reads RINGMASTER_BIN when it is imported)
    with tempfile.TemporaryDirectory() as folder:
        return {name: curve(rig, Path(folder) / name, JOBS[name]) for name in ("gpu", "standins")}


def hold_size(folder, limit_mib):
    """MiB of all files."""
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / (1 << 20)
    if size > limit_mib:
        raise Refused(f"the pack has {size:.1f} MiB, and {limit_mib} are the limit")
    return size


def first_line(*command):
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    return (done.stdout.splitlines() or ["unknown"])[0]


def keep_architecture(library, to, architecture):
    """A copy of NCCL's library in which the code for all GPUs but one is zeros; bytes of code kept. Its fat binaries: a head, then
    entries of a head and a payload each, as in trainer/backend/cuda/images.c."""
    data, kept, at = bytearray(library.read_bytes()), 0, 0
    while (at := data.find(FAT_MAGIC, at)) >= 0:
        _, head, size = struct.unpack_from("<HHQ", data, at + 4)
        at, end = at + head, at + head + size
        while at < end:
            kind, _, entry_head, payload = struct.unpack_from("<HHIQ", data, at)
            (built_for,) = struct.unpack_from("<I", data, at + 28)
            if (kind, built_for) == (FAT_CODE, architecture):
                kept += payload
            else:
                data[at + entry_head:at + entry_head + payload] = bytes(payload)
            at += entry_head + payload
    to.write_bytes(data)
    subprocess.run(["strip", "--strip-debug", to], check=False, capture_output=True)
    return kept


def carry_nccl(library, architecture, to):
    """NCCL's library with the code for one kind of GPU."""
    with tempfile.TemporaryDirectory() as scratch:
        small = Path(scratch) / "small"
        if not keep_architecture(library, small, architecture):
            raise Refused(f"{library} has no code for sm_{architecture}: name a libnccl.so.2 that has, or another --architecture")
        to.write_bytes(lzma.compress(small.read_bytes(), preset=4))


def pack(to, limit_mib, nccl=None, architecture=90):
    programs, tests = built()
    if not list((tests / "cuda").glob("*.fatbin")):
        raise Refused("the build has no GPU kernels to carry; tools/install-packages --cuda fetches their compiler, then pack again")
    with tempfile.TemporaryDirectory() as scratch:
        made, gathered = Path(scratch) / "made", Path(scratch) / "files"
        made.mkdir(), gathered.mkdir()
        gather(gathered, programs, tests)
        told = {"commit": first_line("git", "describe", "--always", "--dirty"), "version": first_line(programs / "ringmaster", "--version"),
                "cLibrary": c_library(gathered.glob("*/*")), "files": sorted(str(p.relative_to(gathered)) for p in gathered.glob("*/*")),
                "jobs": JOBS, "expected": expected(programs)}
        if nccl:
            carry_nccl(nccl, architecture, made / NCCL)
        with tarfile.open(made / FILES, "w:xz", preset=3) as archive:
            archive.add(gathered, ".")
        for name in OWN:
            shutil.copy2(ROOT / name, made)
        (made / TOLD).write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
        size = hold_size(made, limit_mib)
        shutil.rmtree(to, ignore_errors=True)
        shutil.copytree(made, to)
    print(f"{to}: {size:.1f} MiB, {len(told['files'])} files, for a C library of {told['cLibrary']} or newer; on the machine with the GPU: "
          f"{to}/gpu-check run")
    return 0


def read_told(folder):
    try:
        return json.loads((folder / TOLD).read_text(encoding="utf-8"))
    except (OSError, ValueError) as why:
        raise Refused(f"{folder} is no pack ({why}); `tools/gpu-check pack` makes one, where the tree is built") from why


def unpack(folder, to):
    """The archive's files; what was told of them is returned. Refused where this machine's C library is too old for them."""
    told = read_told(folder)
    here = os.confstr("CS_GNU_LIBC_VERSION").split()[-1]
    if tuple(map(int, here.split("."))) < tuple(map(int, told["cLibrary"].split("."))):
        raise Refused(f"the pack was built for a C library of {told['cLibrary']} or newer, and this machine has {here}: pack on an older system")
    with tarfile.open(folder / FILES) as archive:
        archive.extractall(to, filter="data") if hasattr(tarfile, "data_filter") else archive.extractall(to)
    return told
