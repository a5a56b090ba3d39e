"""torch's half of elastic.py: a module, its optimizer and its scheduler; gradients are views of what is shared with the trainer.

`.grad` of each parameter is a view of the shared area, so that backward() adds right into it; where something put another tensor
there (zero_grad() makes it None) it is copied. Parameters on a GPU, or of another type than float32, are copied always.

Buffers (BatchNorm's statistics) change with each forward pass. They are put back before each lane, and the change that the lane
made is summed like a gradient: all workers add the mean change, so that it does not matter who computed which lane. Whole numbers
(num_batches_tracked) take the mean, rounded: they count steps, not lanes.

An optimizer makes its state in its first step(), and the size of the whole state is told before that. So a copy of the optimizer
makes a step with gradients of zero, and is thrown away: it tells what the state will look like, and no weight, no counter and no
average of the real one has been touched. Until the real one has made its state, zeros stand in for it, with `made` false beside
them; whoever loads that begins without a state, as the first optimizer did.
"""

import copy
import ctypes
import platform

import torch

from . import tree
from .library import DTYPES, Error
from .optimizers import Strangers, extent
from .samples import reader_of
from .watch import BETWEEN, CLOSE, ELEMENTS, Watch

WRAPPED = ("DistributedDataParallel", "DataParallel")
SHARDED = ("FullyShardedDataParallel", "FSDPModule", "FSDP")

memcmp = ctypes.CDLL(None).memcmp
memcmp.restype, memcmp.argtypes = ctypes.c_int, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]


def kinds(thing):
    """Names of its classes: what is refused need not be importable here."""
    return [base.__name__ for base in type(thing).__mro__]


def refuse_by_class(model, others):
    for name, module in model.named_modules():
        path = "model" + ("." + name if name else "")
        if any(kind in SHARDED for kind in kinds(module)):
            raise Error("%s is %s: one process holds the whole model here; pass the module itself" % (path, type(module).__name__))
        if any(kind in WRAPPED for kind in kinds(module)):
            raise Error("%s is %s: gradients are summed by the job; pass the module itself" % (path, type(module).__name__))
    for name, tensor in list(model.named_parameters()) + list(model.named_buffers()):
        if "DTensor" in kinds(tensor):
            raise Error("model.%s is a DTensor: one process holds the whole model here; pass the module before it is distributed" % name)
        if any("Uninitialized" in kind for kind in kinds(tensor)):
            raise Error("model.%s has no size yet: run the model once before connect()" % name)
    for name, thing in others.items():
        if "GradScaler" in kinds(thing):
            raise Error("%s is a GradScaler, whose scale follows what one worker sees: use torch.autocast with bfloat16, which needs none"
                        % name)


class Absent:
    """A tensor that will be there: its form, and zeros until then."""

    def __init__(self, tensor):
        self.dtype, self.shape = tensor.dtype, tensor.shape

    def zeros(self):
        return torch.zeros(self.shape, dtype=self.dtype)


def flat(path, value):
    if isinstance(value, Absent):
        value = value.zeros()
    if type(value).__module__ == "numpy" and hasattr(value, "item") and not getattr(value, "ndim", 0):
        value = value.item()
    if not isinstance(value, torch.Tensor):
        return tree.flat_number(path, value)
    dtype = str(value.dtype).replace("torch.", "")
    if "DTensor" in kinds(value):
        raise Error("%s is a DTensor: one process holds the whole state here" % path)
    if dtype not in DTYPES or value.layout != torch.strided:
        raise Error("%s is a tensor of %s, %s: strided ones of %s are possible" % (path, dtype, value.layout, ", ".join(DTYPES)))
    plain = value.detach().cpu().contiguous()
    return tree.Flat(dtype, tuple(value.shape), plain.data_ptr() if plain.numel() else None, plain)


def tensor_at(address, size, dtype, shape):
    """A view of memory that stays."""
    if not size:
        return torch.empty(tuple(shape), dtype=dtype)
    room = (ctypes.c_char * size).from_address(address)
    return torch.frombuffer(room, dtype=dtype).view(tuple(shape))


def some_of(tensor):
    some = tensor.detach().reshape(-1)[::max(1, tensor.numel() // ELEMENTS)].cpu().contiguous()
    return ctypes.string_at(some.data_ptr(), some.numel() * some.element_size())


class OptimizerState:
    """An optimizer's state_dict in a form that stays the same from before its first step on."""

    def __init__(self, optimizer):
        self.optimizer = optimizer
        self.form = self.probed()
        self.first = self.made(), extent(optimizer)

    def probed(self):
        chance = torch.get_rng_state()
        trial = copy.deepcopy(self.optimizer)
        for group in trial.param_groups:
            for parameter in group["params"]:
                parameter.grad = torch.zeros_like(parameter) if parameter.requires_grad else None
        try:
            type(trial).step(trial)
        except Exception as why:
            raise Error("%s can't make a step by itself (%s): an optimizer that asks for the loss in its step() can't be used, for the "
                        "loss is other workers', too" % (type(trial).__name__, why)) from why
        torch.set_rng_state(chance)
        return tree.rebuilt(trial.state_dict()["state"], "", lambda _, leaf: Absent(leaf) if isinstance(leaf, torch.Tensor) else leaf)

    def made(self):
        return bool(self.optimizer.state)

    def check_begin(self):
        if (self.made(), extent(self.optimizer)) != self.first:
            raise Error(BETWEEN % "optimizer's state")

    def whole(self):
        now = self.optimizer.state_dict()
        return {"made": self.made(), "state": now["state"] if self.made() else self.form, "param_groups": now["param_groups"]}

    def load(self, found):
        state = found["state"] if found["made"] else {}
        self.optimizer.state.clear()
        self.optimizer.load_state_dict({"state": state, "param_groups": found["param_groups"]})
        parameters = [parameter for group in self.optimizer.param_groups for parameter in group["params"]]
        for index, values in state.items():
            self.keep_types(self.optimizer.state[parameters[index]], values)

    @staticmethod
    def keep_types(loaded, values):
        """torch gives each of a parameter's averages the parameter's own type, though they may have had another."""
        for key, value in values.items():
            if isinstance(value, torch.Tensor) and value.dtype != loaded[key].dtype:
                loaded[key] = value.to(loaded[key].device)


class ModuleState:
    """A module's state_dict, and the buffers that it leaves out."""

    def __init__(self, model):
        self.model = model

    def others(self):
        listed = set(self.model.state_dict(keep_vars=True))
        return {name: buffer for name, buffer in self.model.named_buffers() if name not in listed}

    def whole(self):
        state = dict(self.model.state_dict())
        state.update(self.others())
        return state

    def load(self, found):
        others = self.others()
        self.model.load_state_dict({name: value for name, value in found.items() if name not in others})
        with torch.no_grad():
            for name, buffer in others.items():
                buffer.copy_(found[name])


class AnyState:
    """Whatever has state_dict() and load_state_dict()."""

    def __init__(self, name, thing):
        if not hasattr(thing, "state_dict") or not hasattr(thing, "load_state_dict"):
            raise Error("%s has no state_dict() and load_state_dict(): wrap it into a class that has" % name)
        self.whole, self.load = thing.state_dict, thing.load_state_dict


class Gradients:
    """Views of one of the two shared areas, in the order in which the tensors were told."""

    def __init__(self, address, tensors):
        self.views = []
        for tensor in tensors:
            size = 4 * tensor.numel()
            self.views.append(tensor_at(address, size, torch.float32, tensor.shape))
            address += size


def arithmetic():
    threads = torch.get_num_threads()
    usage = [line.split(":")[1].strip() for line in torch.__config__.show().splitlines() if "CPU capability usage" in line]
    gpus = ", " + torch.cuda.get_device_name() if torch.cuda.is_available() else ""
    return "torch %s, %d threads, %s %s%s" % (torch.__version__, threads, platform.machine(), "".join(usage), gpus)


class Side:
    def __init__(self, model, optimizer, scheduler, state):
        if not isinstance(model, torch.nn.Module):
            raise Error("model is a %s, and not a torch.nn.Module" % type(model).__name__)
        if not isinstance(state, dict):
            raise Error("state= beside model= is a dict of what has state_dict() and load_state_dict()")
        others = {"optimizer": optimizer, "scheduler": scheduler, **{"state[%r]" % name: thing for name, thing in state.items()}}
        refuse_by_class(model, others)
        self.parts = {"model": ModuleState(model)}
        self.trained = [(name, p) for name, p in model.named_parameters() if p.requires_grad and p.numel()]
        self.frozen = [(name, p) for name, p in model.named_parameters() if not p.requires_grad]
        self.buffers = [(name, b) for name, b in model.named_buffers() if b.dtype != torch.bool and not b.is_complex() and b.numel()]
        if not self.trained:
            raise Error("model has no parameter that wants a gradient")
        if optimizer is not None:
            self.check_optimizer(optimizer)
            self.parts["optimizer"] = OptimizerState(optimizer)
        if scheduler is not None:
            self.parts["scheduler"] = AnyState("scheduler", scheduler)
        for name, thing in state.items():
            self.parts["state.%s" % name] = AnyState("state[%r]" % name, thing)
        self.areas = {}
        self.now = None
        self.base = [buffer.detach().clone() for _, buffer in self.buffers]
        self.model, self.rounds = model, 0
        self.strangers = Strangers([optimizer, *state.values()], model.parameters())
        self.watch = self.watch_of(self.trained + [(name, p) for name, p in self.frozen if p.layout == torch.strided and p.device.type != "meta"])

    def watch_of(self, named):
        tensors = [tensor for _, tensor in named]
        return Watch([("model." + name, tensor) for name, tensor in named], some_of, lambda: sum(tensor._version for tensor in tensors),
                     self.has_gradient, CLOSE, "call optimizer.step() behind the inner loop, with an optimizer over the parameters of "
                     "the model that connect() was given")

    def has_gradient(self):
        return any(bool(parameter.grad.any()) for _, parameter in self.trained)

    def begin_loops(self):
        """What connect() was given is still what there is."""
        now = dict(self.model.named_parameters())
        for name, parameter in self.trained + self.frozen:
            if now.get(name) is not parameter:
                raise Error("model.%s is another tensor than at connect(): build the whole model, and its optimizer, before connect()" % name)
        self.watch.begin()
        if "optimizer" in self.parts:
            self.parts["optimizer"].check_begin()

    def check_update(self):
        self.watch.updated()
        self.rounds += 1
        if self.rounds <= CLOSE:
            if self.rounds == 1 and "optimizer" not in self.parts:
                self.strangers.look()
            self.strangers.check()

    def check_optimizer(self, optimizer):
        if not hasattr(optimizer, "param_groups"):
            raise Error("optimizer is a %s, and no torch.optim.Optimizer" % type(optimizer).__name__)
        known = {id(parameter) for _, parameter in self.trained + self.frozen}
        if any(id(parameter) not in known for group in optimizer.param_groups for parameter in group["params"]):
            raise Error("optimizer has a parameter that model does not have: pass all models as one, in a torch.nn.ModuleList")

    arithmetic = staticmethod(arithmetic)

    def shapes(self):
        return [(name, p.numel()) for name, p in self.trained] + [("buffer." + name, b.numel()) for name, b in self.buffers]

    def whole(self):
        return {name: part.whole() for name, part in self.parts.items()}

    def put(self, connection):
        for name, part in self.whole().items():
            for path, value in tree.leaves(part, name):
                it = flat(path, value)
                connection.put(path, it.dtype, it.shape, it.address)

    def load(self, connection):
        for name, part in self.parts.items():
            part.load(tree.rebuilt(part.whole(), name, lambda path, old: self.found(connection, path, old)))
        self.check_loaded(connection)

    @staticmethod
    def found(connection, path, old):
        dtype, shape, address, size = connection.find(path)
        if isinstance(old, (torch.Tensor, Absent)):
            return tensor_at(address, size, old.dtype, shape).clone()  # what is shared is overwritten later on
        return tree.number_found(old, dtype, address, size)

    def check_loaded(self, connection):
        """That load_state_dict() took what state_dict() gave: a state that is not what it should be would show much later."""
        for name, part in self.whole().items():
            for path, value in tree.leaves(part, name):
                it = flat(path, value)
                _, _, address, size = connection.find(path)
                if size and memcmp(it.address, address, size) != 0:
                    raise Error("%s is not what was loaded: load_state_dict() has to take all that state_dict() gives" % path)

    def settle(self):
        """The loops' outer part has had its say: what buffers are now is where the next step begins."""
        with torch.no_grad():
            for (_, buffer), base in zip(self.buffers, self.base):
                base.copy_(buffer)

    def area(self, address):
        if address not in self.areas:
            self.areas[address] = Gradients(address, [p for _, p in self.trained] + [b for _, b in self.buffers])
        return self.areas[address].views

    @staticmethod
    def shares(parameter):
        return parameter.dtype == torch.float32 and parameter.device.type == "cpu"

    def begin(self, address):
        """A lane: zeros lie in the area."""
        self.now = self.area(address)
        for (_, parameter), view in zip(self.trained, self.now):
            parameter.grad = view if self.shares(parameter) else None
        self.restore()

    def restore(self):
        with torch.no_grad():
            for (_, buffer), base in zip(self.buffers, self.base):
                buffer.copy_(base)

    def end(self):
        """A lane's gradient to the area, wherever backward() put it; then buffers as they were."""
        for name, parameter in self.frozen:
            if parameter.requires_grad:
                raise Error("model.%s wants a gradient, and did not at connect(): which parameters do may not change" % name)
        with torch.no_grad():
            for (name, parameter), view in zip(self.trained, self.now):
                if parameter.grad is None:
                    view.zero_()
                elif parameter.grad.layout != torch.strided:
                    raise Error("model.%s has a sparse gradient: build the layer with sparse=False" % name)
                elif parameter.grad.data_ptr() != view.data_ptr():
                    view.copy_(parameter.grad)
            for (_, buffer), base, view in zip(self.buffers, self.base, self.now[len(self.trained):]):
                # An infinity that stays is no change.
                view.copy_(torch.where(buffer == base, torch.zeros_like(base), buffer - base))
        self.restore()

    def apply(self, address):
        """An update: the mean gradients where the optimizer looks for them, and the buffers' mean change."""
        views = self.area(address)
        with torch.no_grad():
            for (_, parameter), view in zip(self.trained, views):
                if not self.shares(parameter):
                    view = view.to(parameter.device, parameter.dtype)
                parameter.grad = view
            for (_, buffer), base, view in zip(self.buffers, self.base, views[len(self.trained):]):
                change = view if base.is_floating_point() else view.round()
                buffer.copy_(base + change.to(base.device, base.dtype))

    @staticmethod
    def reader(data, collate, samples):
        from torch.utils.data import default_collate
        return reader_of(data, collate, samples, torch.Tensor, default_collate)
