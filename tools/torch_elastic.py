#!/usr/bin/env python3
"""How long PyTorch's elastic launcher (torchrun) takes from the death of one of 4 workers to the survivors' next step.

Four launchers with one worker each on this machine (gloo, one thread each) train what `tools/bench recovery` trains: 4
layers, width 128, 12 sequences of 64 tokens a step. Rank 0 saves the whole state to memory after each step, since a
restarted worker has nothing else. One launcher and its worker get SIGKILL at once; the others go on with 3, as
--nnodes=3:4 allows. Prints one JSON object: torch's version, the seconds to the next optimizer step, the steps redone.
Where torch is not installed: a sentence, exit 77.

The rendezvous is told to wait 1 s instead of 30 s for more nodes, and to miss a dead one after 6 s instead of 15 s;
--defaults leaves both as they come.

In both cases the workers meet in a store of their own (TORCH_DISABLE_SHARE_RDZV_TCP_STORE): in the launchers' store they
look for each other under how often each was restarted, which differs after a loss, and mostly never meet.
"""

import argparse
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from types import SimpleNamespace

NODES, LEAST = 4, 3
KILL_AT, SEQUENCES, CONTEXT = 20, 12, 64
PATIENCE_S = 150
PR_SET_PDEATHSIG = 1
QUICK = ["last_call_timeout=1", "keep_alive_interval=2", "keep_alive_max_attempt=3"]


def die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def work(folder):
    """What torchrun runs: one worker, until it is killed."""
    die_with_parent()
    import torch
    import torch.distributed as dist
    import torch_step

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1)
    shape = SimpleNamespace(layers=4, heads=4, width=128, context=CONTEXT, vocabulary=256)
    model = torch_step.make_model(torch, shape)
    optimizer = torch_step.make_optimizer(torch, model)
    saved, step = folder / "state.pt", 0
    if saved.exists():
        state = torch.load(saved, weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        step = state["step"]
    parallel = torch.nn.parallel.DistributedDataParallel(model)
    tokens = torch.randint(256, (SEQUENCES // world, CONTEXT + 1))
    while True:
        optimizer.zero_grad(set_to_none=True)
        parallel(tokens[:, :-1], tokens[:, 1:]).backward()
        optimizer.step()
        step += 1
        if rank == 0:
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, folder / "new.pt")
            os.replace(folder / "new.pt", saved)
        print(json.dumps({"step": step, "world": world, "time": time.monotonic(), "pid": os.getpid()}), flush=True)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Node:
    """A launcher and its worker, in a session of their own so that one signal reaches both."""

    def __init__(self, port, folder, conf, heard):
        command = [sys.executable, "-m", "torch.distributed.run", f"--nnodes={LEAST}:{NODES}", "--nproc-per-node=1",
                   "--max-restarts=9", "--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{port}", "--rdzv-id=bench",
                   "--local-addr=127.0.0.1", f"--rdzv-conf={','.join(conf)}", __file__, "--worker", str(folder)]
        env = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo",
               "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=self.log, text=True,
                                        preexec_fn=die_with_parent)
        self.workers = set()
        threading.Thread(target=self.listen, args=(heard,), daemon=True).start()

    def listen(self, heard):
        for line in self.process.stdout:
            if line.startswith("{"):
                said = json.loads(line)
                self.workers.add(said["pid"])
                heard(said)

    def kill(self):
        for pid in [self.process.pid, *self.workers]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()

    def tail(self):
        self.log.seek(0)
        return self.log.read()[-1500:]


class Steps:
    def __init__(self):
        self.changed = threading.Condition()
        self.all = []

    def hear(self, said):
        with self.changed:
            self.all.append(said)
            self.changed.notify_all()

    def wait(self, wanted):
        """The first step for which that holds."""
        def found():
            return next((s for s in self.all if wanted(s)), None)
        with self.changed:
            self.changed.wait_for(found, PATIENCE_S)
            return found()


def measure(conf):
    steps, port = Steps(), free_port()
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        # The first one serves the rendezvous: else whoever is quickest would, and might be the one that dies.
        nodes = [Node(port, Path(name), [*conf, f"is_host={str(i == 0).lower()}"], steps.hear) for i in range(NODES)]
        try:
            if not steps.wait(lambda s: s["world"] == NODES and s["step"] >= KILL_AT):
                raise RuntimeError("four workers did not begin to train: " + nodes[0].tail())
            began = time.monotonic()
            nodes[-1].kill()
            after = steps.wait(lambda s: s["time"] > began and s["world"] == LEAST)
            if not after:
                raise RuntimeError("the survivors did not go on: " + nodes[0].tail())
            reached = max(s["step"] for s in steps.all if s["world"] == NODES)
            return after["time"] - began, max(0, reached - after["step"] + 1)
        finally:
            for node in nodes:
                node.kill()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--defaults", action="store_true", help="torchrun's own timeouts")
    arguments = parser.parse_args()
    try:
        import torch
    except (ImportError, OSError, ValueError) as why:
        print(f"torch_elastic: PyTorch can't be imported here: {why}", file=sys.stderr)
        return 77
    if arguments.worker:
        return work(arguments.worker)
    found = [measure([] if arguments.defaults else QUICK) for _ in range(arguments.kills)]
    print(json.dumps({"torch": torch.__version__, "seconds": [round(s, 3) for s, _ in found],
                      "stepsRedone": [n for _, n in found]}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
