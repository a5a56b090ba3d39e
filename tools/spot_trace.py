#!/usr/bin/env python3
"""Traces of spot machines: how many there were at which moment.

    tools/spot_trace.py p3                     machines as Parcae saw them on AWS' p3: 11.4 h, 32 asked for
    tools/spot_trace.py zone                   16 V100 of one zone as in SkyPilot's traces: most drops take all at once
    tools/spot_trace.py kills                  somebody is killed every 30 s, another one comes after 2 s
    tools/spot_trace.py --trace FILE           a trace in one of the three forms below, as the first of them

p3 and zone are made up, with the statistics of the published traces (STATISTICS; --statistics prints those of any trace). The
published files are nobody's to pass on here: whoever has them gives them by --trace. They are at github.com/JF-D/Parcae
(aws/traces/p3.csv) and github.com/skypilot-org/spot-traces.

A trace is one of

    moments  lines "SECONDS MACHINES": from then on there are so many. '#' begins a comment. The last line is the end.
    .csv     lines "MILLISECONDS,MACHINES", a header or none (Parcae); of several of one moment the last one counts
    .json    {"metadata": {"gap_seconds": S}, "data": [MACHINES, ...]}, one number each S seconds (SkyPilot)
"""

import argparse
import itertools
import json
import random
import statistics
import sys
from pathlib import Path

MOST = 64  # machines of a job

# Of the published traces: (least, most) that one made up may have. p3 is one trace, the zones are three.
STATISTICS = {
    "p3": {"hours": (11.3, 11.4), "mean": (23.0, 25.0), "least": (10, 12), "most": (32, 32), "drops": (79, 79), "lost": (167, 167),
           "lost at once": (6, 6), "median gap": (240, 240), "short gaps": (0.44, 0.48), "gains": (83, 83)},
    "zone": {"hours": (271, 395), "drops an hour": (0.31, 0.50), "lost a drop": (6.7, 11.1), "all at once": (0.36, 0.72),
             "without any": (0.37, 0.56), "most": (16, 16)},
}


class BadTrace(Exception):
    """A sentence for people."""


# ---- reading ----

def whole(text, what, where):
    try:
        value = int(text)
    except (TypeError, ValueError):
        raise BadTrace(f"{where}: {what} is no whole number: {str(text)[:40]!r}") from None
    if isinstance(text, float) or isinstance(text, bool):
        raise BadTrace(f"{where}: {what} is no whole number: {text!r}")
    return value


def machines_of(text, where):
    count = whole(text, "the number of machines", where)
    if not 0 <= count <= MOST:
        raise BadTrace(f"{where}: {count} machines; a job has 0 to {MOST}")
    return count


def seconds_of(text, where):
    try:
        value = float(text)
    except ValueError:
        raise BadTrace(f"{where}: no seconds: {text[:40]!r}") from None
    if not 0 <= value < 1e8:
        raise BadTrace(f"{where}: {text} is no moment of a trace")
    return value


def read_moments(text):
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#")[0].split()
        if not words:
            continue
        if len(words) != 2:
            raise BadTrace(f"line {number}: seconds and machines are wanted, there are {len(words)} words")
        found.append((seconds_of(words[0], f"line {number}"), machines_of(words[1], f"line {number}")))
    return found


def read_csv(text):
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        cells = [cell.strip() for cell in line.split(",")]
        if cells == [""] or (number == 1 and not cells[0].lstrip("-").isdigit()):
            continue
        if len(cells) < 2:
            raise BadTrace(f"line {number}: milliseconds and machines are wanted")
        found.append((whole(cells[0], "the moment", f"line {number}") / 1000, machines_of(cells[1], f"line {number}")))
    first = found[0][0] if found else 0
    return last_of_each([(at - first, count) for at, count in found])


def last_of_each(found):
    """Parcae has a line a machine, so that six which go at once are six lines of one moment."""
    return [now for now, after in itertools.zip_longest(found, found[1:]) if after is None or after[0] != now[0]]


def read_json(text):
    try:
        tree = json.loads(text)
        gap, data = tree["metadata"]["gap_seconds"], tree["data"]
    except (ValueError, KeyError, TypeError) as why:
        raise BadTrace(f"no JSON with metadata.gap_seconds and data: {why}") from None
    if isinstance(gap, bool) or not isinstance(gap, (int, float)) or not 0 < gap < 1e6:
        raise BadTrace(f"metadata.gap_seconds is {gap!r}")
    if not isinstance(data, list) or not data:
        raise BadTrace("data is no list of numbers")
    found = [(i * gap, machines_of(count, f"data[{i}]")) for i, count in enumerate(data)]
    return found + [(len(data) * gap, found[-1][1])]


def tidy(moments):
    """From second 0 to the end, without moments in which nothing changes."""
    for (before, _), (after, _) in itertools.pairwise(moments):
        if after <= before:
            raise BadTrace(f"second {after:g} is told after second {before:g}")
    if len(moments) < 2 or moments[0][0] != 0:
        raise BadTrace("a trace begins at second 0 and has an end")
    middle = [now for last, now in itertools.pairwise(moments[:-1]) if now[1] != last[1]]
    return [moments[0], *middle, (moments[-1][0], middle[-1][1] if middle else moments[0][1])]


def read(path):
    path = Path(path)
    form = {".csv": read_csv, ".json": read_json}.get(path.suffix, read_moments)
    try:
        return tidy(form(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, BadTrace) as why:
        raise BadTrace(f"{path}: {why}") from None


# ---- what is told of one ----

def statistics_of(moments):
    """What is published of the traces, and of any other."""
    held = [(after - at, count) for (at, count), (after, _) in itertools.pairwise(moments)]
    seconds = sum(length for length, _ in held)
    changes = [(at, count - before) for (_, before), (at, count) in itertools.pairwise(moments) if count != before]
    drops = [(at, -change) for at, change in changes if change < 0]
    gaps = [after - at for (at, _), (after, _) in itertools.pairwise(drops)]
    level = dict(moments)
    lost = sum(size for _, size in drops)
    counts = [count for _, count in held]
    return {
        "hours": seconds / 3600,
        "mean": sum(length * count for length, count in held) / seconds,
        "least": min(counts),
        "most": max(counts),
        "drops": len(drops),
        "drops an hour": len(drops) / (seconds / 3600),
        "lost": lost,
        "lost a drop": lost / len(drops) if drops else 0,
        "lost at once": max((size for _, size in drops), default=0),
        "median gap": statistics.median(gaps) if gaps else 0,
        "short gaps": sum(gap <= 180 for gap in gaps) / len(gaps) if gaps else 0,
        "all at once": sum(level[at] == 0 for at, _ in drops) / len(drops) if drops else 0,
        "without any": sum(length for length, count in held if count == 0) / seconds,
        "gains": sum(change > 0 for _, change in changes),
    }


def is_like(moments, name):
    found = statistics_of(moments)
    return all(least - 1e-9 <= found[what] <= most + 1e-9 for what, (least, most) in STATISTICS[name].items())


# ---- made up ----

MINUTE = 60


def p3_gaps(chance):
    """78 of them, minutes: 36 of 3 at most, 4 in the middle, and the others so long that all of it takes 11 hours."""
    short = [chance.choice((1, 2, 3)) for _ in range(36)] + [4] * 6
    weight = [chance.expovariate(1) for _ in range(36)]
    left = 672 - sum(short) - 5 * 36
    gaps = short + [5 + int(left * w / sum(weight)) for w in weight]
    chance.shuffle(gaps)
    return gaps


def p3_drops(chance):
    """{minute: machines lost}"""
    sizes = [1] * 79
    sizes[chance.randrange(79)] = 6
    while sum(sizes) < 167:
        i = chance.randrange(79)
        sizes[i] += sizes[i] < 5
    return dict(zip(itertools.accumulate(p3_gaps(chance), initial=chance.randrange(2, 9)), sizes))


def p3_try(chance):
    """How many there are wanders: what is to be had is another number each hour."""
    drops = p3_drops(chance)
    to_be_had = [chance.choice((14, 20, 25, 29, 32)) for _ in range(12)]
    gains = set(chance.sample([minute for minute in range(3, 682) if minute not in drops], 83))
    level, moments = 32, [(0.0, 32)]
    for minute in range(1, 682):
        if minute in drops:
            level -= drops[minute]
        elif minute in gains:
            level += min(max(1, min(4, to_be_had[minute // 60] - level)), 32 - level)
        if level < 10:
            return []
        if level != moments[-1][1]:
            moments.append((float(minute * MINUTE), level))
    return [*moments, (682.0 * MINUTE, level)]


def zone_try(chance):
    """A zone has all 16 or none for hours; where it has some, a few go, and come back later."""
    steps, level, moments, at = 3600, 0, [(0.0, 0)], 0
    while at < steps:
        away = level == 0
        at += 1 + int(chance.expovariate(1 / (22 if away else 11)))
        if level and chance.random() < 0.62:
            level = 0 if chance.random() < 0.72 else chance.randrange(1, level) if level > 1 else 0
        else:
            level = 16 if chance.random() < 0.7 else chance.randrange(level + 1, 17) if level < 16 else 16
        if level != moments[-1][1] and at < steps:
            moments.append((at * 300.0, level))
    return [*moments, (steps * 300.0, moments[-1][1])]


def made_up(name, seed):
    """The first that is like the published ones, of those that follow from the seed."""
    attempt = {"p3": p3_try, "zone": zone_try}[name]
    for number in itertools.count():
        moments = attempt(random.Random(f"{name} {seed} {number}"))
        if moments and is_like(moments, name):
            return moments


def kills(machines, every, hours):
    """One is killed every so many seconds, and another one comes after 2."""
    moments = [(0.0, machines)]
    for number in range(1, int(hours * 3600 / every)):
        moments += [(number * every * 1.0, machines - 1), (number * every + 2.0, machines)]
    return [*moments, (hours * 3600.0, machines)]


def of_name(name, seed=1):
    return kills(8, 30, 1) if name == "kills" else made_up(name, seed)


def stretch(moments, begin, length):
    """What happens from a moment on, for so long."""
    before = [count for at, count in moments if at <= begin]
    inside = [(at - begin, count) for at, count in moments if begin < at < begin + length]
    found = [(0.0, before[-1] if before else moments[0][1]), *inside]
    return [*found, (float(length), found[-1][1])]


def text_of(moments):
    return "".join(f"{at:.3f} {count}\n" for at, count in moments)


def main():
    parser = argparse.ArgumentParser(prog="tools/spot_trace.py", description=__doc__.splitlines()[0])
    parser.add_argument("name", nargs="?", choices=["p3", "zone", "kills"])
    parser.add_argument("--trace", help="a file instead")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--statistics", action="store_true")
    arguments = parser.parse_args()
    if bool(arguments.name) == bool(arguments.trace):
        parser.error("say p3, zone or kills, or --trace FILE")
    try:
        moments = read(arguments.trace) if arguments.trace else of_name(arguments.name, arguments.seed)
    except BadTrace as why:
        print(f"tools/spot_trace.py: {why}", file=sys.stderr)
        return 2
    print(json.dumps(statistics_of(moments), indent=1) if arguments.statistics else text_of(moments), end="\n" if arguments.statistics else "")
    return 0


if __name__ == "__main__":
    sys.exit(main())
