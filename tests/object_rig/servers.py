"""Object stores on 127.0.0.1 for tests: real servers, each with keys and a folder of its own, ended by pid.

versitygw checks every signature and keeps objects as files of a folder on tmpfs, so that a test can look at them
and harm them. moto is a second opinion on conditional writes; it checks no signatures. A server dies with the
process that started it, however that ends.
"""

import ctypes
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
REGION = "eu-test-1"  # not the usual one: a client that signs for another region is found out
BUCKET = "checkpoints"
START_TRIES = 5
START_S = 60
PR_SET_PDEATHSIG = 1


class Missing(Exception):
    """The machine lacks what the servers need; the sentence says what."""


def install(bench=False):
    """The cache with the servers in it, made where it is not there yet."""
    done = subprocess.run([str(HERE / "install")] + (["--bench"] if bench else []), capture_output=True, text=True,
                          stdin=subprocess.DEVNULL)
    if done.returncode:
        raise Missing(done.stderr.strip())
    return Path(done.stdout.strip())


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def answers(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
        return True
    except OSError:
        return False


class Server:
    """One server under way. `environment` is what a client needs to reach it, in the AWS tools' own variables."""

    def __init__(self, kind, process, port, folder, owned, access, secret, log):
        self.kind, self.process, self.port = kind, process, port
        self.folder, self.owned, self.log = folder, owned, log
        self.access, self.secret = access, secret

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self):
        return environment(self.endpoint, self.access, self.secret)

    def stop(self):
        """Ends the server; what it stored goes with it, where the folder was its own."""
        self.process.kill()
        self.process.wait()
        self.log.close()
        if self.owned:
            shutil.rmtree(self.folder, ignore_errors=True)


def environment(endpoint, access, secret, region=REGION):
    return {
        "AWS_ENDPOINT_URL_S3": endpoint,
        "AWS_ACCESS_KEY_ID": access,
        "AWS_SECRET_ACCESS_KEY": secret,
        "AWS_REGION": region,
        "AWS_DEFAULT_REGION": region,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": "/dev/null",
        "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
    }


def versitygw_command(cache, folder, port, access, secret, iam):
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "ROOT_ACCESS_KEY_ID": access, "ROOT_SECRET_ACCESS_KEY": secret}
    command = [str(cache / "versitygw"), "--port", f"127.0.0.1:{port}", "--region", REGION, "--quiet", "--keep-alive",
               "--iam-dir", str(iam), "--iam-cache-disable", "posix", str(folder)]
    return command, env


def moto_command(cache, port):
    return [str(cache / "python/bin/python3"), "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)], \
           {"PATH": os.environ["PATH"], "AWS_DEFAULT_REGION": REGION}


def scratch_folder():
    """A folder on tmpfs that bears our pid; those of processes that were killed go."""
    shared = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else Path(tempfile.gettempdir())
    for left in shared.glob("ringmaster-objects-*-*"):
        if not Path("/proc", left.name.split("-")[2]).exists():
            shutil.rmtree(left, ignore_errors=True)
    return tempfile.mkdtemp(prefix=f"ringmaster-objects-{os.getpid()}-", dir=shared)


def start_once(kind, cache, folder, owned):
    access, secret, port = "AK" + secrets.token_hex(9).upper(), secrets.token_urlsafe(30), free_port()
    top = Path(folder)
    (top / "iam").mkdir(exist_ok=True)
    (top / "store" / BUCKET).mkdir(parents=True, exist_ok=True)
    if kind == "versitygw":
        command, env = versitygw_command(cache, top / "store", port, access, secret, top / "iam")
    else:
        command, env = moto_command(cache, port)
    log = (top / "server.log").open("ab")
    process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                               preexec_fn=die_with_parent)
    server = Server(kind, process, port, top, owned, access, secret, log)
    end = time.monotonic() + START_S
    while process.poll() is None and time.monotonic() < end:
        if answers(port):
            return server
        time.sleep(0.02)
    text = (top / "server.log").read_text(errors="replace")
    process.kill()
    process.wait()
    log.close()
    return text


def start(kind="versitygw", folder=None):
    """A server that accepts connections, with an empty bucket. moto's bucket is the caller's to make."""
    cache = install()
    for _ in range(START_TRIES):  # somebody else may take the port before the server does
        server = start_once(kind, cache, folder or scratch_folder(), folder is None)
        if isinstance(server, Server):
            return server
    raise Missing(f"{kind} did not start: {server[-2000:]}")
