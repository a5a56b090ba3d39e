"""What it costs those who train that one more joins: how long they stand still, and what of their time is gone until it computes its first lane.

Two workers train; a third is started by a drill. It gets the state while the others go on (it listens), or, as it was before, while all wait: both
by turns, the same steps. Once more with connections that carry 50 MB a second each, the ring's too, as between machines of a modest network. `still`: between the last step without and the first one with the newcomer, less what
such a step takes later on. `lost`: from the drill until then, less the steps that were made meanwhile, at their usual length.
"""

import statistics
import tempfile
from pathlib import Path

import rig

MODELS = {  # by the state that a newcomer gets: 12 bytes a parameter
    "2.4 MB": {"trainer__model__layers": 4, "trainer__model__heads": 4, "trainer__model__width": 64, "trainer__model__context": 64},
    "150 MB": {"trainer__model__layers": 4, "trainer__model__heads": 8, "trainer__model__width": 512, "trainer__model__context": 64},
    "1.5 GB": {"trainer__model__layers": 12, "trainer__model__heads": 12, "trainer__model__width": 768, "trainer__model__context": 64,
               "trainer__model__vocabulary": 50257},
}
PACED = 50_000_000
RUNS = [("2.4 MB", False), ("150 MB", False), ("150 MB", True), ("1.5 GB", False)]
SETTLED = 6  # steps before the drill, and behind the first one with the newcomer
BY = {"while others train": "1", "while all wait": "0"}


def lengths(times, first, last):
    return [times[step + 1] - times[step] for step in range(first, last) if step in times and step + 1 in times]


def measure(run):
    """Milliseconds of one run: a usual step, still, lost, and until the first lane."""
    drill = run.the("drill")["time"]
    steps = run.of("step")
    times = {event["step"]: event["time"] for event in steps}
    first = next(event["step"] for event in steps if event["world"] == 3)
    asked = min(step for step in times if times[step] >= drill)
    before = statistics.median(lengths(times, asked - SETTLED - 1, asked - 1))
    after = statistics.median(lengths(times, first, first + SETTLED))
    made = first - asked + (times[asked] - drill) / before
    return {"step": before, "still": times[first] - times[first - 1] - after, "lost": times[first] - drill - made * before,
            "first": times[first] - drill, "steps": first - asked}


def join(model, listens, paced):
    """Ends once the newcomer has made some steps."""
    with tempfile.TemporaryDirectory() as folder:
        fields = {**model, "trainer__batch__lanes": 6, "trainer__batch__laneSequences": 1, "workers__target": 2, "workers__max": 3, "workers__min": 2,
                  "trainer__threads": 1, "trainer__steps": 100000, "checkpoint__everySteps": 0}
        env = {"RINGMASTER_LISTEN": listens}
        if paced:
            fields["trainer__ringStreams"] = 1  # so that the ring goes over TCP, and is as slow
            env.update(LD_PRELOAD=str(rig.preloadable("paced", folder)), PACED_BYTES=str(PACED))
        run = rig.Run(rig.make_job(Path(folder), **fields), "--drill", f"join@{SETTLED + 4}", env=env)
        try:
            run.read_until("step", world=3)
            first = run.of("step")[-1]["step"]
            run.read_until("step", step=first + SETTLED + 1)
            return measure(run)
        finally:
            run.clean_up()


def bench(rounds, say):
    lines = ["2 workers with a thread each, and one that joins; milliseconds, medians:", "",
             "| state | connections | it comes | a step | the others stand still | of their time is lost | until its first lane |",
             "|---|---|---|---|---|---|---|"]
    rows = []
    for size, paced in RUNS:
        found = {by: [] for by in BY}
        for number in range(rounds):
            for by, listens in BY.items():
                found[by].append(join(MODELS[size], listens, paced))
            say(f"{size}{', paced' if paced else ''}: round {number + 1} of {rounds}")
        middle = {by: {key: statistics.median(one[key] for one in each) for key in each[0]} for by, each in found.items()}
        lines += [f"| {size} | {'50 MB/s each' if paced else 'as fast as they go'} | {by} | {m['step']:.0f} | {m['still']:.0f} | {m['lost']:.0f} | {m['first']:.0f} |"
                  for by, m in middle.items()]
        with_it, without = (middle[by] for by in BY)
        rows.append((f"a join at {size}{', 50 MB/s each' if paced else ''}: the others stand still", f"{with_it['still']:.0f} ms", f"{without['still']:.0f} ms while all wait", ""))
    return lines, rows
