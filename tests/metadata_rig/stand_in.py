"""Amazon's own stand-in for its metadata (amazon-ec2-metadata-mock): a second opinion on what server.py takes for AWS's."""

import contextlib
import socket
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests/cluster"))  # behind the user's own folder: each has a module `rig`

import processes  # noqa: E402  (its folder is on the path only now)
from cluster import BIN  # noqa: E402

OFFLINE = 77  # an exit code


class Offline(Exception):
    """It can't be fetched, for there is no network."""


def install():
    """Puts it into the cache where it is not there yet."""
    done = subprocess.run([str(ROOT / "tests/cluster/build"), "--metadata"], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        raise (Offline if done.returncode == OFFLINE else RuntimeError)(f"no stand-in for AWS's metadata: {done.stderr.strip()[-1000:]}")


def answers(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False


@contextlib.contextmanager
def standing(home, *words):
    """Its address while it runs with those arguments. home: a folder, for it looks for settings there and keeps its log."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [str(BIN / "ec2-metadata-mock"), *words, "--imdsv2", "--hostname", "127.0.0.1", "--port", str(port)]
    process = processes.spawn(command, home / "stand-in.log", tied=True, environment={"HOME": str(home)})
    try:
        processes.until(lambda: answers(port) or process.poll() is not None, "it listens")
        assert process.poll() is None, (home / "stand-in.log").read_text(encoding="utf-8")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()
