"""libringmaster.so and the package ringmaster in users' programs, against a trainer's stand-in (standin.py)."""

import json
import os
import signal
import subprocess
import sys
import textwrap

import pytest

import rig
from standin import AGAIN, END, LANE, LOAD, SAVE, UPDATE, StandIn

PROGRAMS = rig.ROOT / "tests/programs"
LIBRARY = rig.BIN.parent / "lib/libringmaster.so.1"
PACKAGE = rig.BIN.parent / "share/ringmaster/python"
ENV = {"PYTHONPATH": str(PACKAGE), "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
NUMPY = [sys.executable, str(PROGRAMS / "elastic_numpy.py")]


def run(command, **more):
    standin = StandIn(command, env=ENV, **more)
    standin.run()
    return standin


@pytest.fixture(name="calm", scope="module")
def one_program_that_nothing_happens_to():
    """calm(command): the states of each step; run once for each program."""
    known = {}

    def calm(command, **more):
        key = repr((command, sorted(more.items())))
        if key not in known:
            known[key] = run(command, workers=1, **more)
        return known[key]

    return calm


def same_states(standin, reference):
    """The last state, and whatever else was seen on the way, is that of the program that was alone."""
    assert standin.states[standin.steps] == reference.states[standin.steps]
    assert standin.means == reference.means
    assert len(set(reference.means.values())) == standin.steps and reference.states[0] != reference.states[standin.steps]


def check_numbers_of_workers(command, calm, numbers=(2, 3, 5), **more):
    for workers in numbers:
        standin = run(command, workers=workers, **more)
        assert len(standin.finished) == workers
        same_states(standin, calm(command, **more))


FURTHER_HISTORIES = 6  # what a history asks for depends on how far a program is when its trainer asks


def check_histories(command, calm, seeds, workers=3, kills=2, **more):
    """Random histories: all that a trainer may ask for, and programs killed while they compute. Histories go on until all was
    asked for."""
    missing = {LANE, UPDATE, SAVE, LOAD, AGAIN, "again", "late"} | ({"kill"} if kills else set())
    further = range(max(seeds) + 1, max(seeds) + 1 + FURTHER_HISTORIES)
    for seed in [*seeds, *further]:
        if seed in further and not missing:
            break
        standin = run(command, workers=workers, mischief=seed, kills=kills, **more)
        same_states(standin, calm(command, **more))
        for step, image in standin.states.items():
            calm(command, **more).states.setdefault(step, image)
            assert calm(command, **more).states[step] == image, f"another state of step {step} in history {seed}"
        missing -= {what for what, times in standin.asked_for.items() if times}
    assert not missing, f"never asked for: {missing}"


def test_numpy_has_the_same_state_for_any_number_of_workers(calm):
    check_numbers_of_workers(NUMPY, calm)


def check_plain_sums_differ(command, calm, workers=3, **more):
    """The control: the same program alone and as one of several, its lanes added up in plain fp32."""
    standin, alone = run(command, workers=workers, plain=True, **more), calm(command, plain=True, **more)
    assert standin.states[0] == alone.states[0] and standin.states[standin.steps] != alone.states[standin.steps]


def test_numpy_would_have_another_state_by_plain_sums(calm):
    check_plain_sums_differ(NUMPY, calm, lanes=10, steps=12)


def test_numpy_has_the_same_state_whatever_is_asked_and_whoever_is_killed(calm):
    check_histories(NUMPY, calm, range(3), steps=8)


def test_what_a_program_reports_arrives(calm):
    reports = calm(NUMPY).finished[0].reports
    assert [key for key, _ in reports] == 6 * ["loss"] and len({value for _, value in reports}) == 6
    assert [value for _, value in reports] == [loss for _, (_, loss) in sorted(calm(NUMPY).means.items())]


def test_torch_has_the_same_state_for_any_number_of_workers(calm, reference_python):
    check_numbers_of_workers([reference_python, str(PROGRAMS / "loop_elastic.py")], calm, numbers=(3,))


def test_torch_would_have_another_state_by_plain_sums(calm, reference_python):
    check_plain_sums_differ([reference_python, str(PROGRAMS / "loop_elastic.py")], calm, workers=2, steps=2)


def test_torch_has_the_same_state_whatever_is_asked_and_whoever_is_killed(calm, reference_python):
    check_histories([reference_python, str(PROGRAMS / "loop_elastic.py")], calm, [1], workers=2, kills=1)


@pytest.mark.parametrize("optimizer", ["sgd", "plain", "asgd", "rprop"])
def test_whatever_a_torch_program_brings_along_stays_the_same(calm, reference_python, optimizer):
    command = [reference_python, str(PROGRAMS / "elastic_odd.py"), optimizer]
    check_histories(command, calm, [11], workers=2, kills=0, lanes=3)


@pytest.fixture(name="elastic_c", scope="module")
def program_in_c(tmp_path_factory):
    """tests/programs/elastic.c as a user would build it."""
    program = tmp_path_factory.mktemp("c") / "elastic"
    subprocess.run(["gcc", "-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off", "-I", rig.ROOT / "trainer/library",
                    PROGRAMS / "elastic.c", "-o", program, LIBRARY, f"-Wl,-rpath,{LIBRARY.parent}"], check=True)
    return [str(program)]


def test_c_has_the_same_state_for_any_number_of_workers(calm, elastic_c):
    check_numbers_of_workers(elastic_c, calm)


def test_c_would_have_another_state_by_plain_sums(calm, elastic_c):
    check_plain_sums_differ(elastic_c, calm, lanes=10, steps=12)


def test_c_has_the_same_state_whatever_is_asked_and_whoever_is_killed(calm, elastic_c):
    check_histories(elastic_c, calm, range(8), steps=8)


def test_the_state_is_a_file_that_safetensors_own_reader_takes(calm, reference_python, tmp_path):
    (tmp_path / "state").write_bytes(calm(NUMPY).states[6])
    script = ("import sys, safetensors.numpy as s; t = s.load_file(sys.argv[1]); "
              "print(sorted((name, str(value.dtype), value.shape) for name, value in t.items()), t['state.updates'].item())")
    said = subprocess.run([reference_python, "-c", script, tmp_path / "state"], check=True, capture_output=True, text=True).stdout
    assert said == ("[('model.b', 'float32', ()), ('model.w', 'float32', (4,)), ('state.momentum.b', 'float32', ()), "
                    "('state.momentum.w', 'float32', (4,)), ('state.name', 'uint8', (3,)), ('state.rate', 'float64', ()), "
                    "('state.updates', 'int64', ())] 6\n")


def changed_lines(first, second):
    """Lines of diff -u that begin with + or -, but its two headings."""
    said = subprocess.run(["diff", "-u", PROGRAMS / first, PROGRAMS / second], check=False, capture_output=True, text=True).stdout
    return [line for line in said.splitlines()[2:] if line[0] in "+-"]


def test_a_loop_becomes_elastic_by_eight_lines_at_most():
    changed = changed_lines("loop.py", "loop_elastic.py")
    assert 0 < len(changed) <= 8, "\n".join(changed)


def test_the_loop_before_runs_by_itself(reference_python):
    done = subprocess.run([reference_python, PROGRAMS / "loop.py"], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.startswith("weights "), done.stderr


REFUSED = {
    "no agent": "there is no agent: run it with `ringmaster run FILE`",
    "no samples": "tell connect() how many samples the data set has: samples=len(data)",
    "FSDP": "model.inner is FullyShardedDataParallel: one process holds the whole model here; pass the module itself",
    "DDP": "model is DistributedDataParallel: gradients are summed by the job; pass the module itself",
    "DTensor": "model.w is a DTensor: one process holds the whole model here; pass the module before it is distributed",
    "lazy": "model.weight has no size yet: run the model once before connect()",
    "GradScaler": "state['scaler'] is a GradScaler, whose scale follows what one worker sees: use torch.autocast with bfloat16",
    "GradScaler as optimizer": "optimizer is a GradScaler",
    "no state_dict": "state['it'] has no state_dict() and load_state_dict()",
    "LBFGS": "LBFGS can't make a step by itself",
    "foreign optimizer": "optimizer has a parameter that model does not have: pass all models as one, in a torch.nn.ModuleList",
    "frozen": "model has no parameter that wants a gradient",
    "IterableDataset": "Stream is an IterableDataset, which has no indices: a lane names its samples, so use a dataset with __getitem__",
    "DataLoader": "step.lanes() wants the dataset itself and not a DataLoader",
    "iterator": "list_iterator has no indices",
    "short": "the data has 2 samples, and connect() was told 40",
    "state: function": "state.it.x.inner.1 is a builtin_function_or_method: a state holds tensors, numbers and strings",
    "state: object": "state.it.x.inner.1 is a object: a state holds tensors",
    "state: set": "state.it.x.inner.1 is a set: a state holds tensors",
    "state: long": "state.it.x.inner.1 is 1180591620717411303424, which has more than 64 bits",
    "state: complex": "state.it.x.inner.1 is a complex: a state holds tensors",
    "state: complex tensor": "state.it.x.inner.1 is a tensor of complex64, torch.strided",
    "state: sparse tensor": "state.it.x.inner.1 is a tensor of float32, torch.sparse_coo",
    "state: key": "state.it has the key (1, 2)",
    "nothing": "tell connect() either model=, a torch.nn.Module, or parameters=, a dict of numpy arrays",
}


def test_what_can_not_be_elastic_is_refused_with_what_to_do(reference_python):
    done = subprocess.run([reference_python, PROGRAMS / "refusals.py"], capture_output=True, text=True, check=False,
                          env={**os.environ, **ENV, "RINGMASTER_LIBRARY": str(LIBRARY)})
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert set(told) == set(REFUSED)
    wrong = {what: told[what] for what, begin in REFUSED.items() if not told[what].startswith(begin)}
    assert not wrong, json.dumps(wrong, indent=1)


def in_numpy(loop, tmp_path, **parts):
    """A small numpy program with this text as its loops."""
    path = tmp_path / "program.py"
    path.write_text("import os, signal\nimport numpy\nimport ringmaster\nw = numpy.zeros(3, numpy.float32)\nx = numpy.ones((48, 3), numpy.float32)\n"
                    f"state = {parts.get('state', '{}')}\n"
                    "job = ringmaster.connect(parameters={'w': w}, state=state, samples=48)\n" + textwrap.dedent(loop))
    return [sys.executable, str(path)]


def check_ends_with(sentence, loop, tmp_path, **parts):
    with pytest.raises(AssertionError) as broken:
        run(in_numpy(loop, tmp_path, **parts), workers=1)
    assert sentence in str(broken.value)


def test_loops_that_are_wrong_are_told_so(tmp_path):
    for sentence, loop in (
            ("step.add(loss) was not called for lane 0 of step 1", """
                for step in job.steps():
                    for batch in step.lanes(x):
                        pass
             """),
            ("step 1 has no gradient yet: let the loop over step.lanes() run to its own end, without break", """
                for step in job.steps():
                    for batch in step.lanes(x):
                        step.add(0)
                        break
             """),
            ("step.lanes() was called twice in step 1", """
                for step in job.steps():
                    for batch in step.lanes(x):
                        step.add(0)
                    for batch in step.lanes(x):
                        step.add(0)
             """),
            ("step.add(loss) belongs once into each round of step.lanes()", """
                for step in job.steps():
                    for batch in step.lanes(x):
                        step.add(0)
                        step.add(0)
             """),
            ("step.gradients is there with connect(parameters=...)", """
                for step in job.steps():
                    step.gradients["w"] += 1
             """),
            ("step.gradients['v']: there is no parameter of that name; there are 'w'", """
                for step in job.steps():
                    for batch in step.lanes(x):
                        step.gradients["v"] = 1
             """),
            ("state.t is new in the state", """
                for step in job.steps():
                    for batch in step.lanes(x):
                        step.add(0)
                    state["t"] = 1
             """),
            ("ValueError: its own", """
                for step in job.steps():
                    for batch in step.lanes(x):
                        raise ValueError("its own")
             """)):
        check_ends_with(sentence, loop, tmp_path)


def test_a_state_whose_size_changes_is_refused_by_its_name(tmp_path):
    check_ends_with("state.h was F64[2] and is F64[3] now: the state's size may not change", """
        for step in job.steps():
            for batch in step.lanes(x):
                step.add(0)
            state["h"] = numpy.zeros(3)
    """, tmp_path, state="{'h': numpy.zeros(2)}")


def test_what_can_not_be_changed_in_place_is_refused(tmp_path):
    check_ends_with("state.pair.0 stands in a tuple, where it can't be changed: use a list", "", tmp_path, state="{'pair': (1, 2)}")
    check_ends_with("state.s is a set: a state holds tensors, numbers and strings", "", tmp_path, state="{'s': {1}}")


def test_programs_that_begin_differently_are_told_apart(tmp_path):
    with pytest.raises(AssertionError, match="seed before building"):
        run(in_numpy("""
            for step in job.steps():
                for batch in step.lanes(x):
                    step.add(0)
        """, tmp_path, state="{'own': os.getpid()}"), workers=2)


class Reluctant(StandIn):
    """Says nothing to the first lane's question until the program was sent a signal, whose handler must run while it waits."""

    def next(self, program):
        if program.held == 0 and self.found and not getattr(self, "sent", False):
            self.sent = True
            program.process.send_signal(signal.SIGUSR1)
        if program.held == 0 and self.found and not any(key == "signal" for key, _ in program.reports):
            return
        super().next(program)


def test_a_signals_handler_runs_while_the_program_waits(tmp_path):
    standin = Reluctant(in_numpy("""
        signal.signal(signal.SIGUSR1, lambda *_: job.report("signal", 1))
        for step in job.steps():
            for batch in step.lanes(x):
                step.add(0)
    """, tmp_path), workers=1, env=ENV)
    standin.run()
    assert ("signal", 1.0) in standin.finished[0].reports


class Dismissive(StandIn):
    """Ends the job for whoever asks while a step is half done."""

    def __init__(self, *rest, why, **more):
        super().__init__(*rest, **more)
        self.why = why

    def next(self, program):
        if program.held == 1 and self.found:
            program.ended = True
            self.give(program, END, why=self.why)
        else:
            super().next(program)

    def run(self):
        with pytest.raises(KeyError):  # no last state
            super().run()


@pytest.mark.parametrize("why", ["", "this worker leaves"])
def test_who_is_told_to_go_in_the_middle_of_a_step_makes_no_update_of_it(tmp_path, why):
    standin = Dismissive(in_numpy("""
        for step in job.steps():
            for batch in step.lanes(x):
                step.add(0)
            print("update", step.number)
        print("behind the loops")
    """, tmp_path), workers=1, env=ENV, why=why)
    if why:
        with pytest.raises(AssertionError, match="ended with 1"):
            StandIn.run(standin)
    else:
        standin.run()
    assert standin.finished[0].said == "update 1\n" + (f"ringmaster: {why}\n" if why else "")


def test_a_python_of_musl_says_why_it_can_not(tmp_path):
    script = ("import sysconfig; sysconfig.get_config_vars()['SOABI'] = 'cpython-311-x86_64-linux-musl'\n"
              "import ringmaster\n"
              "try:\n    ringmaster.connect(parameters={}, samples=1)\nexcept ImportError as why:\n    print(why)\n")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env={**os.environ, **ENV}, cwd=tmp_path)
    assert done.stdout.startswith("ringmaster.connect: this Python is linked with musl, as Alpine's is, and libringmaster.so.1 needs glibc")


def test_the_package_is_light_until_it_is_used(tmp_path):
    script = "import sys, ringmaster; print(sorted(set(sys.modules) & {'ctypes', 'numpy', 'torch', 'ringmaster.elastic'}))"
    done = subprocess.run([sys.executable, "-S", "-c", script], capture_output=True, text=True, check=True, env={**os.environ, **ENV}, cwd=tmp_path)
    assert done.stdout == "[]\n"
