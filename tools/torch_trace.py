#!/usr/bin/env python3
"""How many steps torchrun makes while machines come and go: the drills of `ringmaster run`, on launchers with one worker each.

    tools/torch_trace.py --workers 4 --least 2 --most 4 --seconds 90 --drill kill:3@12.5s --drill join@20s

kill:W@Ts kills launcher W and its worker at once; join@Ts starts one more, at the lowest free index. The time begins with the first step
that all workers make together. Of what it saves (tools/elastic_worker.py: the whole state, each step) nothing is lost. Worker 0 serves the
rendezvous and is not to be killed. Timeouts are the quick ones of tools/torch_elastic.py. Prints one JSON object: torch's version, steps
kept in that time, steps made again. Where torch is not installed: a sentence, exit 77.
"""

import argparse
import itertools
import json
import re
import sys
import tempfile
import time
from pathlib import Path

import elastic_steps
import torch_elastic


def read(drill):
    """(seconds, worker or None: one more comes)"""
    found = re.fullmatch(r"(?:kill:(\d+)|join)@([\d.]+)s", drill)
    if not found:
        raise argparse.ArgumentTypeError(f"{drill} is neither kill:W@Ts nor join@Ts")
    return float(found[2]), found[1] and int(found[1])


def play(drills, nodes, start, began):
    for at, worker in sorted(drills, key=lambda drill: drill[0]):
        time.sleep(max(0.0, began + at - time.monotonic()))
        if worker is None:
            index = next(i for i in itertools.count() if i not in nodes)
            nodes[index] = start(index)
        else:
            nodes.pop(worker).kill()


def count(steps, first, seconds):
    """(steps kept within so many seconds of that one, steps made again): of one rank, by what it wrote down."""
    made = [step["step"] for step in steps if step["rank"] == 0 and first["time"] <= step["time"] <= first["time"] + seconds]
    return max(made) - first["step"], len(made) - len(set(made))


def measure(arguments, conf):
    port = torch_elastic.free_port()
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        steps = elastic_steps.Steps(Path(name))

        def start(index):  # who serves the rendezvous stays
            host = f"is_host={str(index == 0).lower()}"
            return torch_elastic.Node(port, Path(name), [*conf, host], arguments.least, arguments.most)
        nodes = {index: start(index) for index in range(arguments.workers)}
        try:
            first = steps.wait(lambda s: s["world"] == arguments.workers and s["rank"] == 0, torch_elastic.BEGIN_S)
            if not first:
                raise RuntimeError("the workers did not begin to train: " + nodes[0].tail())
            play(arguments.drill, nodes, start, first["time"])
            time.sleep(max(0.0, first["time"] + arguments.seconds - time.monotonic()))
            steps.look()
            return count(steps.all, first, arguments.seconds)
        finally:
            for node in nodes.values():
                node.kill()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, required=True, help="to begin with")
    parser.add_argument("--least", type=int, required=True)
    parser.add_argument("--most", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--drill", type=read, action="append", default=[])
    arguments = parser.parse_args()
    try:
        import torch
    except (ImportError, OSError, ValueError) as why:
        print(f"torch_trace: PyTorch can't be imported here: {why}", file=sys.stderr)
        return 77
    kept, again = measure(arguments, torch_elastic.QUICK)
    print(json.dumps({"torch": torch.__version__, "steps": kept, "stepsRedone": again}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
