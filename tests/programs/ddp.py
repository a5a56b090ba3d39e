"""Data-parallel training with gloo, as PyTorch's own pages have it: nothing in it is Ringmaster's.

It saves itself after each step, goes on from what it saved, and writes a line for each step that it makes.

    ddp.py FOLDER STEPS [SECONDS]

SECONDS: that a step takes at least, so that there is something to interrupt, until there is FOLDER/hurry.
"""

import os
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

FOLDER, STEPS = sys.argv[1], int(sys.argv[2])
SECONDS = float(sys.argv[3]) if sys.argv[3:] else 0


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(1)
    model = DistributedDataParallel(torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    path, begin = os.path.join(FOLDER, "saved.pt"), 0
    if os.path.exists(path):
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        begin = saved["step"]
    for step in range(begin, STEPS):
        x = torch.randn(4, 8)
        loss = ((model(x) - x.sum(1, keepdim=True)) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if not os.path.exists(os.path.join(FOLDER, "hurry")):
            time.sleep(SECONDS)
        if dist.get_rank() == 0:
            # The line first: who is killed between the two makes that step again, and none is missing.
            with open(os.path.join(FOLDER, "steps"), "a", encoding="utf-8") as out:
                out.write(f"{step + 1} {os.environ['TORCHELASTIC_RESTART_COUNT']}\n")
            torch.save({"model": model.state_dict(), "step": step + 1}, path + ".new")
            os.replace(path + ".new", path)
        dist.barrier()
    dist.destroy_process_group()


main()
