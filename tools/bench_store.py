"""tools/bench store: objects through a real server on loopback, against AWS's C client and rclone in the same run.

The server is versitygw, its objects on tmpfs; the file that is sent and the one that is filled lie on tmpfs, too. All
take turns, each round in another order, and the best of the rounds counts: a machine that is busy with
something else slows one round, not all. CPU is the client's own, user and system.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
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
           "trainer__batch__laneSequences": 1, "trainer__steps": 12, "workers__target": 1, "workers__max": 1,
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
        steps = [e for e in run.of("step")]
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


def bench(size, rounds):
    cache = servers.install(bench=True)
    server = servers.start()
    shared = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    try:
        with tempfile.TemporaryDirectory(dir=shared, prefix="ringmaster-bench-") as scratch:
            scratch = Path(scratch)
            found = measure(server, cache, scratch, size, rounds)
            lines = [f"{size / GB:.1f} GB in one object, versitygw over plain HTTP on loopback, files on tmpfs, best of {rounds}. Client and "
                     "server share the machine.", ""] + table(found, size)
            (scratch / "given").unlink()
            return lines + [""] + resume(server, scratch, rounds)
    finally:
        server.stop()
