"""The parts of tools/gpu-check run. Each is given the run (gpu_check_run.Check) and yields results, one by one."""

import contextlib
import glob
import importlib
import os
import select
import shutil
import statistics
import subprocess
import sys
import threading
import xml.etree.ElementTree as ElementTree

from gpu_check_pack import KERNEL_TESTS

EVERYTHING = "*/*"
# On the stand-ins, which compute some thousand times slower: a little of each.
SHORT = {"exact_test": "@(fill|prove)/*", "embed_test": "embed/both_ways_are_right*", "norm_test": "columns/wide_ones*",
         "gelu_test": "gelu/both_ways_are_right*", "classify_test": "classify/a_logit*", "attend_test": "attend/heads_may_share*",
         "halve_test": EVERYTHING, "lane_test": "lane/words_are_the_gradient*", "backend_gpu_test": "gpu/a_rank_without*"}
FULL_MIB, SHORT_MIB = 1024, 1
LANES_EACH = 20
GPT2 = (12, 12, 768, 1024, 50257)
GPT2_FLOP_A_TOKEN = 6 * 124439808 + 12 * 12 * 768 * 1024  # of weights, both ways, and of attention
EACH_STEP, LAST_QUARTER = 0.01, 0.005  # by which a loss in bf16 may differ from that of fp32
SANITIZERS = ("memcheck", "racecheck", "synccheck")
SANITIZED = {"exact_test": "@(fill|prove|sums)/*", "attend_test": "attend/heads_may_share*", "norm_test": "columns/wide_ones*"}


def result(name, failed=None, values=None, left_out=None):
    """One result; failed: the sentence that says how, None where it did not; left_out: why nothing is known of it."""
    made = {"name": name, "outcome": "failed" if failed is not None else "left out" if left_out else "passed"}
    if failed is not None or left_out:
        made["said"] = failed if failed is not None else left_out
    if values:
        made["values"] = values
    return made


# ---- unit tests ----

def read_report(path):
    """[(name, failure or None)] of what ran; None where there is no report."""
    try:
        cases = list(ElementTree.parse(path).iter("testcase"))
    except (OSError, ElementTree.ParseError):
        return None
    ran = [case for case in cases if case.find("skipped") is None and case.get("status") != "SKIPPED"]
    return [(case.get("name"), next((" ".join("".join(bad.itertext()).split()) or "failed" for bad in case if bad.tag in ("failure", "error")), None))
            for case in ran]


def unit_test(check, program, when="", tests=EVERYTHING, before=()):
    """A test program of the pack on the GPU."""
    report = check.scratch / "report.xml"
    report.unlink(missing_ok=True)
    env = check.program_env({"RINGMASTER_TEST_GPU": "1", "CRITERION_OUTPUTS": f"xml:{report}"})
    command = [check.files / "tests" / program, "--jobs", 1 if before else 2, "--filter", tests]
    if before:  # a program of the machine's, which is to have the machine's libraries
        command = [*before, "env", f"LD_LIBRARY_PATH={env.pop('LD_LIBRARY_PATH')}", *command]
    code, said = check.call(command, env)
    ran = read_report(report) or []
    for name, failed in ran:
        yield result(f"{program}: {name}{when}", failed)
    if code is None and before:
        yield result(f"{program}{when}", left_out="it did not end in the time that was left")
    elif code is None:
        yield result(f"{program}{when}", "it did not end in the time that was left")
    elif not ran or (code and not any(failed for _, failed in ran)):
        yield result(f"{program}{when}", f"it ended with {code} and no result: {said[-1500:]}")


@contextlib.contextmanager
def filled(check):
    """Another process has the GPU's processors meanwhile; gives a sentence where it has not."""
    command = [check.files / "tests/gpu_tool", "fill", SHORT_MIB if check.standins else FULL_MIB]
    with check.started(command, check.program_env({"RINGMASTER_TEST_GPU": "1"}), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        ready, _, _ = select.select([process.stdout], [], [], min(60, check.left()))
        said = process.stdout.readline() if ready else ""
        yield None if said.startswith("filling") else f"the process that fills the GPU did not begin: {said.strip() or 'nothing was said'}"


def tests_of(check, program):
    return SHORT[program] if check.standins else EVERYTHING


def kernels(check):
    """Each against its twin on the CPU, twice, and once while another process fills the GPU."""
    for when in ("",) if check.standins else ("", ", again"):
        for program in KERNEL_TESTS:
            yield from unit_test(check, program, when, tests_of(check, program))
    with filled(check) as why:
        yield result("a process fills the GPU", why)
        for program in ("gelu_test",) if check.standins else KERNEL_TESTS:
            yield from unit_test(check, program, ", beside a process that fills the GPU", tests_of(check, program))


def model(check):
    """A lane's gradients against the CPU's in fp32, its bits in any order, with graphs and without; a step against the CPU's sums."""
    for program in ("lane_test", "backend_gpu_test"):
        yield from unit_test(check, program, "", tests_of(check, program))


# ---- training ----

class Story:
    """A run of the job of this pack with what happens to it, told in the end as its weights and losses."""

    def __init__(self, check, name, workers, drills=(), job="gpu"):
        fields = check.told["jobs"]["standins" if check.standins else job]
        self.check, self.rig, self.name, self.last, self.rings, self.env = check, rig_of(check), name, fields["trainer__steps"], [], {}
        self.folder = check.scratch / name.replace(" ", "-")
        self.fields = {**fields, "trainer__device": "gpu", "trainer__precision": "bf16", "workers__target": workers}
        self.words = [word for drill in drills for word in ("--drill", drill)]

    def run(self, until=None):
        """To its end, or to a step at which it is interrupted; the run."""
        run = self.rig.Run(self.rig.make_job(self.folder, **self.fields), *self.words,
                           env={**self.check.env, **self.env, "LD_LIBRARY_PATH": self.check.library_path})
        watchdog = threading.Timer(self.check.left(), run.clean_up)
        watchdog.daemon = True  # no end of this program waits for it
        try:
            watchdog.start()
            if until:
                run.read_until("step", step=until)
                run.interrupt()
            run.wait()
        finally:
            watchdog.cancel()
            run.clean_up()
        return run

    def told(self, run, first=1):
        complete = self.rig.check_complete(run, self.last, first=first)
        self.rings = [len(event["members"]) for event in run.of("ringFormed")]
        assert complete["exact"] is True, "the run was not exact"
        return complete["weightsSha256"], {event["step"]: event["loss"] for event in run.of("step")}


def compare(story, wanted, tell, rings=()):
    """A story that has to end as another one did, and to have had rings of so many members one after the other, among others."""
    try:
        weights, losses = tell()
    except AssertionError as why:
        return result(story.name, str(why))
    values = {"weightsSha256": weights, "rings": story.rings}
    if weights != wanted[0]:
        return result(story.name, f"other weights: {weights}, not {wanted[0]}", values)
    if not losses.items() <= wanted[1].items():
        return result(story.name, "other losses on the way", values)
    came = iter(story.rings)
    if not all(members in came for members in rings):
        return result(story.name, None, values, f"it was over before its ring had had {', '.join(map(str, rings))} members in turn")
    return result(story.name, None, values)


def beside_the_cpu(losses, wanted):
    """None, or how the curve leaves that of fp32."""
    wanted = {int(step): loss for step, loss in wanted.items()}
    off = {step: abs(losses[step] - loss) / loss for step, loss in wanted.items()}
    worst = max(off, key=off.get)
    last = statistics.mean(off[step] for step in sorted(off)[-max(1, len(off) // 4):])
    if off[worst] > EACH_STEP or last > LAST_QUARTER:
        return f"step {worst} is off by {off[worst]:.2%}, and the last quarter by {last:.2%}"
    return None


def resumed(story, check):
    """Two workers for a quarter of the way, then one."""
    first = Story(check, story.name, 2)
    began = first.run(until=story.last // 4)
    assert began.code == 130, began.tail()
    run = story.run()
    return story.told(run, run.of("step")[0]["step"])


def rig_of(check):
    """tests/e2e/rig.py, of the programs that the pack brought along."""
    os.environ["RINGMASTER_BIN"] = str(check.files / "bin")
    sys.path.append(str(check.folder))
    return importlib.import_module("rig")


def whole(story):
    return story.told(story.run())


def newcomers(check):
    """A new trainer, and then a third worker, of a run so long that they come before its end."""
    alone = Story(check, "a longer run alone", 1, job="long")
    wanted = whole(alone)
    story = Story(check, "two workers, a new trainer, a third worker", 2, ("trainer:0@40", "join@60"), "long")
    yield compare(story, wanted, lambda: whole(story), (2, 1, 3))


def train(check):
    """A whole run against the CPU's curve; then the same weights for every history of it."""
    alone = Story(check, "alone", 1)
    wanted = whole(alone)
    curve = check.told["expected"]["standins" if check.standins else "gpu"]
    yield result(f"{alone.last} steps beside the CPU's curve", beside_the_cpu(wanted[1], curve),
                 {"first": wanted[1][1], "last": wanted[1][alone.last], "lastOnACpu": curve[str(alone.last)]})
    killed = Story(check, "two workers, one is killed", 2, (f"kill:1@{alone.last // 2}",))
    yield compare(killed, wanted, lambda: whole(killed), (2, 1))
    if check.standins:
        return
    two, later = Story(check, "two workers", 2), Story(check, "two workers, resumed by one", 1)
    yield compare(two, wanted, lambda: whole(two), (2,))
    yield compare(later, wanted, lambda: resumed(later, check))
    yield from newcomers(check)


# ---- the sanitizer ----

def find_sanitizer():
    return shutil.which("compute-sanitizer") or next(iter(sorted(glob.glob("/usr/local/cuda*/bin/compute-sanitizer"))), None)


def sanitizer(check):
    """Accesses, races in shared memory and barriers, of some kernels of each kind."""
    for tool in SANITIZERS:
        before = (find_sanitizer(), "--tool", tool, "--target-processes", "all", "--error-exitcode", 9)
        for program, tests in SANITIZED.items():
            yield from unit_test(check, program, f", under {tool}", tests, before)


# ---- speed ----

def bench_values(told, sequences):
    """Of what gpu_tool lane said."""
    tokens = sequences * GPT2[3]
    values = {name: float(value) for name, value in told.items() if name.endswith("s") and name != "tokens" and "." in name}
    per_second = {name: tokens / (float(told[f"graphs.{name}.ms"]) / 1e3) for name in ("exact", "fp32")}
    return {**values, "tokensPerSecond": round(per_second["exact"]), "exactOfFp32": round(per_second["exact"] / per_second["fp32"], 4),
            "teraflops": round(per_second["exact"] * GPT2_FLOP_A_TOKEN / 1e12, 1)}


def bench(check):
    """A lane of gpt2-124m; on the stand-ins with empty kernels and products, which leaves the host's own time."""
    more = {"RINGMASTER_STANDIN_CUDA": "empty,seed=1,sms=132,memory=100G"} if check.standins else {}
    for sequences in (16,) if check.standins else (16, 4, 1):
        told = check.tool("lane", *GPT2, sequences, LANES_EACH, more=more)
        name = f"gpt2-124m, {sequences} sequences a lane{', with empty kernels: the time of the host alone' if check.standins else ''}"
        if "why" in told:
            yield result(name, told["why"])
        elif check.standins:
            yield result(name, None, {key: float(value) for key, value in told.items() if key.endswith("s") and "." in key})
        else:
            yield result(name, None, bench_values(told, sequences))
