"""Optimizers of torch that a program has beside the one that it told of."""

import gc
import weakref

import torch

from .library import Error

DEPTH, MOST = 4, 10000  # of what hangs together with what was told


def inside(thing):
    if isinstance(thing, dict):
        return list(thing.values())
    if isinstance(thing, (list, tuple)):
        return list(thing)
    schedules = any("LRScheduler" in base.__name__ for base in type(thing).__mro__)  # it knows the optimizer, and does not save it
    if schedules or isinstance(thing, (torch.Tensor, torch.nn.Module, type)):
        return []
    return list(getattr(thing, "__dict__", {}).values())


def known_by(told):
    """Identities of all that is told of: an optimizer may lie within another."""
    known, layer = set(), list(told)
    for _ in range(DEPTH):
        below = []
        for thing in layer:
            if id(thing) not in known and len(known) < MOST:
                known.add(id(thing))
                below += inside(thing)
        layer = below
    return known


def extent(optimizer):
    """Grows with each step that leaves anything behind it; 0: there is nothing to lose."""
    return sum(1 + value._version for values in optimizer.state.values() if isinstance(values, dict)
               for value in values.values() if isinstance(value, torch.Tensor))


class Strangers:
    """told: whose state is saved, beside the model's; parameters: the model's."""

    def __init__(self, told, parameters):
        self.told, self.parameters, self.found = told, {id(parameter) for parameter in parameters}, []
        self.look()

    def look(self):
        """Among all objects of the process: tens of milliseconds, so not in a step but the first."""
        known, had = known_by(self.told), {id(found()) for found, _ in self.found}
        for thing in gc.get_objects():
            if issubclass(type(thing), torch.optim.Optimizer) and id(thing) not in known and id(thing) not in had and self.is_ours(thing, known):
                self.found.append((weakref.ref(thing), extent(thing)))

    def is_ours(self, optimizer, known):
        """It may also be the inside of one that was told of, whose state it is."""
        if id(vars(optimizer).get("state")) in known or id(vars(optimizer).get("param_groups")) in known:
            return False
        groups = vars(optimizer).get("param_groups") or []
        return any(id(parameter) in self.parameters for group in groups for parameter in group["params"])

    def check(self):
        for found, before in self.found:
            optimizer = found()
            if optimizer is not None and extent(optimizer) != before:
                raise Error("%s trains the model's parameters, and connect() was not told of it: a worker that joins, and a job that goes "
                            "on, would have no state of it; pass it as optimizer=, or beside another one in state="
                            % type(optimizer).__name__)
