"""Loops that would train something else than their author means: each is told so in its first steps, and what only looks like it is
taken."""

import json
import os
import subprocess
import sys

import pytest

from library_test import ENV, LIBRARY, PROGRAMS, run

IDLE = "3 updates had gradients, and no weight has changed: call optimizer.step() behind the inner loop"
WITHIN = "was changed in step {} before the inner loop had ended: whatever changes weights, optimizer.step() foremost"
BETWEEN = "was changed between connect() and the first round of job.steps()"
STRANGER = " trains the model's parameters, and connect() was not told of it"
TOLD = {
    "no step": IDLE,
    "a step of other weights": IDLE,
    "a step within": "model.0.weight " + WITHIN.format(1),
    "a step within, later": "model.0.weight " + WITHIN.format(6),
    "weights behind the count": "model.0.bias " + WITHIN.format(2),
    "weights before the inner loop": "model.2.bias " + WITHIN.format(1),
    "weights that are loaded": "model.0.weight " + BETWEEN,
    "averages that are loaded": "optimizer's state " + BETWEEN,
    "a model with another head": "model.2.weight is another tensor than at connect()",
    "an optimizer before": "Adam" + STRANGER,
    "an optimizer behind": "Adam" + STRANGER,
    "a second one": "Adam" + STRANGER,
    "a scheduler's": "Adam" + STRANGER,
}


def test_loops_of_torch_that_train_something_else_are_told_so_and_what_only_looks_like_it_is_taken(reference_python):
    done = subprocess.run([reference_python, PROGRAMS / "misuse.py"], capture_output=True, text=True, check=False,
                          env={**os.environ, **ENV, "RINGMASTER_LIBRARY": str(LIBRARY)})
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    wrong = {kind: said for kind, said in told.items() if not said.startswith(TOLD.get(kind, "taken"))}
    assert not wrong and set(told) > set(TOLD), json.dumps(wrong, indent=1)


def numpy_program(tmp_path, behind, within="pass", before="pass"):
    path = tmp_path / "program.py"
    path.write_text(f"""
import numpy
import ringmaster
w, x = numpy.zeros(300, numpy.float32), numpy.ones((48, 300), numpy.float32)
job = ringmaster.connect(parameters={{'w': w}}, samples=48)
{before}
for step in job.steps():
    for batch in step.lanes(x):
        step.gradients['w'] += 1
        {within}
        step.add(1)
    {behind}
""", encoding="utf-8")
    return [sys.executable, str(path)]


STEP = "w -= step.gradients['w']"


@pytest.mark.parametrize("sentence, loop", [
    ("10 updates had gradients, and no weight has changed: behind the inner loop they are changed in place", ["w = w - step.gradients['w']"]),
    ("parameters['w'] " + WITHIN.format(1), [STEP, STEP]),
    ("parameters['w'] " + BETWEEN, [STEP, "pass", "w += 1"])])
def test_a_loop_of_numpy_that_trains_something_else_is_told_so(tmp_path, sentence, loop):
    with pytest.raises(AssertionError) as broken:
        run(numpy_program(tmp_path, *loop), workers=1, steps=12)
    assert sentence in str(broken.value)


def test_a_loop_of_numpy_whose_rate_begins_with_nothing_is_taken(tmp_path):
    standin = run(numpy_program(tmp_path, "w -= max(0, step.number - 9) * step.gradients['w']"), workers=1, steps=12)
    assert len(standin.finished) == 1
