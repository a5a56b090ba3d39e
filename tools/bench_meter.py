"""The operator's meter over the pods of a trace, beside the same sum by hand.

meter_tool (tests/meter_rig) runs the operator's pure core over pods that come and go as a trace's machines do: they have zones of their
own whose prices move each hour, and a share of their machines. Its process ends now and then, and another one goes on from the status.
The sum by hand knows none of it: each pod's hours times share times price, by moments that are no whole seconds, and of a machine that
vanishes to the moment when it did, at which its vendor's bill ends. The operator hears of it later: the newest lease of such a machine is
up to 10 s old, Kubernetes looks each 5 s for one that is older than 50 s, and says no more than that."""

import itertools
import json
import os
import random
import subprocess
import tempfile
import time
from fractions import Fraction
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOOLS = Path(os.environ.get("RINGMASTER_TOOLS", ROOT / "build/test/tests"))
JOB = ROOT / "tests/unit/operator/core/golden/job.json"
BEGUN = 1790000000  # of the epoch
HOUR = 3600
ZONES, TYPE, ON_DEMAND = ("us-east-1a", "us-east-1b", "us-east-1c"), "p3.2xlarge", "3.06"
ASKED = {"us-east-1a": 7000, "us-east-1b": 4000, "us-east-1c": 8000}  # thousandths of a processor, of 8000
THERE = 8000
STAYS_S = 20  # a pod that has ended, until it is deleted
LEASE_S, LOOK_S, MISSED_S = 10, 5, 50  # how often a machine renews its lease; it is looked at; a lease's age that is too old
EACH_S, AWAY_S = 5400, 40  # an operator's process, and until the next one leads
GOAL = 0.01


def prices_of(hours, seed):
    """{zone: [price of each hour, as text]}: each wanders between a fifth and a half of what it costs on demand."""
    chance, found = random.Random(f"prices {seed}"), {}
    for zone in ZONES:
        price, found[zone] = 0.95, []
        for _ in range(int(hours) + 2):
            price = min(1.53, max(0.61, price * chance.uniform(0.93, 1.08)))
            found[zone].append(f"{price:.4f}")
    return found


def iso(second):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(second))


def price_lines(prices):
    yield "provider,region,zone,instance_type,capacity_type,price_per_hour,currency,valid_from"
    yield f",,,{TYPE},on-demand,{ON_DEMAND},USD,"
    for zone, of_hours in prices.items():
        yield from (f",,{zone},{TYPE},spot,{price},USD,{iso(BEGUN + hour * HOUR)}" for hour, price in enumerate(of_hours))


class Pod:
    """One life of a worker, by true moments: seconds since the trace's begin."""

    def __init__(self, worker, attempt, zone, spot, bound):
        self.worker, self.attempt, self.zone, self.spot, self.bound = worker, attempt, zone, spot, bound
        self.ended = self.seen = self.vanishes = None

    def end(self, at, vanishes, chance):
        self.ended, self.vanishes, self.seen = at, vanishes, at + STAYS_S
        if vanishes:
            self.seen = at - chance.uniform(0, LEASE_S) + MISSED_S + chance.uniform(0, LOOK_S)

    def line(self):
        """As the API server tells it, in whole seconds."""
        moments = " ".join(str(BEGUN + int(at)) for at in (self.bound, self.ended, self.seen))
        kind = "spot" if self.spot else "on-demand"
        return f"{self.worker} {self.attempt} {TYPE} {self.zone} {kind} {ASKED[self.zone]} {THERE} {moments} {'vanishes' if self.vanishes else 'ends'}"


def pods_of(moments, seed, vanish):
    """A pod a machine of the trace, the lowest free index; and a coordinator on demand. vanish: who goes does so without a word."""
    chance, late, there, attempts, pods = random.Random(f"pods {seed}"), random.Random(f"late {seed}"), {}, {}, []

    def come(at):
        worker = next(i for i in itertools.count() if i not in there)
        attempts[worker] = attempts.get(worker, 0) + 1
        there[worker] = Pod(worker, attempts[worker], chance.choice(ZONES), True, at + chance.uniform(0, 30))
        pods.append(there[worker])

    def go(at):
        pod = there.pop(chance.choice(sorted(there)))
        pod.end(max(at, pod.bound + 1) + chance.random(), vanish, late)

    for _ in range(moments[0][1]):
        come(0)
    for (_, before), (at, count) in itertools.pairwise(moments[:-1]):
        for _ in range(before - count):
            go(at)
        for _ in range(count - before):
            come(at)
    last = moments[-1][0]
    coordinator = Pod(-1, 1, ZONES[0], False, 0)
    for pod in [*there.values(), coordinator]:
        pod.end(max(last, pod.bound + 1) + chance.random(), False, late)
    return [coordinator, *pods]


def by_hand(pods, prices):
    """(spent, hours): nothing but multiplication."""
    spent = hours = Fraction(0)
    for pod in pods:
        share, at, end = Fraction(ASKED[pod.zone], THERE), Fraction(pod.bound), Fraction(pod.ended)
        while at < end:
            hour = int(at // HOUR)
            until = min(end, Fraction((hour + 1) * HOUR))
            price = Fraction(prices[pod.zone][hour] if pod.spot else ON_DEMAND)
            spent += (until - at) / HOUR * share * price
            hours += (until - at) / HOUR * share
            at = until
    return spent, hours


def job_text(most):
    job = json.loads(JOB.read_text(encoding="utf-8"))
    job["spec"]["workers"].update(min=1, target=most, max=most)
    return json.dumps(job)


def metered(pods, prices, most):
    """status.cost at the end."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "job").write_text(job_text(most), encoding="utf-8")
        (folder / "prices").write_text("\n".join(price_lines(prices)) + "\n", encoding="utf-8")
        (folder / "pods").write_text("".join(pod.line() + "\n" for pod in pods), encoding="utf-8")
        words = [word for what in ("job", "prices", "pods") for word in (f"--{what}", str(folder / what))]
        done = subprocess.run([str(TOOLS / "meter_tool"), *words, "--each", str(EACH_S), "--away", str(AWAY_S)],
                              capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"meter_tool: {done.stderr.strip()}")
    return json.loads(done.stdout)


def row(name, moments, seed, vanish):
    prices, pods = prices_of(moments[-1][0] / HOUR, seed), pods_of(moments, seed, vanish)
    cost = metered(pods, prices, max(count for _, count in moments))
    spent, hours = by_hand(pods, prices)
    money, time_share = Fraction(cost["spent"]) / spent, Fraction(cost["hours"]) / hours
    verdict = "met" if abs(money - 1) <= GOAL else "**missed**"
    return (f"| {name} | {'vanishes' if vanish else 'ends its pod first'} | {len(pods)} | {cost['processes']} | {float(hours):.1f} | {float(spent):.2f} "
            f"| {float(Fraction(cost['spent'])):.2f} | {float(time_share):.5f} | {float(money):.5f} | {verdict} |")


def lines(traces, seed):
    return ["| trace | who goes | pods | operator processes | hours of machines | cost by hand | by the meter | hours, of those by hand "
            "| cost, of that by hand | within 1 % |", "|---|---|---|---|---|---|---|---|---|---|",
            *(row(name, moments, seed, vanish) for name, moments in traces.items() for vanish in (False, True))]
