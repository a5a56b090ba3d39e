"""What the launchers are compared by: data-parallel training in PyTorch that knows of none of them.

    elastic_worker.py FOLDER [SAVE_EVERY]

Four layers, width 128, 12 sequences of 64 tokens a step, gloo, one thread a process. Rank 0 saves the whole state to FOLDER
after each step, or after each SAVE_EVERY, since a worker that was started anew has nothing else; each rank appends a line for each of its steps to
FOLDER/steps: a JSON object of step, world, rank, pid and time (s, the machine's monotonic clock). It trains until it is killed.
"""

import ctypes
import json
import os
import signal
import sys
import time
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).resolve().parent))

SEQUENCES, CONTEXT = 12, 64
PR_SET_PDEATHSIG = 1


def die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def say(steps, **what):
    os.write(steps, json.dumps({**what, "time": time.monotonic(), "pid": os.getpid()}).encode() + b"\n")


def train(torch, folder, save_every):
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
    steps = os.open(folder / "steps", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    while True:
        optimizer.zero_grad(set_to_none=True)
        parallel(tokens[:, :-1], tokens[:, 1:]).backward()
        optimizer.step()
        step += 1
        if rank == 0 and step % save_every == 0:
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, folder / "new.pt")
            os.replace(folder / "new.pt", saved)
        say(steps, step=step, world=world, rank=rank)


if __name__ == "__main__":
    die_with_parent()
    import torch

    train(torch, Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1)
