"""What the package refuses in torch programs, as one JSON object: what was tried, and the sentence."""

import json
import os

import ringmaster
import torch
from torch.utils.data import DataLoader, IterableDataset

os.environ.pop("RINGMASTER_SOCKET", None)
told = {}


def tried(what, model=None, samples=40, then=None, **more):
    try:
        job = ringmaster.connect(model=model or torch.nn.Linear(2, 2), samples=samples, **more)
        told[what] = str(then(job)) if then else "taken"
    except (ringmaster.Error, ImportError) as why:
        told[what] = str(why)


def named(name, base=object, **members):
    """A class of a library that is not here: it is known by its name."""
    return type(name, (base,), members)


class Sharded(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = named("FullyShardedDataParallel", torch.nn.Module)()
        self.w = torch.nn.Parameter(torch.zeros(2))


class Distributed(torch.nn.Module):
    def __init__(self, name):
        super().__init__()
        self.w = torch.nn.Parameter(torch.zeros(2))
        self.w.__class__ = named(name, torch.nn.Parameter)


def holder(value):
    return named("Holder", state_dict=lambda self: {"x": {"inner": [1, value]}}, load_state_dict=lambda self, state: None)()


class Wrapped(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.module = torch.nn.Linear(2, 2)


tried("no agent")
tried("no samples", samples=None)
tried("FSDP", Sharded())
tried("DDP", type("DistributedDataParallel", (Wrapped,), {})())
tried("DTensor", Distributed("DTensor"))
tried("lazy", torch.nn.LazyLinear(2))
tried("GradScaler", state={"scaler": named("GradScaler")()})
tried("GradScaler as optimizer", optimizer=named("GradScaler")())
tried("no state_dict", state={"it": 5})
model = torch.nn.Linear(2, 2)
tried("LBFGS", model, optimizer=torch.optim.LBFGS(model.parameters()))
tried("foreign optimizer", optimizer=torch.optim.SGD(model.parameters(), lr=1))
tried("frozen", torch.nn.Linear(2, 2).requires_grad_(False))

from ringmaster import samples, tree, with_torch  # noqa: E402

Stream = type("Stream", (IterableDataset,), {"__iter__": lambda self: iter([])})
for what, data in (("IterableDataset", Stream()), ("DataLoader", DataLoader([1, 2])), ("iterator", iter([1])), ("short", [1, 2])):
    try:
        with_torch.Side.reader(data, None, 40)
    except ringmaster.Error as why:
        told[what] = str(why)
for what, value in (("function", print), ("object", object()), ("set", {1}), ("long", 1 << 70), ("complex", 1j),
                    ("complex tensor", torch.zeros(1, dtype=torch.complex64)), ("sparse tensor", torch.zeros(2).to_sparse())):
    try:
        for path, leaf in tree.leaves(holder(value).state_dict(), "state.it"):
            with_torch.flat(path, leaf)
    except ringmaster.Error as why:
        told["state: " + what] = str(why)
try:
    tree.leaves({(1, 2): 3}, "state.it")
except ringmaster.Error as why:
    told["state: key"] = str(why)
try:
    ringmaster.connect(samples=1)
except ringmaster.Error as why:
    told["nothing"] = str(why)
assert samples
print(json.dumps(told))
