#!/usr/bin/env python3
"""How long torchft takes until the next step when a worker dies, leaves or joins: what torch_elastic.py is for torchrun.

A lighthouse and up to 4 replica groups of one process each on this machine, 3 of them at least; the processes stay, gradients
go through torchft's own DistributedDataParallel over its ProcessGroupGloo, and who comes gets the state from a peer. The model is
that of elastic_worker.py, 3 sequences a process. A leave is SIGTERM, for which torchft has no handler.

Prints one JSON object, as torch_elastic.py, with `stepMs`, the time of a step before anything happened, and `ended`, how often a survivor
ended instead of going on (torchft 0.2's ddp.py asserts a future that a failed sum never had); of those there is no time. Where torch or
torchft is not installed: a sentence, exit 77.

--tuned: the lighthouse misses a process after 1.5 s and waits 1.5 s for others (5 s and 60 s as it comes), heartbeats every
50 ms, time-outs of 10 s (60 s). With 0.5 s, and 30 programs beside them on two cores, four did not come to train together.
"""

import argparse
import datetime
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import elastic_steps
import elastic_worker
from torch_elastic import BEGIN_S, LEAST, NODES, PATIENCE_S, TRAINED, free_port

TUNED = ["--heartbeat_timeout_ms", "1500", "--join_timeout_ms", "1500", "--quorum_tick_ms", "20"]


def train(folder, number, tuned):
    import torch
    import torch.distributed as dist
    import torch_step
    import torchft

    torch.set_num_threads(1)
    torch.manual_seed(1)
    shape = SimpleNamespace(layers=4, heads=4, width=128, context=elastic_worker.CONTEXT, vocabulary=256)
    model = torch_step.make_model(torch, shape)
    inner = torch_step.make_optimizer(torch, model)
    patience = datetime.timedelta(seconds=10 if tuned else 60)
    more = {"heartbeat_interval": datetime.timedelta(milliseconds=50)} if tuned else {}
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)

    def load(state):
        model.load_state_dict(state["model"])
        inner.load_state_dict(state["optimizer"])

    manager = torchft.Manager(
        pg=torchft.ProcessGroupGloo(timeout=patience), min_replica_size=LEAST, load_state_dict=load,
        state_dict=lambda: {"model": model.state_dict(), "optimizer": inner.state_dict()}, replica_id=f"bench_{number}_",
        store_addr="127.0.0.1", store_port=store.port, rank=0, world_size=1, timeout=patience, quorum_timeout=patience,
        connect_timeout=patience, hostname="127.0.0.1", **more)
    parallel, optimizer = torchft.DistributedDataParallel(manager, model), torchft.Optimizer(manager, inner)
    tokens = torch.randint(256, (elastic_worker.SEQUENCES // NODES, elastic_worker.CONTEXT + 1))
    steps = os.open(folder / "steps", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    while True:
        before = manager.current_step()
        optimizer.zero_grad()
        parallel(tokens[:, :-1], tokens[:, 1:]).backward()
        optimizer.step()
        if manager.current_step() != before:  # else it was given up, and is made again
            elastic_worker.say(steps, step=manager.current_step(), world=manager.num_participants(), rank=number)


class Group:
    """One process, in the environment of its lighthouse."""

    def __init__(self, folder, number, port, tuned):
        self.log = tempfile.TemporaryFile("w+")
        env = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "TORCHFT_LIGHTHOUSE": f"http://127.0.0.1:{port}"}
        self.process = subprocess.Popen([sys.executable, __file__, "--train", str(folder), str(number), *(["--tuned"] if tuned else [])],
                                        env=env, stdout=self.log, stderr=self.log, text=True, preexec_fn=elastic_worker.die_with_parent)

    def end(self, number=signal.SIGKILL):
        self.process.send_signal(number)
        self.process.wait()

    def tail(self):
        self.log.seek(0)
        return self.log.read()[-1500:]


def measure(event, tuned):
    before, after = (LEAST, NODES) if event == "join" else (NODES, LEAST)
    port = free_port()
    command = [str(Path(sys.executable).parent / "torchft_lighthouse"), "--min_replicas", str(LEAST), "--bind", f"127.0.0.1:{port}",
               *(TUNED if tuned else [])]
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name, tempfile.TemporaryFile("w+") as log:
        lighthouse = subprocess.Popen(command, stdout=log, stderr=log, preexec_fn=elastic_worker.die_with_parent)
        steps = elastic_steps.Steps(Path(name))
        groups = [Group(Path(name), i, port, tuned) for i in range(before)]
        try:
            if not steps.wait(lambda s: s["world"] == before and s["step"] >= TRAINED, BEGIN_S):
                raise RuntimeError("they did not begin to train: " + groups[0].tail())
            began, step_ms = elastic_steps.now(), steps.pace_ms()
            if event == "join":
                groups.append(Group(Path(name), before, port, tuned))
            else:
                groups[-1].end(signal.SIGKILL if event == "kill" else signal.SIGTERM)
            # Survivors that ended come back by nobody's hand: there is no step to wait for.
            survivors = groups[:LEAST]
            first = steps.wait(lambda s: s["time"] > began and s["world"] == after, PATIENCE_S,
                               given_up=lambda: any(group.process.poll() is not None for group in survivors))
            if not first and any(group.process.poll() is not None for group in survivors):
                print(f"torch_ft: a survivor ended: {next(g for g in survivors if g.process.poll() is not None).tail()}", file=sys.stderr)
                return None
            if not first:
                raise RuntimeError("the others did not go on: " + groups[0].tail())
            return first["time"] - began, steps.gap_before(first), steps.redone(began, first), step_ms
        finally:
            for group in groups:
                group.end()
            lighthouse.kill()
            lighthouse.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--event", choices=["kill", "leave", "join"], default="kill")
    parser.add_argument("--kills", type=int, default=3, help="how often")
    parser.add_argument("--tuned", action="store_true", help="short timeouts")
    parser.add_argument("--train", nargs=2, metavar=("FOLDER", "NUMBER"), help="be one of the processes")
    arguments = parser.parse_args()
    try:
        import torch
        import torchft  # noqa: F401
    except (ImportError, OSError, ValueError) as why:
        print(f"torch_ft: torchft can't be imported here: {why}", file=sys.stderr)
        return 77
    if arguments.train:
        train(Path(arguments.train[0]), int(arguments.train[1]), arguments.tuned)
    tries = [measure(arguments.event, arguments.tuned) for _ in range(arguments.kills)]
    found = [one for one in tries if one]
    seconds, stood, redone, pace = zip(*found) if found else ([], [], [], [])
    print(json.dumps({"torch": torch.__version__, "seconds": [round(s, 3) for s in seconds], "stoodStill": [round(s, 3) for s in stood],
                      "stepsRedone": redone, "stepMs": [round(ms, 1) for ms in pace], "ended": len(tries) - len(found)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
