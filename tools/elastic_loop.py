"""The training of elastic_worker.py as a loop of mode Elastic: the same model, data and optimizer, and nothing to save.

    elastic_loop.py FOLDER

Appends a line for each step to FOLDER/steps, as that one does; it knows neither rank nor world.
"""

import os
import sys
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).resolve().parent))

import elastic_worker  # noqa: E402
import ringmaster  # noqa: E402
import torch  # noqa: E402
import torch_step  # noqa: E402


def train(folder):
    torch.set_num_threads(1)
    torch.manual_seed(1)
    shape = SimpleNamespace(layers=4, heads=4, width=128, context=elastic_worker.CONTEXT, vocabulary=256)
    model = torch_step.make_model(torch, shape)
    optimizer = torch_step.make_optimizer(torch, model)
    tokens = torch.randint(256, (elastic_worker.SEQUENCES, elastic_worker.CONTEXT + 1))
    steps = os.open(folder / "steps", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    job = ringmaster.connect(model=model, optimizer=optimizer, samples=len(tokens))
    for step in job.steps():
        for lane in step.lanes(tokens):
            loss = model(lane[:, :-1], lane[:, 1:])
            loss.backward()
            step.add(loss)
        optimizer.step()
        optimizer.zero_grad()
        elastic_worker.say(steps, step=step.number, world=0, rank=0)


if __name__ == "__main__":
    train(Path(sys.argv[1]))
