"""Object stores on 127.0.0.1 for tests: real servers, each with keys and a folder of its own, ended by pid.

versitygw checks every signature and keeps objects as files of a folder on tmpfs, so that a test can look at them
and harm them; with tls it has a certificate from an authority that only AWS_CA_BUNDLE names. moto is a second opinion on
conditional writes; it checks no signatures. A server dies with the process that started it, however that ends.
"""

import ctypes
import dataclasses
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
OFFLINE = 77  # an exit code


class Missing(Exception):
    """The machine lacks what the servers need; the sentence says what."""


class Offline(Missing):
    """It lacks a network to fetch them, and nothing else: what needs them is left out."""


def install(bench=False):
    """The cache with the servers in it, made where it is not there yet."""
    done = subprocess.run([str(HERE / "install")] + (["--bench"] if bench else []), capture_output=True, text=True,
                          stdin=subprocess.DEVNULL)
    if done.returncode:
        raise (Offline if done.returncode == OFFLINE else Missing)(done.stderr.strip())
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


@dataclasses.dataclass
class Server:
    """One server under way. `environment` is what a client needs to reach it, in the AWS tools' own variables."""

    kind: str
    port: int
    folder: Path
    owned: bool  # the folder goes with the server
    access: str
    secret: str
    authority: Path = None  # over TLS: who is to be trusted
    process: subprocess.Popen = None
    log: object = None

    @property
    def endpoint(self):
        return f"{'https' if self.authority else 'http'}://127.0.0.1:{self.port}"

    @property
    def environment(self):
        trusted = {"AWS_CA_BUNDLE": str(self.authority)} if self.authority else {}
        return {**environment(self.endpoint, self.access, self.secret), **trusted}

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


def make_certificates(folder):
    """An authority and a certificate for 127.0.0.1 that it signed: authority.pem, server.pem, server.key."""
    folder.mkdir(exist_ok=True)
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1\n")
    for command in (
            "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=authority -keyout authority.key -out authority.pem",
            "req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=127.0.0.1 -keyout server.key -out server.csr",
            "x509 -req -days 2 -in server.csr -CA authority.pem -CAkey authority.key -CAcreateserial -extfile names -out server.pem"):
        subprocess.run(["openssl", *command.split()], cwd=folder, check=True, capture_output=True)
    return folder / "authority.pem"


def command_of(server, cache):
    """(command, environment) that starts it."""
    if server.kind == "moto":
        return [str(cache / "python/bin/python3"), "-m", "moto.server", "-H", "127.0.0.1", "-p", str(server.port)], \
               {"PATH": os.environ["PATH"], "AWS_DEFAULT_REGION": REGION}
    keys = server.folder / "tls"
    tls = ["--cert", str(keys / "server.pem"), "--key", str(keys / "server.key")] if server.authority else []
    return [str(cache / "versitygw"), "--port", f"127.0.0.1:{server.port}", "--region", REGION, "--quiet", "--keep-alive",
            "--iam-dir", str(server.folder / "iam"), "--iam-cache-disable", *tls, "posix", str(server.folder / "store")], \
           {"PATH": os.environ["PATH"], "HOME": str(server.folder), "ROOT_ACCESS_KEY_ID": server.access,
            "ROOT_SECRET_ACCESS_KEY": server.secret}


def scratch_folder():
    """A folder on tmpfs that bears our pid; those of processes that were killed go."""
    shared = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else Path(tempfile.gettempdir())
    for left in shared.glob("ringmaster-objects-*-*"):
        if not Path("/proc", left.name.split("-")[2]).exists():
            shutil.rmtree(left, ignore_errors=True)
    return tempfile.mkdtemp(prefix=f"ringmaster-objects-{os.getpid()}-", dir=shared)


def start_once(kind, cache, folder, tls):
    """The server, or what it said instead of starting."""
    top = Path(folder or scratch_folder())
    server = Server(kind, free_port(), top, folder is None, "AK" + secrets.token_hex(9).upper(), secrets.token_urlsafe(30))
    (top / "iam").mkdir(exist_ok=True)
    (top / "store" / BUCKET).mkdir(parents=True, exist_ok=True)
    server.authority = make_certificates(top / "tls") if tls else None
    command, env = command_of(server, cache)
    server.log = (top / "server.log").open("ab")
    server.process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=server.log, stderr=server.log,
                                      preexec_fn=die_with_parent)
    end = time.monotonic() + START_S
    while server.process.poll() is None and time.monotonic() < end:
        if answers(server.port):
            return server
        time.sleep(0.02)
    text = (top / "server.log").read_text(errors="replace")
    server.stop()
    return text


def start(kind="versitygw", folder=None, tls=False):
    """A server that accepts connections, with an empty bucket. moto's bucket is the caller's to make."""
    cache = install()
    for _ in range(START_TRIES):  # somebody else may take the port before the server does
        server = start_once(kind, cache, folder, tls)
        if isinstance(server, Server):
            return server
    raise Missing(f"{kind} did not start: {server[-2000:]}")
