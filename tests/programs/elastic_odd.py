"""What a torch program may bring along: zero_grad() within the lanes, parameters in float64 and bfloat16, frozen, shared and unused
ones, buffers that no state_dict has or that hold infinities, numbers that become other numbers, further state.

    elastic_odd.py OPTIMIZER [SECONDS [FILE [wait]]]

SECONDS: that a lane takes at least; until there is FILE, which a newcomer makes, but with `wait`.
"""

import os
import random
import sys
import time

import ringmaster
import torch


class Odd(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(6, 6).double()
        self.second = torch.nn.Linear(6, 6)
        self.again = self.second
        self.narrow = torch.nn.Parameter(torch.randn(6).to(torch.bfloat16))
        self.frozen = torch.nn.Parameter(torch.randn(6), requires_grad=False)
        self.unused = torch.nn.Parameter(torch.randn(3))
        self.scale = torch.nn.Parameter(torch.tensor(1.0))
        self.norm = torch.nn.BatchNorm1d(6, momentum=None)
        self.register_buffer("mask", torch.full((6, 6), float("-inf")).triu(1))
        self.register_buffer("seen", torch.zeros(()), persistent=False)

    def forward(self, x):
        self.seen += x.abs().mean()
        h = self.again(self.second(self.first(x.double()).float())) * self.narrow + self.frozen
        h = self.norm(h) @ torch.softmax(self.mask, 1)
        return h * self.scale + 0.1 * torch.randn(6) * random.random()


class Average:
    """A moving average of the weights, as many keep one."""

    def __init__(self, model):
        self.weights = {name: p.detach().clone() for name, p in model.named_parameters()}
        self.updates = 0

    def update(self, model):
        self.updates += 1
        for name, p in model.named_parameters():
            self.weights[name].mul_(0.9).add_(p.detach(), alpha=0.1)

    def state_dict(self):
        return {"weights": self.weights, "updates": self.updates}

    def load_state_dict(self, state):
        self.weights, self.updates = state["weights"], state["updates"]


kind, more = {"sgd": (torch.optim.SGD, {"lr": 1, "momentum": 0.9, "dampening": 0.5, "weight_decay": 0.1}),
              "plain": (torch.optim.SGD, {"lr": 0.1}),
              "asgd": (torch.optim.ASGD, {"lr": 0.1}),
              "rprop": (torch.optim.Rprop, {})}[sys.argv[1]]
torch.manual_seed(3)
model = Odd()
data = [(torch.randn(6), torch.randn(6)) for _ in range(40)]
optimizer = kind(model.parameters(), **more)
scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [2, 4], gamma=0.3)
average = Average(model)
print("begin", os.getpid(), flush=True)
pause, until, first = (float(sys.argv[2]) if sys.argv[2:] else 0), (sys.argv[3:] or [""])[0], None
before = [p.detach().clone() for p in model.parameters()]
job = ringmaster.connect(model=model, optimizer=optimizer, scheduler=scheduler, state={"average": average}, samples=len(data))
assert all(torch.equal(p, old) for p, old in zip(model.parameters(), before)) and not optimizer.state
for step in job.steps():
    for x, y in step.lanes(data):
        optimizer.zero_grad(set_to_none=True)
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        first = first or step.number
        if until and first > 1 and not sys.argv[4:]:
            open(until, "w", encoding="utf-8").close()
        if pause and not os.path.exists(until):
            time.sleep(pause)
        step.add(loss)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    average.update(model)
    assert average.updates == step.number == scheduler.last_epoch == model.norm.num_batches_tracked
print("done", average.updates)
