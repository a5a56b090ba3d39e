"""tools/bench store: objects through a real server on loopback, against AWS's C client and rclone in the same run.

The server is versitygw, its objects on tmpfs; the file that is sent and the one that is filled lie on tmpfs, too. All
take turns, each round in another order, and the best of the rounds counts: a machine that is busy with
something else slows one round, not all. CPU is the client's own, user and system.

What a new file takes from a client is mostly the kernel's: it hands out the file's pages, by default of 4 KiB each.
So everything is measured on a tmpfs of huge pages, too, where that is a tenth.
"""

import contextlib
import ctypes
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests/object_rig"), str(ROOT / "tests/e2e")]

import rig  # noqa: E402  (its folder is on the path only now)
import servers  # noqa: E402

GB = 1e9
TIMEOUT_S = 900
OURS, UNSIGNED = "ringmaster", "ringmaster, unsigned"
PEERS = [OURS, UNSIGNED, "awscrt", "rclone"]
PIECE = 1 << 24
CLONE_NEWNS = 0x20000
SHARED = Path("/dev/shm")


def fill(path, size):
    """Bytes that nothing can make smaller."""
    with open(path, "wb") as file, open("/dev/urandom", "rb") as chance:
        while size > 0:
            file.write(chance.read(min(PIECE, size)))
            size -= PIECE


def object_tool():
    return Path(os.environ["RINGMASTER_TOOLS"]) / "object_tool"


def timed(command, env):
    """(seconds, CPU seconds, what it printed) of a whole process."""
    began = time.monotonic()
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out, err = process.stdout.read(), process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"tools/bench: {command[0]} failed: {err[-2000:]}")
    return time.monotonic() - began, usage.ru_utime + usage.ru_stime, out


def ringmaster(what, path, env, _cache):
    seconds, cpu, out = timed([str(object_tool()), what, f"s3://{servers.BUCKET}/bench", "ringmaster", str(path)], env)
    return json.loads(out)["seconds"], cpu


def unsigned(what, path, env, cache):
    """Large bodies with a checksum in the place of a signed hash: as the peers send them."""
    config = path.parent / "config"
    config.write_text("[default]\ns3 =\n  payload_signing_enabled = false\n")
    return ringmaster(what, path, {**env, "AWS_CONFIG_FILE": str(config)}, cache)


def awscrt(what, path, env, cache):
    _, _, out = timed([str(cache / "python-crt/bin/python3"), str(ROOT / "tools/store_peer_crt.py"), what, servers.BUCKET,
                       "bench/awscrt", str(path)], env)
    told = json.loads(out)
    return told["seconds"], told["cpu"]


def rclone(what, path, env, _cache):
    place = f":s3:{servers.BUCKET}/bench/rclone"
    settings = ["--config", os.devnull, "--s3-provider", "Other", "--s3-env-auth", "--s3-endpoint", env["AWS_ENDPOINT_URL_S3"],
                "--s3-region", env["AWS_REGION"], "--s3-force-path-style", "--s3-no-check-bucket", "--s3-chunk-size", "16M",
                "--s3-upload-concurrency", "8", "--multi-thread-streams", "8", "--s3-disable-checksum", "--ignore-checksum",
                "--s3-disable-http2", "--no-traverse", "--ignore-times", "--retries", "1"]
    pair = [str(path), place] if what == "put" else [place, str(path)]
    seconds, cpu, _ = timed(["rclone", "copyto", *pair, *settings], env)
    return seconds, cpu


MOVERS = {OURS: ringmaster, UNSIGNED: unsigned, "awscrt": awscrt, "rclone": rclone}


def same(a, b):
    return subprocess.run(["cmp", "-s", str(a), str(b)], check=False).returncode == 0


def measure(server, cache, scratch, size, rounds):
    """{(peer, what): [(seconds, cpu) of each round]}; what is fetched is compared with what was sent."""
    given, came = scratch / "given", scratch / "came"
    fill(given, size)
    env = {"PATH": os.environ["PATH"], "HOME": str(scratch), **server.environment}
    found = {(peer, what): [] for peer in PEERS for what in ("put", "get")}
    for number in range(rounds):
        for peer in PEERS[number % 4:] + PEERS[:number % 4]:
            for what in ("put", "get"):
                found[peer, what].append(MOVERS[peer](what, given if what == "put" else came, env, cache))
            if not same(given, came):
                sys.exit(f"tools/bench: {peer} fetched other bytes than it had sent")
            came.unlink()
        print(f"round {number + 1} of {rounds} done", file=sys.stderr, flush=True)
    return found


def ratios(best, ours, what):
    speed = best[ours, what][0] / max(best[p, what][0] for p in PEERS[2:])
    cpu = best[ours, what][1] / min(best[p, what][1] for p in PEERS[2:])
    return f"{speed:.2f} of the faster peer's speed, {cpu:.2f} of the leaner peer's CPU"


def table(found, size):
    lines = ["| | upload GB/s | CPU s/GB | download GB/s | CPU s/GB |", "|---|---|---|---|---|"]
    best = {key: (size / GB / min(s for s, _ in runs), min(c for _, c in runs) / (size / GB)) for key, runs in found.items()}
    for peer in PEERS:
        cells = [f"{best[peer, what][i]:.2f}" for what in ("put", "get") for i in (0, 1)]
        lines.append(f"| {peer} | " + " | ".join(cells) + " |")
    for what, name in (("put", "Upload"), ("get", "Download")):
        told = [ratios(best, ours, what) for ours in (OURS, UNSIGNED)]
        also = f" Unsigned: {told[1]}." if what == "put" else ""
        lines.append(f"{'' if what == 'get' else chr(10)}{name}: {told[0]}.{also}")
    return lines


RESUMED = {"trainer__model__preset": "gpt2-124m", "trainer__model__context": 64, "trainer__batch__lanes": 1,
           "trainer__batch__laneSequences": 1, "trainer__steps": 10 ** 6, "workers__target": 1, "workers__max": 1,
           "workers__min": 1, "trainer__threads": "Auto", "checkpoint__everySteps": 4, "checkpoint__keep": 1}


def first_resumed_step(job, env):
    """Seconds from the start of `ringmaster run` to its first step, which goes on from the bucket."""
    began = time.monotonic()
    run = rig.Run(job, env=env)
    try:
        run.read_until("step")
        seconds = time.monotonic() - began
        if not run.of("resumed"):
            sys.exit(f"tools/bench: nothing was resumed: {run.tail()}")
        return seconds
    finally:
        run.clean_up()


def gpt2_job(folder, uri):
    dropped = {name: rig.DEFAULTS.pop(name) for name in list(rig.DEFAULTS) if name.startswith("spec.trainer.model.")}
    try:
        return rig.make_job(folder, **{**RESUMED, "checkpoint__uri": uri})
    finally:
        rig.DEFAULTS.update(dropped)


def resume(server, scratch, rounds):
    """A state of gpt2-124m in the bucket: when a process that has nothing makes its first step."""
    uri = f"s3://{servers.BUCKET}/resume"
    job = gpt2_job(scratch / "job", uri)
    env = {**server.environment}
    run = rig.Run(job, env=env)
    try:
        saved = run.read_until("checkpointSaved")
        steps = list(run.of("step"))
    finally:
        run.clean_up()
    first = min(first_resumed_step(job, env) for _ in range(rounds))
    moved = 0.0
    for name in subprocess.run([str(object_tool()), "list", uri, ""], env={**os.environ, **env}, capture_output=True, text=True,
                               check=True).stdout.splitlines():
        path = name.split()[-1]
        if path.endswith(".safetensors"):
            moved += min(json.loads(timed([str(object_tool()), "get", uri, path, str(scratch / "moved")], {**os.environ, **env})[2])["seconds"]
                         for _ in range(rounds))
    return [f"gpt2-124m, {saved['bytes'] / GB:.2f} GB: from an empty process to the first resumed step {first:.1f} s; the bytes alone, one "
            f"file after the other, {moved:.1f} s; {first / moved:.2f} times that. ({len(steps)} steps were made before the save.)"]


DATA_BYTES = 64 << 20
DATA_STEPS = 400


def waited_for_data(job, env):
    """(seconds that training stood still for data, seconds of its first steps)."""
    run = rig.Run(job, env=env)
    try:
        address = run.read_until("started")["address"]
        first = run.read_until("ringFormed")["time"]
        last = run.read_until("step", step=DATA_STEPS)["time"]
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=60) as answer:
            page = answer.read().decode()
        return float(re.search(r"^ringmaster_data_wait_seconds_total (\S+)", page, re.M).group(1)), (last - first) / 1000
    finally:
        run.clean_up()


def data(server, scratch, rounds):
    """A job that reads samples in random order, from a folder and, with an empty cache, from a bucket."""
    folder, uri, env = scratch / "text", f"s3://{servers.BUCKET}/text", {**server.environment}
    folder.mkdir()
    fill(folder / "text.bytes", DATA_BYTES * 3 // 4)
    with open(folder / "text.txt", "wb") as out:
        subprocess.run(["base64", "-w", "79", str(folder / "text.bytes")], stdout=out, check=True)
    (folder / "text.bytes").unlink()
    timed([str(object_tool()), "put", uri, "text.txt", str(folder / "text.txt")], {**os.environ, **env})
    told = {}
    for number in range(rounds):
        for place in (str(folder), uri):
            job = rig.make_job(scratch / f"reads-{number}-{place == uri}", data=False, trainer__steps=10 ** 6, trainer__data__uri=place,
                               trainer__data__cache=str(scratch / f"cache-{number}"))
            told.setdefault(place, []).append(waited_for_data(job, env))
    here, there = (min(told[place]) for place in (str(folder), uri))
    return [f"Data of {DATA_BYTES / 1e6:.0f} MB, samples in random order, cache empty: training stood still {1000 * there[0]:.0f} ms of the "
            f"{there[1]:.1f} s of its first {DATA_STEPS} steps from the bucket, {1000 * here[0]:.0f} ms of {here[1]:.1f} s from a folder."]


@contextlib.contextmanager
def huge_pages():
    """/dev/shm with huge pages, for this process and those that it starts. False where that can't be had."""
    had = ctypes.CDLL(None).unshare(CLONE_NEWNS) == 0
    for command in ("mount --make-rprivate /", f"mount -t tmpfs -o size=80%,huge=always ringmaster-bench {SHARED}"):
        had = had and subprocess.run(command.split(), capture_output=True, check=False).returncode == 0
    try:
        yield had
    finally:
        if had:
            subprocess.run(["umount", "--lazy", str(SHARED)], check=True)


@contextlib.contextmanager
def under_way():
    """A server and a folder beside its own."""
    server = servers.start()
    try:
        with tempfile.TemporaryDirectory(dir=SHARED if os.access(SHARED, os.W_OK) else None, prefix="ringmaster-bench-") as scratch:
            yield server, Path(scratch)
    finally:
        server.stop()


def bench(size, rounds):
    cache = servers.install(bench=True)
    lines = [f"{size / GB:.1f} GB in one object, versitygw over plain HTTP on loopback, files on tmpfs, best of {rounds}. Client and "
             "server share the machine."]
    with huge_pages() as had:
        if had:
            with under_way() as (server, scratch):
                lines += ["", "On huge pages:", ""] + table(measure(server, cache, scratch, size, rounds), size)
    with under_way() as (server, scratch):
        lines += ["", "On pages of 4 KiB:", ""] + table(measure(server, cache, scratch, size, rounds), size)
        (scratch / "given").unlink()
        lines += ["", *resume(server, scratch, rounds), "", *data(server, scratch, rounds)]
    return lines
