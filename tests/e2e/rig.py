"""What the end-to-end tests stand on: job files for a tiny model, and runs of `ringmaster run` as processes.

Every process of a run carries a mark in its environment, so that a test can say who is left, and so that
nothing that a test started outlives it. Nobody sleeps here for a state: reads block until the program says
something, and polls have a condition and a deadline.
"""

import contextlib
import hashlib
import json
import os
import queue
import random
import re
import signal
import socket
import struct
import subprocess
import threading
import time
import uuid
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(os.environ.get("RINGMASTER_BIN", ROOT / "build/test/bin"))
SANITIZED = "asan" in str(BIN)
DEADLINE_S = 300 if SANITIZED else 120
MARK = "RINGMASTER_TEST_MARK"

WORDS = ("the ring forms again when a worker leaves and no step is lost because every lane is summed in whole "
         "numbers so that the order of the sum does not matter to the bits that come out at the end").split()


def make_text(bytes_wanted, seed=1):
    """Text with something to learn in it: the same for the same seed on every machine."""
    chance = random.Random(seed)
    words, size = [], 0
    while size < bytes_wanted:
        words.append(chance.choice(WORDS) + (".\n" if chance.random() < 0.1 else ""))
        size += len(words[-1]) + 1
    return " ".join(words)[:bytes_wanted]


STEPS = 120  # long enough that a newcomer, started in the first third, comes before the end

DEFAULTS = {
    "spec.workers.min": 1, "spec.workers.max": 8, "spec.workers.target": 1,
    "spec.trainer.model.layers": 2, "spec.trainer.model.heads": 2, "spec.trainer.model.width": 32,
    "spec.trainer.model.context": 32, "spec.trainer.model.vocabulary": 256,
    "spec.trainer.data.uri": "data",
    "spec.trainer.batch.lanes": 8, "spec.trainer.batch.laneSequences": 4,
    "spec.trainer.optimizer.learningRate": 0.005, "spec.trainer.optimizer.warmupSteps": 4,
    "spec.trainer.steps": STEPS, "spec.trainer.threads": 1,
    "spec.elasticity.joinWindow": "10s",  # on a busy machine the workers of a run come one by one
    "spec.checkpoint.uri": "checkpoints",
}


def yaml_lines(tree, indent=0):
    for key, value in tree.items():
        if isinstance(value, dict):
            yield "  " * indent + f"{key}:"
            yield from yaml_lines(value, indent + 1)
        else:
            text = str(value).lower() if isinstance(value, bool) else f"{value}"
            yield "  " * indent + f"{key}: {text}"


def make_job(folder, data=True, **fields):
    """Writes job.yaml (and the data folder beside it) and returns its path.

    Fields are paths below spec with '__' for '.', as in workers__target=3."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    settings = dict(DEFAULTS)
    settings.update({"spec." + name.replace("__", "."): value for name, value in fields.items()})
    tree = {"apiVersion": "ringmaster.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": "tiny"}}
    for path, value in settings.items():
        node = tree
        *parents, leaf = path.split(".")
        for name in parents:
            node = node.setdefault(name, {})
        node[leaf] = value
    if data and not (folder / "data").exists():
        (folder / "data" / "more").mkdir(parents=True)
        (folder / "data" / "a.txt").write_text(make_text(30000))
        (folder / "data" / "more" / "b.txt").write_text(make_text(10000, seed=2))
    (folder / "job.yaml").write_text("\n".join(yaml_lines(tree)) + "\n")
    return folder / "job.yaml"


def preloadable(name, folder):
    """The library of NAME.c beside this file, for LD_PRELOAD; made in that folder."""
    library = Path(folder) / f"{name}.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-D_GNU_SOURCE", "-o", str(library), str(Path(__file__).with_name(f"{name}.c"))], check=True)
    return library


def marked_processes(mark):
    """Pids of living processes that carry the mark. A zombie has no environment and is not one of them."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                environment = Path("/proc", entry, "environ").read_bytes()
            except OSError:
                continue
            if wanted in environment.split(b"\0"):
                found.append(int(entry))
    return found


def until(condition, what, deadline_s=20):
    """Polls a condition; a state that does not come in time is a failure with its name."""
    end = time.monotonic() + deadline_s
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, f"not in {deadline_s} s: {what}"
        time.sleep(0.005)


def listening_ports(pid):
    """TCP ports on which a process listens."""
    inodes = set()
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            target = os.readlink(f"/proc/{pid}/fd/{name}")
        except OSError:
            continue
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    ports = []
    for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]:
        words = line.split()
        if words[3] == "0A" and words[9] in inodes:
            ports.append(int(words[1].split(":")[1], 16))
    return ports


class Run:
    """One `ringmaster run --output json` under way: read its events, disturb it, wait for its end."""

    def __init__(self, job, *arguments, env=None):
        self.mark = uuid.uuid4().hex
        self.job = Path(job)
        self.events = []
        self.code = None
        self.stderr = ""
        self._queue = queue.Queue()
        self._ended = False
        self._errors = []
        full_env = {k: v for k, v in os.environ.items() if not k.startswith("RINGMASTER_")}
        full_env.update({MARK: self.mark, "RINGMASTER_LOG": "info"}, **(env or {}))
        self.process = subprocess.Popen(
            [str(BIN / "ringmaster"), "run", str(job), "--output", "json", *map(str, arguments)],
            env=full_env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self._threads = [threading.Thread(target=self._read_events, daemon=True),
                         threading.Thread(target=self._read_errors, daemon=True)]
        for thread in self._threads:
            thread.start()

    def _read_events(self):
        for line in self.process.stdout:
            self._queue.put(line.decode(errors="replace"))
        self._queue.put(None)

    def _read_errors(self):
        for line in self.process.stderr:
            self._errors.append(line.decode(errors="replace"))

    @property
    def pid(self):
        return self.process.pid

    def next_event(self, deadline_s=None):
        """The next event, or None at the end of the output. A line that is no event fails the test."""
        if self._ended:
            return None
        try:
            line = self._queue.get(timeout=deadline_s or DEADLINE_S)
        except queue.Empty:
            raise AssertionError(f"no event for {deadline_s or DEADLINE_S} s after {self.tail()}") from None
        if line is None:
            self._ended = True
            return None
        event = json.loads(line)
        assert isinstance(event, dict) and "event" in event and isinstance(event.get("time"), int), line
        self.events.append(event)
        return event

    def read_until(self, name, **fields):
        """Reads on to the first event of that name; fields are values, or predicates on them."""
        while True:
            event = self.next_event()
            assert event is not None, f"the run ended without {name} {fields}: {self.tail()}"
            if event["event"] == name and all(
                    k in event and (v(event[k]) if callable(v) else event[k] == v) for k, v in fields.items()):
                return event

    def wait(self):
        """Reads everything that is left; returns the run's exit code."""
        while self.next_event() is not None:
            pass
        self.code = self.process.wait(timeout=DEADLINE_S)
        self._threads[1].join(timeout=10)
        self.stderr = "".join(self._errors)
        for word in ("Sanitizer", "runtime error:"):
            assert word not in self.stderr, self.stderr[-6000:]
        return self.code

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)

    def of(self, *names):
        return [event for event in self.events if event["event"] in names]

    def the(self, name):
        """The only event of that name."""
        found = self.of(name)
        assert len(found) == 1, f"{len(found)} {name} events: {self.tail()}"
        return found[0]

    def tail(self):
        """The end of what it said, for a failing assertion."""
        story = [e for e in self.events if e["event"] != "step"][-12:] + self.of("step")[-1:]
        return f"exit {self.process.poll()}\nevents: {story}\nstderr: {''.join(self._errors)[-3000:]}"

    def clean_up(self):
        """Ends everything that belongs to this run, whatever happened to it."""
        if self.process.poll() is None:
            self.process.kill()
        for pid in marked_processes(self.mark):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait(timeout=30)

    def left_over(self):
        return marked_processes(self.mark)


NOBODY_YET = """\
apiVersion: v1
kind: Config
current-context: here
contexts: [{name: here, context: {cluster: here, user: somebody}}]
clusters: [{name: here, cluster: {server: "http://127.0.0.1:%d"}}]
users: [{name: somebody, user: {token: "a-token"}}]
"""


@contextlib.contextmanager
def operator_at_work(folder, env):
    """An operator whose API server never answers: it has read its settings, and is at work. Its standard error is a pipe."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(DEADLINE_S)
        config = folder / "kubeconfig"
        config.write_text(NOBODY_YET % server.getsockname()[1], encoding="ascii")
        command = [str(BIN / "ringmaster-operator"), "--kubeconfig", str(config), "--no-lease", "--port", "0"]
        with subprocess.Popen(command, env=env, stderr=subprocess.PIPE) as operator:
            try:
                server.accept()[0].close()
                yield operator
            finally:
                operator.kill()


def check_steps(run, first=1, last=STEPS):
    """Each step once, in order, from first to last."""
    steps = [event["step"] for event in run.of("step")]
    assert steps == list(range(first, last + 1)), f"steps {steps[:3]}...{steps[-3:]}: {run.tail()}"


def check_rings(run, restarted=()):
    """Generations grow; a survivor's trainer is the same process in the next ring (but for those restarted).

    The step never falls back while anybody survives; with all gone, it may, to the newest checkpoint."""
    rings = run.of("ringFormed")
    restarted = set(restarted) | {int(e["spec"].split(":")[1].split("@")[0]) for e in run.of("drill") if e["spec"].startswith("trainer:")}
    for before, after in zip(rings, rings[1:]):
        assert (after["term"], after["generation"]) > (before["term"], before["generation"]), run.tail()
        old = {m["worker"]: m for m in before["members"]}
        if {m["agentPid"] for m in before["members"]} & {m["agentPid"] for m in after["members"]}:
            assert after["step"] >= before["step"], run.tail()
        for member in after["members"]:
            known = old.get(member["worker"])
            if known and known["agentPid"] == member["agentPid"] and member["worker"] not in restarted:
                assert known["trainerPid"] == member["trainerPid"], run.tail()


def check_complete(run, last=STEPS, first=1, restarted=()):
    """The run ended well and told a consistent story; returns its complete event."""
    assert run.code == 0, run.tail()
    check_steps(run, first, last)
    check_rings(run, restarted)
    complete = run.the("complete")
    assert run.events[-1] is complete, run.tail()
    assert complete["step"] == last
    assert 0 < complete["goodput"] <= 1, complete
    assert not run.left_over()
    return complete


def read_safetensors(path):
    """{name: bytes} by hand, to owe nothing to the code under test."""
    raw = Path(path).read_bytes()
    (length,) = struct.unpack_from("<Q", raw)
    header = json.loads(raw[8:8 + length])
    header.pop("__metadata__", None)
    body = raw[8 + length:]
    return {name: body[slice(*entry["data_offsets"])] for name, entry in header.items()}


def weights_sha256(folder):
    tensors = read_safetensors(Path(folder) / "model.safetensors")
    return hashlib.sha256(b"".join(tensors[name] for name in sorted(tensors))).hexdigest()


def folder_of(uri):
    assert uri.startswith("file:///"), uri
    return Path(uri[len("file://"):])


def sealed_anew(manifest, pattern, instead):
    """The bytes of a manifest with what the pattern finds first changed, and a right hash of itself."""
    head = manifest[:manifest.rindex(b",", 0, manifest.rindex(b'"manifestSha256"'))]
    changed = re.sub(pattern, instead, head, count=1)
    assert changed != head
    digest = hashlib.sha256(changed).hexdigest().encode()
    return changed + re.sub(rb"[0-9a-f]{64}", digest, manifest[len(head):])
