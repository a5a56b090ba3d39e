"""Object stores for the end-to-end tests: one real server per test process, a prefix of its own for each test."""

import json
import re
import sys
import uuid
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "object_rig"))

import client  # noqa: E402  (its folder is on the path only now)
import faults  # noqa: E402,F401  (for the tests)
import googles  # noqa: E402,F401
import proxy  # noqa: E402
import scripts  # noqa: E402,F401
import servers  # noqa: E402
import sts  # noqa: E402,F401


class Place:
    """A prefix of a bucket that one test has for itself."""

    def __init__(self, server, prefix=None):
        self.server = server
        self.prefix = prefix or f"t{uuid.uuid4().hex[:12]}"
        self.uri = f"s3://{servers.BUCKET}/{self.prefix}"
        self.env = dict(server.environment)

    def names(self, below=""):
        """Names of all objects below the prefix, relative to it."""
        return [name.removeprefix(self.prefix + "/") for name in client.names(self.server, f"{self.prefix}/{below}")]

    def get(self, name):
        return client.get(self.server, f"{self.prefix}/{name}")

    def put(self, name, body):
        client.put(self.server, f"{self.prefix}/{name}", body)

    def delete(self, name):
        client.delete(self.server, f"{self.prefix}/{name}")

    def begin_upload(self, name):
        """As somebody who dies at once."""
        client.begin_upload(self.server, f"{self.prefix}/{name}")

    def uploads(self):
        """Uploads under way below the prefix: (name, id)."""
        return [(name.removeprefix(self.prefix + "/"), upload) for name, upload in client.uploads(self.server)
                if name.startswith(self.prefix + "/")]

    def checkpoints(self):
        """Folders that have a manifest, in order."""
        return sorted(name.rsplit("/", 1)[0] for name in self.names() if name.endswith("/manifest.json"))


class Stranger(faults.Quiet):
    """A script for the proxy: the owner's own looks at `place` are refused, and another run takes the place, lives and answers who asks."""

    def __init__(self, place):
        self.place, self.name, self.beat, self.asked = place, None, 0, 0

    def say(self, **more):
        self.beat += 1
        self.place.put(self.name, json.dumps({"run": "f" * 16, "job": "stranger", "since": 1790000000000, "beat": self.beat, **more}).encode())

    def newest(self):
        return max(name for name in self.place.names() if re.fullmatch(r"\.owner-\d+", name))

    def take(self):
        self.name = f".owner-{int(self.newest().removeprefix('.owner-')) + 1:08d}"
        self.say()

    def fault(self, request):
        if not request.key.endswith("-asks"):
            return None
        if request.method == "HEAD":
            return faults.Says(403, "AccessDenied")
        if request.method == "PUT" and self.name and request.key.endswith(f"{self.name}-asks"):
            self.asked += 1
            self.say()
        return None


def started(kind, **how):
    try:
        return servers.start(kind, **how)
    except servers.Offline as why:
        pytest.skip(str(why))


@pytest.fixture(name="s3_server", scope="session")
def versitygw_under_way():
    """versitygw on 127.0.0.1 for as long as the test process lives."""
    server = started("versitygw")
    yield server
    server.stop()


@pytest.fixture(name="moto_server", scope="session")
def moto_under_way():
    """moto on 127.0.0.1: a second opinion on conditional writes."""
    server = started("moto")
    client.make_bucket(server)
    yield server
    server.stop()


@pytest.fixture(name="s3_tls_server", scope="session")
def versitygw_over_tls():
    """As s3_server, over TLS, with a certificate from an authority that nobody else knows."""
    server = started("versitygw", tls=True)
    yield server
    server.stop()


@pytest.fixture(name="s3")
def prefix_of_the_test(s3_server):
    """A Place on versitygw."""
    return Place(s3_server)


@pytest.fixture(name="s3_proxy")
def proxy_in_front(s3_server):
    """A quiet proxy in front of versitygw; give its `script` something of faults.py to do."""
    between = proxy.Proxy(s3_server)
    yield between
    between.stop()
