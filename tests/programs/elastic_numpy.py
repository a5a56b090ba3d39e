"""A regression in numpy alone, by hand, with momentum: elastic by connect(parameters=...).

    elastic_numpy.py [SECONDS [FILE [wait]]]

SECONDS: that a lane takes at least, so that there is something to interrupt; until there is FILE, which a newcomer makes, but with `wait`.
"""

import os
import sys
import time

import numpy

import ringmaster

rng = numpy.random.default_rng(5)
x = rng.standard_normal((48, 4)).astype(numpy.float32)
y = numpy.tanh(x @ numpy.array([1, -2, 3, 0.5], numpy.float32))
w, b = numpy.zeros(4, numpy.float32), numpy.zeros((), numpy.float32)
state = {"momentum": {"w": numpy.zeros_like(w), "b": numpy.zeros_like(b)}, "rate": 0.1, "updates": 0, "name": "sgd"}

print("begin", os.getpid())
pause, until, first = (float(sys.argv[1]) if sys.argv[1:] else 0), (sys.argv[2:] or [""])[0], None
job = ringmaster.connect(parameters={"w": w, "b": b}, state=state, samples=len(x), deterministic=True)
for step in job.steps():
    for inputs, wanted in step.lanes((x, y)):
        inputs = inputs + 0.01 * numpy.random.standard_normal(inputs.shape).astype(numpy.float32)
        off = inputs @ w + b - wanted
        step.gradients["w"] += 2 * off @ inputs / len(off)
        step.gradients["b"] = 2 * off.mean()
        first = first or step.number
        if until and first > 1 and not sys.argv[3:]:
            open(until, "w", encoding="utf-8").close()
        if pause and not os.path.exists(until):
            time.sleep(pause)
        step.add((off**2).mean())
    for name, parameter in (("w", w), ("b", b)):
        state["momentum"][name] *= 0.9
        state["momentum"][name] += step.gradients[name]
        parameter -= state["rate"] * state["momentum"][name]
    state["rate"] *= 0.99
    state["updates"] += 1
    assert state["updates"] == step.number
    job.report("loss", step.loss)
print("done", state["updates"])
