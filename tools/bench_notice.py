"""From a notice of a machine's end to `leaving`, and what listening costs while there is none.

Real programs on this machine: a coordinator and a worker for each cloud as pods run them (tests/e2e/pod_rig.py), beside each worker a
`ringmaster-agent node`, and behind that a cloud's metadata as the tests have it (tests/metadata_rig). A notice is told, heard, and taken
back, again and again, each at a moment of chance: who is told that its machine will go says `leaving` at once and trains on, and so one job
hears as many as one likes. Its time begins right before the metadata has it and ends when the worker has said `leaving` and the
coordinator has told of it, whichever is later, by the clock that all of them share."""

import contextlib
import http.client
import json
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

from bench_compare import quarters

ROOT = Path(__file__).resolve().parent.parent
sys.path += [str(ROOT / "tests/e2e"), str(ROOT / "tests")]

import pod_rig  # noqa: E402  (its folder is on the path only now)
import rig  # noqa: E402
from metadata_rig.server import Metadata  # noqa: E402

# Seconds: the vendors' advice is a question each second where there is no answer that waits for a change.
GOALS = {"aws": 1.5, "azure": 1.5, "gce": 0.1}
SOURCES = {"aws": "aws-spot", "azure": "azure-scheduled-event", "gce": "gce-preempted"}
LEAD_S = 100
CALM_S = 2.0  # between two words about one machine at least: no cloud tells two within a second
NODE_PORT = 7072
WITNESS = "&alt=text"  # a parameter that Google has, and the agent does not send


def percentile(values, share):
    """The least value that so many of all do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-int(share * 1000) * len(ordered) // 1000) - 1)]


# ---- programs ----

class Node:
    """`ringmaster-agent node`, asking that metadata."""

    def __init__(self, address, url):
        self.said = []
        self.process = subprocess.Popen([str(rig.BIN / "ringmaster-agent"), "node", "--listen", address, "--port", str(NODE_PORT), "--metadata", url],
                                        env={"RINGMASTER_LOG": "info"}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        threading.Thread(target=lambda: self.said.extend(self.process.stderr), daemon=True).start()
        rig.until(lambda: any("listening" in line for line in self.said) or self.process.poll() is not None, "it listens", rig.DEADLINE_S)
        if self.process.poll() is not None:
            raise RuntimeError(f"ringmaster-agent node: {''.join(self.said)}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(timeout=30)


def endless_spec(folder, fields):
    """What a coordinator is given of a job that never ends: `run` writes it down for the same job of a hundred steps."""
    job = rig.make_job(folder / "spec", trainer__steps=100, elasticity__joinWindow="2s", **fields)
    run = rig.Run(job)
    try:
        spec = json.loads(pod_rig.spec_told_by(run))
    finally:
        run.clean_up()
    spec["spec"]["trainer"]["steps"] = 10 ** 9
    spec["spec"]["checkpoint"]["uri"] = f"file://{folder}/checkpoints"
    return json.dumps(spec)


@contextlib.contextmanager
def job(folder, fields, workers, environment):
    """A coordinator and so many workers that train; environment(group, index): what worker `index` finds in its own."""
    group = pod_rig.Pods(folder / "pods", endless_spec(folder, fields))
    try:
        group.members = [group.worker(index, env=environment(group, index)) for index in range(workers)]
        group.leader = group.coordinator()
        group.ring(*((index, 1) for index in range(workers)))
        yield group
    finally:
        group.clean_up()


def hears(worker):
    rig.until(lambda: "notices are heard" in worker.text(), "it hears of its machine", rig.DEADLINE_S)


# ---- one notice ----

def said(program, since, wanted):
    """The first JSON line behind those, of which that holds."""
    for line in program.lines[since:]:
        with contextlib.suppress(ValueError):
            tree = json.loads(line)
            if wanted(tree):
                return tree
    return None


def until_said(program, since, wanted, what):
    return rig.until(lambda: said(program, since, wanted), what, rig.DEADLINE_S)


class Witness:
    """A plain client beside the agent, of GCE's metadata, whose answer waits for the change: what it waits is this machine's doing."""

    def __init__(self, metadata):
        self.answered, self.metadata = None, metadata
        before = self.asked()
        self.thread = threading.Thread(target=self.wait, daemon=True)
        self.thread.start()
        rig.until(lambda: self.asked() > before, "it has asked", rig.DEADLINE_S)

    def asked(self):
        return sum(path.endswith(WITNESS) for _, path in self.metadata.asked)

    def wait(self):
        connection = http.client.HTTPConnection(urlsplit(self.metadata.url).netloc, timeout=90)
        tag = self.metadata.etags["preempted"]
        connection.request("GET", f"/computeMetadata/v1/instance/preempted?wait_for_change=true&timeout_sec=60&last_etag={tag}{WITNESS}",
                           headers={"Metadata-Flavor": "Google"})
        connection.getresponse().read()
        self.answered = time.time()
        connection.close()

    def seconds_since(self, began):
        self.thread.join(timeout=90)
        return self.answered - began


def one_notice(group, index, cloud, metadata):
    """(seconds until the worker says `leaving`, until the coordinator tells of it, until a plain client had the same answer, where one can)"""
    worker, leader = group.members[index], group.leader
    mine, told = len(worker.lines), len(leader.lines)
    beside = Witness(metadata) if cloud == "gce" else None
    began = time.time()
    metadata.reclaim(LEAD_S)
    leaving = until_said(worker, mine, lambda t: t.get("message") == "leaving" and t.get("notice") == SOURCES[cloud], f"it leaves: {cloud}")
    event = until_said(leader, told, lambda t: t.get("event") == "noticeReceived" and t["worker"] == index and t["certainty"] == "will", f"it is told: {cloud}")
    metadata.spare()
    until_said(leader, told, lambda t: t.get("event") == "noticeWithdrawn" and t["worker"] == index, f"it is withdrawn: {cloud}")
    return leaving["time"] / 1000 - began, event["time"] / 1000 - began, beside.seconds_since(began) if beside else None


def notices(fields, count, seed, say):
    """{cloud: [(seconds until `leaving`, until the coordinator's event, until a plain client's answer or None)]}"""
    chance, found = random.Random(seed), {cloud: [] for cloud in GOALS}
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/dev/shm")))
        metadata = {cloud: stack.enter_context(Metadata(cloud)) for cloud in GOALS}

        def beside_a_node(group, index):
            place = group.new_ip()
            stack.enter_context(Node(place, list(metadata.values())[index].url))
            return {"RINGMASTER_POD_HOST_IP": place, "RINGMASTER_POD_NODE_PORT": str(NODE_PORT)}
        group = stack.enter_context(job(folder, fields, len(GOALS), beside_a_node))
        for worker in group.members:
            hears(worker)
        for number in range(count):
            for index, cloud in enumerate(GOALS):
                time.sleep(CALM_S / len(GOALS) + chance.random())  # at no moment that the agent could know
                found[cloud].append(one_notice(group, index, cloud, metadata[cloud]))
            say(f"notice {number + 1} of {count}: " + "; ".join(f"{cloud} {max(took[-1][:2]) * 1000:.0f} ms" for cloud, took in found.items()))
    return found


def latency_lines(found):
    lines = ["| cloud | notices | to the worker's `leaving`, p50 | to the coordinator's word, p50 | the later of both, p50 | p99 | worst | goal | |",
             "|---|---|---|---|---|---|---|---|---|"]
    for cloud, took in found.items():
        leaving, told, plain = zip(*took)
        both = [max(pair) for pair in zip(leaving, told)]
        cells = [*map(statistics.median, (leaving, told, both)), percentile(both, 0.99), max(both), GOALS[cloud]]
        verdict = "met" if max(both) <= GOALS[cloud] else "**missed**"
        lines.append(f"| {cloud} | {len(took)} | " + " | ".join(f"{cell * 1000:.0f} ms" for cell in cells) + f" | {verdict} |")
        if None not in plain:
            middle, high, worst = (f"{value * 1000:.0f} ms" for value in (statistics.median(plain), percentile(plain, 0.99), max(plain)))
            lines.append(f"| {cloud}, a plain client beside it | {len(plain)} | | | {middle} | {high} | {worst} | | |")
    return lines


# ---- nothing to hear ----

def processor_s(pids):
    """Seconds of processor that living processes have had, all threads together."""
    used = 0
    for pid in pids:
        for file in Path(f"/proc/{pid}/task").glob("*/schedstat"):
            with contextlib.suppress(OSError):
                used += int(file.read_text(encoding="ascii").split()[0])
    return used / 1e9


class Stretch:
    """Of a job that trains undisturbed for so many seconds: steps a second, processor ms a step, and what single programs had in a second."""

    def __init__(self, group, nodes, seconds):
        agents, before = [worker.pid for worker in group.members], {}
        self.kinds = {"node": [node.process.pid for node in nodes], "agents": agents,
                      "all": [*rig.marked_processes(group.mark), *(node.process.pid for node in nodes)]}
        began, first = time.monotonic(), group.status()["progress"]["step"]
        for kind, pids in self.kinds.items():
            before[kind] = processor_s(pids)
        time.sleep(seconds)
        used = {kind: processor_s(pids) - before[kind] for kind, pids in self.kinds.items()}
        steps, took = group.status()["progress"]["step"] - first, time.monotonic() - began
        self.a_second, self.ms_a_step = steps / took, used["all"] * 1000 / steps
        self.node_ms, self.agents_ms = (used[kind] * 1000 / took for kind in ("node", "agents"))


LISTENED = ("aws", "azure")  # a question each second; GCE's wait for an answer


def stretch(fields, listens, seconds):
    """The job with an agent of its machine beside each worker, or without any."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/dev/shm")))
        nodes = []

        def beside_a_node(group, index):
            if not listens:
                return {}
            place, metadata = group.new_ip(), stack.enter_context(Metadata(LISTENED[index]))
            nodes.append(stack.enter_context(Node(place, metadata.url)))
            return {"RINGMASTER_POD_HOST_IP": place, "RINGMASTER_POD_NODE_PORT": str(NODE_PORT)}
        group = stack.enter_context(job(folder, fields, len(LISTENED), beside_a_node))
        for worker in group.members if listens else []:
            hears(worker)
        return Stretch(group, nodes, seconds)


def rounds_of(fields, count, seconds, say):
    """[(without, with, without)]: the outer two, one against the other, say how much two that are alike differ."""
    found = []
    for number in range(count):
        found.append(tuple(stretch(fields, listens, seconds) for listens in (False, True, False)))
        say(f"round {number + 1} of {count}: " + ", ".join(f"{s.a_second:.0f} steps/s" for s in found[-1]))
    return found


def calm_row(what, unit, found, value):
    """One of Stretch's values, with notices listened for against without; met where it differs no more than two without do."""
    taken = [tuple(value(stretch) for stretch in three) for three in found]
    ratios = [heard / ((before + after) / 2) for before, heard, after in taken]
    alike = [after / before for before, _, after in taken]
    low, high = quarters(alike)
    ratio = statistics.median(ratios)
    verdict = "met" if abs(ratio - 1) <= max(abs(low - 1), abs(high - 1)) else "**missed**"  # which of two was first is chance
    reach = " to ".join(f"{q:.3f}" for q in quarters(ratios))
    return (f"| {what}, {unit} | {statistics.median((a + c) / 2 for a, _, c in taken):.3g} | {statistics.median(b for _, b, _ in taken):.3g} | {ratio:.3f} "
            f"| {reach} | {low:.3f} to {high:.3f} | {len(found)} | {verdict} |")


def calm_lines(found):
    node = statistics.median(heard.node_ms / len(LISTENED) for _, heard, _ in found)
    agents = statistics.median((heard.agents_ms - (a.agents_ms + c.agents_ms) / 2) / len(LISTENED) for a, heard, c in found)
    return ["| | without | with | with / without | middle half | of two without | rounds | nothing measurable |", "|---|---|---|---|---|---|---|---|",
            calm_row("steps", "a second", found, lambda s: s.a_second),
            calm_row("processor time of all programs", "ms a step", found, lambda s: s.ms_a_step), "",
            f"By itself `ringmaster-agent node` takes {node:.2f} ms of a processor's second, and a worker's agent {agents:+.2f} ms more where it listens."]
