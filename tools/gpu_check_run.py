"""tools/gpu-check run: what there is on this machine, what is therefore left out, the parts, and the file of all results."""

import contextlib
import glob
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import gpu_check_nccl
import gpu_check_pack
import gpu_check_parts

PARTS = {"device": None, "kernels": gpu_check_parts.kernels, "model": gpu_check_parts.model, "train": gpu_check_parts.train,
         "arena": gpu_check_nccl.arena, "nccl": gpu_check_nccl.nccl, "sanitizer": gpu_check_parts.sanitizer, "bench": gpu_check_parts.bench,
         "steps": gpu_check_nccl.steps}
ALL_S, PART_S = 8 * 60 - 15, 3 * 60 - 5  # what is under way then needs some seconds to end
END_S = 10  # of a process that was killed: one that hangs in a driver is left behind, and said
ENDINGS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
WITHOUT_PRODUCTS = ("device", "kernels", "arena", "sanitizer")  # what needs no cuBLASLt
BLAS = "libcublasLt.so.13"
BLAS_PLACES = ("/usr/local/cuda*/lib64", "/usr/local/cuda*/targets/*/lib", "/opt/*/lib/python3*/site-packages/nvidia/*/lib")


def said_by(process):
    """What a process that was killed had said. Its output may be open elsewhere for ever."""
    try:
        return process.communicate(timeout=END_S)[0]
    except subprocess.TimeoutExpired as late:
        return (late.stdout or b"").decode(errors="replace")


class Check:
    """One run: where its files are, what was found, how much time is left; everything that it starts ends with it."""

    def __init__(self, folder, scratch, plugins, standins):
        self.folder, self.files, self.scratch = folder, scratch / "files", scratch
        self.told = gpu_check_pack.unpack(folder, self.files)
        gpu_check_pack.use_plugin_of(self.files, plugins)
        self.nccl = gpu_check_nccl.unpacked(folder / gpu_check_pack.NCCL, scratch / "nccl")
        self.standins, self.why_standins, self.found = standins, "wanted", {}
        self.env, self.began, self.part_began = {}, time.monotonic(), time.monotonic()
        self.library_path = os.pathsep.join([str(self.files / "lib"), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])])

    def left(self):
        """Seconds."""
        now = time.monotonic()
        return max(0.0, min(self.began + ALL_S - now, self.part_began + PART_S - now))

    def program_env(self, more=None):
        """For what the pack brought along."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("RINGMASTER_")}
        return {**kept, "LD_LIBRARY_PATH": self.library_path, **self.env, **(more or {})}

    @contextlib.contextmanager
    def started(self, command, env=None, **pipes):
        """A process, in a group of its own that has ended when this does."""
        process = subprocess.Popen([str(word) for word in command], env=env or self.program_env(), start_new_session=True,
                                   text=True, errors="replace", **pipes)
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            try:
                process.wait(timeout=END_S)
            except subprocess.TimeoutExpired:
                say(f"left behind: {Path(str(command[0])).name}, process {process.pid}, which does not end")

    def call(self, command, env=None, timeout=None):
        """(exit code, what it said); the code is None where it did not end in time."""
        with self.started(command, env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
            try:
                said, _ = process.communicate(timeout=min(self.left(), timeout or PART_S))
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                return None, said_by(process)
            return process.returncode, said

    def tool(self, *words, more=None):
        """What gpu_tool says: its lines as a table, "why" among them where it could not."""
        code, said = self.call([self.files / "tests/gpu_tool", *words], self.program_env({"RINGMASTER_TEST_GPU": "1", **(more or {})}))
        table = dict(line.split("\t", 1) for line in said.splitlines() if "\t" in line)
        if code != 0 and "why" not in table:
            table["why"] = f"gpu_tool {words[0]} ended with {code}: {said[-500:]}"
        return table


# ---- what there is ----

def find_blas():
    """The first cuBLASLt beside what Python or a toolkit has installed; None where only the loader may know one."""
    folders = [Path(entry) / "nvidia" / "*" / "lib" for entry in sys.path if entry] + [Path(place) for place in BLAS_PLACES]
    for folder in folders:
        for path in sorted(glob.glob(str(folder / BLAS))):
            return path
    return None


def own_libraries(check):
    """Where the machine's libraries are, as the environment or a search says."""
    named = {name: os.environ[name] for name in ("RINGMASTER_CUDA_LIBRARY", "RINGMASTER_CUBLASLT_LIBRARY", "RINGMASTER_STANDIN_CUDA",
                                                 "RINGMASTER_STANDIN_CUBLASLT") if os.environ.get(name)}
    check.env = named
    if "RINGMASTER_CUBLASLT_LIBRARY" in named or "cublasLt" in check.tool("look"):
        return
    path = find_blas()
    if path:
        check.env = {**named, "RINGMASTER_CUBLASLT_LIBRARY": path}


def standin_libraries(check):
    check.env = {"RINGMASTER_CUDA_LIBRARY": str(check.files / "standin/libcuda.so.1"),
                 "RINGMASTER_CUBLASLT_LIBRARY": str(check.files / "standin" / BLAS),
                 "RINGMASTER_STANDIN_CUDA": os.environ.get("RINGMASTER_STANDIN_CUDA", "seed=1,sms=2")}


def look(check):
    if not check.standins:
        own_libraries(check)
        check.found = check.tool("look")
        if "gpu" not in check.found:
            check.standins, check.why_standins = True, check.found["why"]
    if check.standins:
        standin_libraries(check)
        check.found = check.tool("look")
    version = Path("/proc/driver/nvidia/version")
    check.found["driverVersion"] = "none"
    if version.exists() and not check.standins:
        said = re.search(r"\b(\d+\.\d+(\.\d+)?)\b", version.read_text(encoding="utf-8", errors="replace"))
        check.found["driverVersion"] = said.group(1) if said else "unknown"


def system():
    return {"kernel": platform.release(), "cLibrary": os.confstr("CS_GNU_LIBC_VERSION"), "python": platform.python_version(),
            "processors": os.cpu_count()}


def why_not(check, part):
    """Why a part is left out, known before anything has run; None: it is not."""
    if part in ("nccl", "steps") and check.standins:
        return "it takes a GPU"
    if part == "nccl" and not check.nccl:
        return "the pack has no NCCL: gpu-check pack --nccl FILE brings one of 2.30 or newer"
    if part == "sanitizer" and check.standins:
        return "compute-sanitizer looks into a GPU, and there is none here"
    if part == "sanitizer" and not gpu_check_parts.find_sanitizer():
        return "there is no compute-sanitizer, on the PATH or in /usr/local/cuda"
    if "cublasLt" not in check.found and part not in WITHOUT_PRODUCTS:
        return check.found.get("why", "no cuBLASLt was found")
    return None


def say(text):
    print(text, flush=True)


def say_found(check, parts):
    found = check.found
    if check.standins:
        say(f"on stand-ins, which say nothing of a GPU: {check.why_standins}")
    if "gpu" in found:
        say(f"found: {found['gpu']} {found['uuid']}, capability {found['capability']}, {found['processors']} processors, "
            f"{int(found['freeBytes']) >> 20} of {int(found['memoryBytes']) >> 20} MiB free")
        say(f"found: driver {found['driverVersion']} for CUDA {found['cuda']}, {found['driver']}")
    if "cublasLt" in found:
        say(f"found: cuBLASLt {found['cublasLtVersion']}, {found['cublasLt']}")
    for part in parts:
        why = why_not(check, part)
        if why:
            say(f"left out: {part}: {why}")


# ---- the parts ----

def device(check):
    """What was found is the result; that a GPU can be opened is what is checked."""
    why = check.found.get("why") if "gpu" not in check.found else None
    yield gpu_check_parts.result("a GPU is found and opened", why, dict(check.found))


def run_part(check, part):
    """Its record for the file."""
    check.part_began = time.monotonic()
    record = {"part": part, "outcome": "left out", "results": []}
    why = why_not(check, part) or (None if check.left() > 5 else "the time of all parts was over")
    if why:
        return {**record, "why": why}
    try:
        for result in (PARTS[part] or device)(check):
            record["results"].append(result)
            if result["outcome"] == "failed":
                say(f"FAILED {part}: {result['name']}: {result['said']}")
            elif result["outcome"] == "left out":
                say(f"left out: {part}: {result['name']}: {result['said']}")
    except Exception as mistake:  # pylint: disable=broad-exception-caught  (what breaks in one part is its result)
        record["results"].append(gpu_check_parts.result(f"the part {part} itself", f"{type(mistake).__name__}: {mistake}"))
        say(f"FAILED {part}: {mistake}")
    record["seconds"] = round(time.monotonic() - check.part_began, 1)
    failed = sum(1 for result in record["results"] if result["outcome"] == "failed")
    record["outcome"] = "failed" if failed or not record["results"] else "passed"
    say(f"{part}: {record['outcome']}, {len(record['results'])} results, {failed} failed, {record['seconds']} s")
    return record


def write(check, to, records):
    """What is known by now, so that whoever ends the run has it as well; how many parts came out how."""
    counts = {name: sum(1 for record in records if record["outcome"] == name) for name in ("passed", "failed", "left out")}
    told = {"on": "stand-ins" if check.standins else "gpu", "why": check.why_standins if check.standins else "", "found": check.found,
            "system": system(), "pack": {name: check.told[name] for name in ("commit", "version", "cLibrary")}, "parts": records,
            "seconds": round(time.monotonic() - check.began, 1), "counts": counts}
    unfinished = to.with_name(to.name + ".part")
    unfinished.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    unfinished.replace(to)
    return counts


def ended(number, _frame):
    """Once. `timeout` signals its child and then the child's group, so it comes twice; the second one would break off the ending itself."""
    for ending in ENDINGS:
        signal.signal(ending, signal.SIG_IGN)
    raise SystemExit(128 + number)


def run(folder, wanted, to, standins):
    for ending in ENDINGS:
        signal.signal(ending, ended)
    parts = [part for part in PARTS if not wanted or part in wanted]
    scratch, plugins = Path(tempfile.mkdtemp(prefix="gpu-check-")), Path(tempfile.mkdtemp(prefix="gpu-", dir="/tmp"))
    try:
        check = Check(folder, scratch, plugins, standins)
        look(check)
        say_found(check, parts)
        records = []
        for part in parts:
            records.append(run_part(check, part))
            counts = write(check, to, records)
        say(f"{counts['passed']} parts passed, {counts['failed']} failed, {counts['left out']} left out, "
            f"{time.monotonic() - check.began:.0f} s: {to}")
        return 1 if counts["failed"] else 0
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        shutil.rmtree(plugins, ignore_errors=True)
