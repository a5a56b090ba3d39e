"""Thousands of running jobs without their machines: their objects written into etcd, and one process that answers for all their coordinators.

Run inside a test cluster's network by tools/bench_running.py:

    running_jobs.py seed FOLDER JOBS              the objects of FOLDER/*.json, once a job, into etcd
    running_jobs.py coordinators JOBS WORKERS UID answers GET /v1/status at 127.x.y.z:7070, an address a job (and at 127.0.0.1 for the
                                                  job that the others are copies of, of that uid), and says at 127.0.0.1:7071 who asked

The coordinators keep the rules of docs/coordinator-status.md: an answer comes as soon as `revision` is another one than was said, and after
25 s at the latest, with the events behind the one that is known; with training alone it grows each 5 s.
"""

import asyncio
import base64
import json
import resource
import socket
import sys
import time
import urllib.request
from functools import lru_cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/cluster"))

import operator_rig  # noqa: E402  (its folder is on the path only now)

GOLDEN = ROOT / "tests/unit/operator/core/golden"
APPLIED = "ringmaster.dev/applied"
MODEL, NODE = "model-job", "model-node"  # what the others are copies of
ETCD = "http://127.0.0.1:2379/v3/kv/txn"
AT_ONCE_BYTES, AT_ONCE = 700 << 10, 100  # of one transaction: etcd takes 1.5 MiB and 128 writes
JOBS_A_NODE = 8
PORT, COUNTS_PORT = 7070, 7071
NEWS_EVERY_S, PATIENCE_S, SAVE_EVERY_S = 5.0, 25.0, 600.0
EVENTS = 64  # the newest, of a job that has trained for long

# Where etcd keeps a kind.
PREFIX = {"Pod": "pods", "Secret": "secrets", "Service": "services/specs", "PodDisruptionBudget": "poddisruptionbudgets",
          "NetworkPolicy": "networkpolicies", "TrainingJob": "ringmaster.dev/trainingjobs", "Node": "minions"}


def name_of(number):
    return f"job-{number:05d}"


def uid_of(kind, number):
    """Of an object that never was created; kind keeps those of one job apart."""
    return f"5eed0000-0000-4000-{kind:04x}-{number:012d}"


def address_of(number):
    """Of the job's coordinator; 127.0.x.y is left to others."""
    return f"127.{1 + number // 62500}.{1 + number // 250 % 250}.{1 + number % 250}"


def number_at(address):
    _, high, middle, low = (int(part) for part in address.split("."))
    return (high - 1) * 62500 + (middle - 1) * 250 + low - 1


def identity(name, uid):
    """What a coordinator calls its job (name_identity in operator/core/names.c)."""
    return f"{name}-{operator_rig.name_hash(uid, 'identity', '0/0')}"


# --- objects ---

def told_order(golden, stored):
    """What of an object as the API server shows it is ours, in the order in which the operator writes it."""
    if isinstance(golden, dict):
        return {key: told_order(golden[key], stored[key]) for key in golden if key in stored}
    if isinstance(golden, list):
        return [told_order(golden[min(i, len(golden) - 1)], each) for i, each in enumerate(stored)]
    return stored


def applied_body(each):
    """What the operator applied for it, or None of what it does not apply."""
    last = each["metadata"]["name"].rsplit("-", 1)[-1]
    name = {"Service": "service", "PodDisruptionBudget": "budget", "NetworkPolicy": f"policy-{last}"}.get(each["kind"])
    if not name:
        return None
    golden = json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))
    return json.dumps(told_order(golden, each), separators=(",", ":"))


def body_hash(text):
    """op_body_hash in operator/core/memo.c: by it an operator knows what it need not apply."""
    state = 0xcbf29ce484222325
    for byte in text.encode():
        state = (state ^ byte) * 0x100000001b3 & 0xffffffffffffffff
    return f"{state:016x}"


class Copier:
    """The model's objects as texts in which only a job's own words are to be replaced."""

    def __init__(self, folder):
        self.objects = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(Path(folder).glob("*.json"))]
        job = next(each for each in self.objects if each["kind"] == "TrainingJob")
        self.uid = job["metadata"]["uid"]
        self.pods = []
        for each in self.objects:
            each["metadata"].pop("resourceVersion", None)
            if each["kind"] == "Pod":
                labels = each["metadata"]["labels"]
                self.pods.append((each["metadata"]["name"], labels.get("ringmaster.dev/worker"), labels.get("ringmaster.dev/attempt")))
        self.bodies = [applied_body(each) for each in self.objects]
        for each, body in zip(self.objects, self.bodies):
            assert not body or body_hash(body) == each["metadata"]["annotations"][APPLIED], f"the operator has applied something else than {body}"
            if each["kind"] == "Service":  # an address of its own for each of thousands would keep the API server busy
                each["spec"].update({"clusterIP": "None", "clusterIPs": ["None"]})
        self.texts = [(each["kind"], each["metadata"]["name"], each["metadata"]["uid"], json.dumps(each)) for each in self.objects]

    def words(self, number):
        """What becomes what, long names before those that begin like them."""
        name, uid = name_of(number), uid_of(0, number)
        words = {}
        for pod, worker, attempt in self.pods:
            words[pod] = (f"{name}-w{worker}-{operator_rig.name_hash(uid, 'worker', f'{worker}/{attempt}')}" if worker is not None
                          else f"{name}-coordinator-{operator_rig.name_hash(uid, 'coordinator', '1/0')}")
        words[identity(MODEL, self.uid)] = identity(name, uid)
        words[MODEL] = name
        words[self.uid] = uid
        words[NODE] = f"node-{number // JOBS_A_NODE:05d}"
        words['"127.0.0.1"'] = f'"{address_of(number)}"'
        return words

    def copies(self, number):
        """Key and text of each object of a job."""
        words = self.words(number)
        for place, (kind, name, uid, text) in enumerate(self.texts):
            if kind == "Node":
                if number % JOBS_A_NODE:
                    continue
                text = text.replace(uid, uid_of(place + 1, number)).replace(NODE, words[NODE])
                yield f"/registry/minions/{words[NODE]}", text
                continue
            if kind != "TrainingJob":
                text = text.replace(uid, uid_of(place + 1, number))
            body = self.bodies[place] or ""
            hashed = self.objects[place]["metadata"].get("annotations", {}).get(APPLIED)
            for old, new in words.items():
                text, name, body = text.replace(old, new), name.replace(old, new), body.replace(old, new)
            if body:
                text = text.replace(hashed, body_hash(body))
            yield f"/registry/{PREFIX[kind]}/{self.objects[place]['metadata']['namespace']}/{name}", text


def put(batch):
    body = json.dumps({"success": [{"requestPut": {"key": base64.b64encode(key.encode()).decode(),
                                                   "value": base64.b64encode(text.encode()).decode()}} for key, text in batch]})
    request = urllib.request.Request(ETCD, body.encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=120) as answer:
        assert json.load(answer)["succeeded"], "etcd takes no objects"


def seed(folder, jobs):
    copier, batch, size, objects, whole = Copier(folder), [], 0, 0, 0
    for number in range(jobs):
        for key, text in copier.copies(number):
            batch.append((key, text))
            size += len(text)
            objects += 1
            if len(batch) == AT_ONCE or size > AT_ONCE_BYTES:
                put(batch)
                whole += size
                batch, size = [], 0
    if batch:
        put(batch)
    print(json.dumps({"objects": objects, "bytes": whole + size}))


# --- coordinators ---

class Job:
    """One coordinator's word."""

    def __init__(self, name, uid, number, workers):
        self.name, self.identity, self.workers = name, identity(name, uid), workers
        self.phase = number * 0.618034 % 1  # so that they don't all speak at once
        self.asked = 0

    def revision(self, now):
        return int(now / NEWS_EVERY_S + self.phase) + 1

    def news_in(self, now):
        return NEWS_EVERY_S * (1 - (now / NEWS_EVERY_S + self.phase) % 1)

    def page(self, now, told):
        saves = int(now / SAVE_EVERY_S + self.phase)
        step = 100000 + int(now * 4)
        head = {"revision": self.revision(now), "job": self.identity, "name": self.name, "term": 1, "preparing": False, "state": "Training",
                "message": f"training with {self.workers} workers", "mixedHardware": False, "program": False,
                "progress": {"step": step, "steps": 9000000, "loss": 2.0611, "heldOutLoss": 2.25, "gradientNorm": 0.75, "clipFactor": 1.0,
                             "learningRate": 0.125, "tokensPerSecond": 16384.0, "samplesPerSecond": None, "stepsPerSecond": 4.0,
                             "etaSeconds": (9000000 - step) / 4},
                "goodput": {"ratio": 0.98, "productiveSeconds": 36000.0 + now, "checkpointSeconds": 12.0, "recoverySeconds": 13.0,
                            "waitingSeconds": 14.0, "reworkSeconds": 15.0}}
        return json.dumps(head)[:-1].encode() + rest_of_page(self.workers, saves, max(0, min(EVENTS, saves + EVENTS - told)))


@lru_cache(maxsize=256)
def rest_of_page(workers, saves, events):
    """What is alike in all jobs that saved as often."""
    members = [{"worker": i, "attempt": 1} for i in range(workers)]

    def save(number):
        return {"step": 1000 * number, "uri": f"s3://bucket/run/step-{1000 * number:08d}", "bytes": 1490000000}
    rest = {"ring": {"generation": 1, "term": 1, "begun": 1, "size": workers, "formedTime": 1790000000000, "members": members},
            "workers": [{**member, "phase": "training", "rank": rank, "pace": {"lanes": 2, "laneMs": 20.5}} for rank, member in enumerate(members)],
            "lost": [], "left": [], "quarantined": [], "checkpoint": {**save(saves + 100), "savedTime": int(1000 * SAVE_EVERY_S) * saves}, "checkpointInterval": None,
            "storeWaiting": None, "fenced": True, "checkpointWaiting": None, "secondTransport": None, "failures": 0, "recoveries": 0,
            "lanesDealt": 0, "lastRecovery": None, "stepsRedone": {"announced": 0, "sudden": 0}, "result": None,
            "events": [{"sequence": saves + i + 1, "event": "checkpointSaved", "time": int(1000 * SAVE_EVERY_S) * (saves - EVENTS + i + 1),
                        **save(saves + 100 - EVENTS + i + 1), "ms": 1234.5} for i in range(EVENTS - events, EVENTS)]}
    return b"," + json.dumps(rest)[1:].encode()


class Office:
    """All of them: by whose address was asked, and what was asked of them together."""

    def __init__(self, jobs, workers, uid):
        self.model = Job(MODEL, uid, 0, workers)
        self.jobs = [Job(name_of(i), uid_of(0, i), i, workers) for i in range(jobs)]
        self.open = self.questions = self.seen = 0

    def at(self, address):
        return self.model if address == "127.0.0.1" else self.jobs[number_at(address)]

    def counts(self):
        return {"open": self.open, "questions": self.questions, "seen": self.seen}


class Connection(asyncio.Protocol):
    """One that asks; the job is that of the address which was called."""

    def __init__(self, office):
        self.office, self.job, self.transport, self.waiting, self.text = office, None, None, None, b""

    def connection_made(self, transport):
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.transport, self.job = transport, self.office.at(transport.get_extra_info("sockname")[0])
        self.office.open += 1

    def connection_lost(self, exc):
        self.office.open -= 1
        if self.waiting:
            self.waiting.cancel()

    def data_received(self, data):
        self.text += data
        if not self.text.endswith(b"\r\n\r\n"):
            return
        target, self.text = self.text.split(b" ", 2)[1].decode(), b""
        office, job, now = self.office, self.job, time.time()
        office.questions += 1
        office.seen += job.asked == 0
        job.asked += 1
        asked = dict(pair.split("=") for pair in target.partition("?")[2].split("&") if pair)
        after, told = asked.get("after"), int(asked.get("told", 0))
        wait = min(job.news_in(now), PATIENCE_S) if after == str(job.revision(now)) else 0
        self.waiting = asyncio.get_running_loop().call_later(wait, self.answer, told)

    def answer(self, told):
        self.waiting = None
        body = self.job.page(time.time(), told)
        self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)


async def tell(office, writer):
    body = json.dumps(office.counts()).encode()
    writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    await writer.drain()
    writer.close()


async def coordinators(jobs, workers, uid):
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    office, loop = Office(jobs, workers, uid), asyncio.get_running_loop()

    async def counts(_reader, writer):
        await tell(office, writer)
    await asyncio.start_server(counts, "127.0.0.1", COUNTS_PORT)
    server = await loop.create_server(lambda: Connection(office), "0.0.0.0", PORT, backlog=4096)
    await server.serve_forever()


def main():
    if sys.argv[1] == "seed":
        seed(sys.argv[2], int(sys.argv[3]))
    else:
        asyncio.run(coordinators(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]))


if __name__ == "__main__":
    main()
