"""Loops of torch that would train something else than their author means, and some that only look like it: as one JSON object, what was
tried, and the sentence that it ended with, or "taken". In the connection's place something hands tasks out: all of it is one process.
"""

import ctypes
import json
import textwrap

from ringmaster import library

STEPS, LANES = 7, 2


class Connection:
    """Lanes and an update, again and again. The mean is what the newest lane's gradient was."""

    def __init__(self, *_):
        self.count, self.area, self.left = 0, None, []

    def gradient(self, _, count):
        self.count += count

    def put(self, *_):
        pass

    def add(self, _):
        pass

    def gradients(self):
        return ctypes.addressof(self.area)

    def next(self):
        if self.area is None:
            self.area = (ctypes.c_float * self.count)()
            self.left = [(kind, step, lane) for step in range(1, STEPS + 1)
                         for kind, lane in [(library.LANE, lane) for lane in range(LANES)] + [(library.UPDATE, 0)]] + [(library.END, STEPS, 0)]
        kind, step, lane = self.left.pop(0)
        if kind == library.LANE:
            ctypes.memset(self.area, 0, ctypes.sizeof(self.area))
        return library.Task(kind=kind, step=step, steps=STEPS, lane=lane, samples=(ctypes.c_int64 * 3)(0, 1, 2), count=3)


library.Connection = Connection

BEGIN = """
import copy
import torch
import ringmaster
torch.manual_seed(1)
data = torch.utils.data.TensorDataset(torch.randn(48, 5), torch.randn(48, 1))
model = torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1))
"""
TOLD = """
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
job = ringmaster.connect(model=model, optimizer=optimizer, samples=48)
"""
ALONE = """
job = ringmaster.connect(model=model, samples=48)
"""


def loop(behind="pass", within="pass", before="pass"):
    return textwrap.dedent("""
        for step in job.steps():
            {before}
            for x, y in step.lanes(data):
                ((model(x) - y) ** 2).mean().backward()
                {within}
                step.add(1)
            {behind}
    """).format(behind=behind, within=within, before=before)


STEP = "optimizer.step()"
LATE_ADAM = "late = torch.optim.Adam(model.parameters(), lr=0.1)\n"
WRONG = {
    "no step": TOLD + loop(),
    "a step of other weights": "mine = copy.deepcopy(model)\noptimizer = torch.optim.SGD(mine.parameters(), lr=0.1)\n" + ALONE + loop(STEP),
    "a step within": TOLD + loop(within=STEP),
    "a step within, later": TOLD + loop(STEP, within=f"step.number < 5 or {STEP}"),
    "weights behind the count": TOLD + loop(STEP, within="model[0].bias.data.sub_(step.number - 1)"),
    "weights before the inner loop": TOLD + loop(STEP, before="torch.nn.init.ones_(model[2].bias)"),
    "weights that are loaded": TOLD + "model.load_state_dict({k: v + 1 for k, v in model.state_dict().items()})\n" + loop(STEP),
    "averages that are loaded": "first = torch.optim.Adam(model.parameters())\nmodel(torch.ones(2, 5)).sum().backward()\n"
                                 "first.step()\n" + TOLD + "optimizer.load_state_dict(first.state_dict())\n" + loop(STEP),
    "a model with another head": TOLD + "model[2] = torch.nn.Linear(4, 1)\n" + loop(STEP),
    "an optimizer before": LATE_ADAM + ALONE + loop("late.step()"),
    "an optimizer behind": ALONE + LATE_ADAM + loop("late.step()"),
    "a second one": "late = torch.optim.Adam(model[0].parameters())\n" + TOLD + loop("optimizer.step(); late.step()"),
    "a scheduler's": LATE_ADAM + "schedule = torch.optim.lr_scheduler.StepLR(late, 1)\n"
                      "job = ringmaster.connect(model=model, scheduler=schedule, samples=48)\n" + loop("late.step(); schedule.step()"),
}
FINE = {
    "no rate": TOLD.replace("0.1", "0.0") + loop(STEP),
    "no gradient": TOLD + loop().replace("** 2).mean()", "* 0).mean()"),
    "a rate of 1e-9, narrow": "model = model.bfloat16()\n" + TOLD.replace("0.1", "1e-9").replace("Adam", "SGD") +
                              loop(STEP).replace("model(x) - y", "model(x.bfloat16()) - y"),
    "what is there already": TOLD + loop(STEP, within="[torch.no_grad()(p.copy_)(p.clone()) for p in model.parameters()]"),
    "what is loaded once more": TOLD + "model.load_state_dict(copy.deepcopy(model.state_dict()))\n" + loop(STEP),
    "weights behind the loop": TOLD + loop("optimizer.step(); model.load_state_dict({k: v * 2 for k, v in model.state_dict().items()})"),
    "no state": "late = torch.optim.SGD(model.parameters(), lr=0.1)\n" + ALONE + loop("late.step()"),
    "one that has done its part": LATE_ADAM + "model(torch.ones(2, 5)).sum().backward()\nlate.step()\n" + TOLD + loop(STEP),
    "one within another": """
class Outer:
    def __init__(self, inner):
        self.inner, self.param_groups, self.state = inner, inner.param_groups, inner.state
        self.state_dict, self.load_state_dict = inner.state_dict, inner.load_state_dict
    def step(self):
        self.inner.step()
    def __deepcopy__(self, memo):
        return Outer(copy.deepcopy(self.inner, memo))
optimizer = Outer(torch.optim.Adam(model.parameters()))
job = ringmaster.connect(model=model, optimizer=optimizer, samples=48)
""" + loop(STEP),
    "one in state": "late = torch.optim.Adam(model[0].parameters())\nmodel[0](torch.ones(2, 5)).sum().backward()\nlate.step()\n"
                    "last = torch.optim.SGD(model[2].parameters(), lr=0.1)\n"
                    "job = ringmaster.connect(model=model, optimizer=last, state={'late': late}, samples=48)\n" +
                    loop("late.step()"),
}


def tried(text):
    try:
        exec(compile(BEGIN + text, "program", "exec"), {})  # pylint: disable=exec-used
    except library.Error as why:
        return str(why)
    return "taken"


print(json.dumps({kind: tried(text) for kind, text in {**WRONG, **FINE}.items()}))
