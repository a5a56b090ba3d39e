"""Builds and runs every test, and counts them: what tools/check does once its packages are there.

Each runner (the builds, the unit tests one program at a time, pytest for layout, end to end and
references) gives passed, failed and skipped; the very last line is their sum. What failed is shown
where it happened and listed again at the end, with what took longest.

The cluster's programs and images are made from the start on, beside the rest. Its stories come last: pods have small shares of
the processor, and beside end-to-end tests they would starve. Whatever is patient takes what the stories leave.
"""

import argparse
import concurrent.futures
import contextlib
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import time
import traceback
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests/object_rig"), str(ROOT / "tests")]

import check_run  # noqa: E402  (its folder is on the path only now)
import client  # noqa: E402
import servers  # noqa: E402
import turns  # noqa: E402

UNIT_TIMEOUT_S = 600
PYTEST_TIMEOUT_S = 3600
TOOL_TIMEOUT_S = 1800
CLUSTER_BUILD_TIMEOUT_S = 7200
UNSTEADY_MOST = 3  # in a check; more are failures
ALL_LIMIT_S = 6 * 3600
SKIP_CODE = 77
LAST_LINE_MAX = 3000  # of a tool that failed: its last word is said once more where the failures are listed
MOTO_TESTS = "contract/*create*"


@dataclass
class Count:
    """What one or more runners found; add() sums them up."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    failures: list = field(default_factory=list)
    left_out: list = field(default_factory=list)  # names of what was skipped, where nobody else says them
    unsteady: list = field(default_factory=list)  # names of what failed once and passed when it ran again; counted as passed

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.failures += other.failures
        self.left_out += other.left_out
        self.unsteady += other.unsteady

    def line(self):
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def one(name, passed):
    return Count(passed=1) if passed else Count(failed=1, failures=[name])


def may_try_again(count):
    """A few of thousands that wait for processes and sockets; where more fail there is nothing to wonder about."""
    return 0 < count.failed <= UNSTEADY_MOST and not WATCH.over()


def second_try(first, again):
    """What counts of what failed, and ran again by itself: it has failed, unless all of it passes then."""
    if again.failed or again.passed < first.failed:
        return first
    return Count(first.passed + first.failed, 0, first.skipped, [], first.left_out, first.unsteady + first.failures)


def say(text):
    print(text, flush=True)


def seconds_since(started):
    return f"{time.monotonic() - started:.0f} s"


# In front of what may take its time beside tests that must not wait for a core, and of what others wait for.
PATIENT = [str(ROOT / "tests/patiently"), "19"]
BESIDE = ["nice", "-n", "5"]

WATCH = check_run.Watch()
TIMES = ROOT / "build" / "check-times.txt"  # of all that ran; `tests/turns.py` makes the list of those that take turns from it


def run_logged(command, env=None, timeout=None):
    """Runs to the end; returns (exit code, everything it printed)."""
    return WATCH.run(command, env=env, timeout=timeout)


@contextlib.contextmanager
def timed(name):
    """Notes how long it took; gives a function that says it."""
    started = time.monotonic()
    try:
        yield lambda: seconds_since(started)
    finally:
        WATCH.note(name, time.monotonic() - started)


def build_env():
    """With a cache of objects, which presets that differ in nothing that an object depends on share: hence no folders in it."""
    env = dict(os.environ)
    if shutil.which("ccache"):
        env |= {"CMAKE_C_COMPILER_LAUNCHER": "ccache", "CCACHE_NOHASHDIR": "1", "CCACHE_BASEDIR": str(ROOT)}
    return env


def build(preset, how=()):
    """One preset, configured and built. Counts as one test: a tree that doesn't build has failed."""
    with timed(f"build {preset}") as took:
        return build_step_by_step(preset, took, how)


def build_step_by_step(preset, took, how):
    for command in (["cmake", "--preset", preset], ["cmake", "--build", "--preset", preset, "--", "-k", "0"]):
        code, text = run_logged([*how, *command], env=build_env())
        if code:
            failed = [line for line in text.splitlines() if re.search(r"FAILED|error|Error|undefined", line)]
            say(text[-6000:] if not failed else "\n".join(failed[:60]))
            say(f"build {preset}: failed")
            return one(f"build {preset}", False)
    say(f"build {preset}: {took()}")
    return one(f"build {preset}", True)


def registered_tests(preset):
    """What ctest knows: a list of (name, command, folder, environment)."""
    code, text = run_logged(["ctest", "--test-dir", f"build/{preset}", "--show-only=json-v1"])
    if code:
        return []
    tests = []
    for test in json.loads(text).get("tests", []):
        if "command" not in test:  # declared, but its program was not built
            tests.append((test["name"], None, None, {}))
            continue
        properties = {p["name"]: p["value"] for p in test.get("properties", [])}
        extra = dict(entry.split("=", 1) for entry in properties.get("ENVIRONMENT", []))
        tests.append((test["name"], test["command"], properties.get("WORKING_DIRECTORY"), extra))
    return tests


def count_criterion(name, xml_path):
    """A Criterion report as a Count, or None where there is none (another kind of program, or a crash)."""
    try:
        tree = ElementTree.parse(xml_path)
    except (OSError, ElementTree.ParseError):
        return None
    count = Count()
    for case in tree.iter("testcase"):
        label = f"{name}: {case.get('name')}"
        if case.find("failure") is not None or case.find("error") is not None:
            count.failed += 1
            count.failures.append(label)
        elif case.find("skipped") is not None or case.get("status") == "SKIPPED":
            count.skipped += 1
            count.left_out.append(label)
        else:
            count.passed += 1
    return count


def unit_test(preset, test, bucket=None):
    """Count and, where something failed, what was printed then."""
    count, text = unit_test_once(preset, test, bucket)
    if may_try_again(count) and test[1] is not None:
        count = second_try(count, unit_test_once(preset, test, bucket)[0])
    return count, text


def unit_test_once(preset, test, bucket):
    name, command, folder, extra = test
    extra = {**extra, **(bucket or {})} if name == "contract_test" else extra
    label = f"{preset}/{name}"
    if command is None:
        return Count(failed=1, failures=[f"{label}: not built"]), ""
    with timed(label), tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.xml"
        env = {**os.environ, "LSAN_OPTIONS": f"suppressions={ROOT}/tests/lsan.supp:print_suppressions=0", **extra,
               "CRITERION_OUTPUTS": f"xml:{report}"}
        try:
            code, text = WATCH.run(command, env=env, timeout=UNIT_TIMEOUT_S, cwd=folder or ROOT)
        except OSError as error:
            code, text = 127, str(error)
        count = count_criterion(label, report)
    if code == SKIP_CODE and count is None:
        return Count(skipped=1), ""
    if count is None or count.passed + count.failed + count.skipped == 0:
        return one(label, code == 0), "" if code == 0 else text
    if code and not count.failed:  # a crash or a leak after the report
        count.add(one(f"{label}: exit {code}", False))
    return count, text if count.failed else ""


@contextlib.contextmanager
def bucket_of(kind, total):
    """The environment that names a bucket of a real server; empty where none can be had. Where that has another reason than
    that there is no network to fetch it from, it has failed."""
    if WATCH.over():
        yield {}
        return
    try:
        server = servers.start(kind)
    except servers.Missing as why:
        say(f"no {kind}: {why}")
        if not isinstance(why, servers.Offline):
            total.add(one(f"{kind}, to test against", False))
        yield {}
        return
    try:
        if kind == "moto":
            client.make_bucket(server)
        yield {**server.environment, "RINGMASTER_TEST_S3": f"s3://{servers.BUCKET}/contract"}
    finally:
        server.stop()


def second_opinion(preset):
    """What moto says of conditional writes; its other gaps are listed in docs/testing.md."""
    total = Count()
    with bucket_of("moto", total) as bucket:
        if not bucket:
            return total if total.failed else Count(skipped=1)
        program = str(ROOT / f"build/{preset}/tests/contract_test")
        count, text = unit_test(preset, ("contract_test", [program, "--filter", MOTO_TESTS], None, {}), bucket)
        count.skipped = 0  # what wasn't asked
        if text:
            say(f"--- contract_test against moto\n{text[-8000:]}")
        say(f"conditional writes against moto: {count.line()}")
        return count


# Programs of the unit tests that take longest, a quarter of a minute and more under ASan. They begin first, or one of them ends last
# with a processor that has nothing left beside it.
LONG_PROGRAMS = ("operator_sim_test", "backend_gpu_test", "operator_meter_test", "lane_test", "sim_programs_seeds", "replay_test",
                 "gpu_takeover_test", "trainer_test", "checkpoint_damage_test", "snapshot_test", "sim_seeds", "sim_crowd", "bf16_test",
                 "ring_torn_test", "torn_test", "gpt_test", "checkpoint_test", "collective_test", "exact_test", "emulator_test",
                 "attend_test", "listening_test", "state_test", "backend_cpu_test")


def in_order(tests):
    """(preset, test) pairs: the long ones first, each kind in the order that ctest has."""
    return sorted(tests, key=lambda pair: LONG_PROGRAMS.index(pair[1][0]) if pair[1][0] in LONG_PROGRAMS else len(LONG_PROGRAMS))


def takes_part(preset, name, turn):
    """Long programs take turns under ASan, a quarter of them each, as they stand in their list: they are half of its time."""
    return turn is None or preset != "asan" or name not in LONG_PROGRAMS or turns.slot(name, LONG_PROGRAMS.index(name)) == turn


def unit_tests(presets, turn=None):
    """Those of all presets in one pool: at the end of each one's own a processor would wait for the other."""
    started, total = time.monotonic(), Count()
    tests = [(preset, test) for preset in presets for test in registered_tests(preset)]
    waiting = [test[0] for preset, test in tests if not takes_part(preset, test[0], turn)]
    if waiting:
        say(f"unit tests (asan): at another turn: {', '.join(waiting)}")
    with bucket_of("versitygw", total) as bucket:
        counts = run_unit_tests([(preset, test) for preset, test in tests if takes_part(preset, test[0], turn)], bucket)
    for preset in presets:
        count = counts.get(preset) or one(f"unit tests ({preset}): none is registered", False)
        say(f"unit tests ({preset}): {count.line()}")
        total.add(count)
    say(f"unit tests: {total.line()}, {seconds_since(started)}")
    return total


def own_place(bucket, preset):
    """The same bucket, and in it a place that the preset has for itself: both ask it at the same time."""
    return {name: f"{value}-{preset}" if name == "RINGMASTER_TEST_S3" else value for name, value in bucket.items()}


def run_unit_tests(tests, bucket):
    """{preset: Count} of (preset, test) pairs."""
    counts, tests = {}, in_order(tests)
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        done = pool.map(lambda pair: unit_test(*pair, own_place(bucket, pair[0])), tests)
        for (preset, test), (count, text) in zip(tests, done):
            if text:
                say(f"--- {preset}/{test[0]}\n{text[-8000:]}")
            counts.setdefault(preset, Count()).add(count)
    for name in (name for count in counts.values() for name in count.left_out):
        say(f"skipped: {name}")
    return counts


def arm64_ground():
    """Compiler, emulator and libraries for arm64. None where they are there, else what is to be counted instead of the tests."""
    for step in (["tools/install-packages", "--arm64"], ["tests/arm64/install"]):
        code, text = run_logged([*PATIENT, *step], timeout=TOOL_TIMEOUT_S)
        if code and run_logged(["tests/offline"])[0] == 0:
            say(f"skipped: arm64: {' '.join(step)}: there is no network: {text.strip()[-2000:]}")
            return Count(skipped=1)
        if code:
            say(text[-6000:])
            return one(" ".join(step), False)
    return None


def arm64():
    """The unit tests that run for arm64, under qemu-user."""
    missing = arm64_ground()
    if missing:
        return missing
    built = build("arm64", PATIENT)
    if built.failed:
        return built
    started = time.monotonic()
    tests = [(name, command and [*PATIENT, *command], folder, extra) for name, command, folder, extra in registered_tests("arm64")]
    counts = run_unit_tests([("arm64", test) for test in tests], {})
    total = counts.get("arm64") or one("unit tests (arm64): none is registered", False)
    say(f"unit tests (arm64): {total.line()}, {seconds_since(started)}")
    total.add(built)
    return total


def cuda_ground():
    """The compiler of the GPU's kernels, without which the build leaves them out. Counts only where it can't be had."""
    with timed("tools/install-packages --cuda"):
        code, text = run_logged([*BESIDE, "tools/install-packages", "--cuda"], timeout=TOOL_TIMEOUT_S)
    if code and run_logged(["tests/offline"])[0] == 0:
        say(f"skipped: the GPU's kernels are not compiled: there is no network to fetch nvcc by: {text.strip()[-2000:]}")
        return Count(skipped=1)
    if code:
        say(text[-6000:])
        return one("tools/install-packages --cuda", False)
    return Count()


def count_junit(label, path):
    count = Count()
    try:
        tree = ElementTree.parse(path)
    except (OSError, ElementTree.ParseError):
        return None
    for case in tree.iter("testcase"):
        name = f"{label}: {case.get('classname')}.{case.get('name')}"
        WATCH.note(name, float(case.get("time") or 0))
        if case.find("failure") is not None or case.find("error") is not None:
            count.failed += 1
            count.failures.append(name)
        elif case.find("skipped") is not None:
            count.skipped += 1
        else:
            count.passed += 1
    return count


def failed_stories(path):
    """What pytest is to be given to run again what failed in a report."""
    cases = [case for case in ElementTree.parse(path).iter("testcase") if case.find("failure") is not None or case.find("error") is not None]
    return sorted({f"{case.get('file')}::{case.get('name')}" for case in cases if case.get("file")})


def pytest(label, arguments, preset="test", workers=os.cpu_count() or 1, share="load", turn=None, again=False):
    """One pytest run against the programs of a preset; with a turn, stories that take turns have theirs. again: the few that
    fail get a second try."""
    count, stories = pytest_once(label, arguments, preset, workers, share, turn)
    if again and stories and may_try_again(count):
        count = second_try(count, pytest_once(f"{label}: again", stories, preset, 1, share, None)[0])
    return count


def pytest_once(label, arguments, preset, workers, share, turn):
    """Returns (count, what to run again: nothing where pytest itself broke)."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        report, told = Path(scratch) / "junit.xml", Path(scratch) / "turns.json"
        env = {**os.environ, "RINGMASTER_BIN": str(ROOT / "build" / preset / "bin"), "PYTHONDONTWRITEBYTECODE": "1",
               "PYTHONPATH": str(ROOT / "tests"), "RINGMASTER_TURN_REPORT": str(told)}
        env |= {} if turn is None else {"RINGMASTER_TURN": str(turn)}
        command = [sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider", "-p", "turns", "-rs",
                   f"--rootdir={ROOT}", "-o", "junit_family=xunit1", f"--junitxml={report}", *arguments]
        if workers > 1:
            command += ["-n", str(workers), "--dist", share]
        code, text = run_logged(command, env=env, timeout=PYTEST_TIMEOUT_S)
        count = count_junit(label, report)
        say_turns(label, told)
        stories = failed_stories(report) if code == 1 and count else []
    if count is None:
        count = one(f"{label}: pytest ended with exit code {code}", False)
    elif code not in (0, 1, 5):
        count.add(one(f"{label}: pytest ended with exit code {code}", False))
    if count.failed:
        say(text[-20000:])
    elif count.skipped:
        say("\n".join(line for line in text.splitlines() if line.startswith("SKIPPED")))
    say(f"{label}: {count.line()}, {seconds_since(started)}")
    return count, stories


def say_turns(label, told):
    """Which stories had their turn, and how many of each have it at another commit."""
    if told.exists():
        for story, (ran, of) in json.loads(told.read_text(encoding="utf-8")).items():
            say(f"{label}: in turn: {story}: {ran} of {of}")


def tool(label, command):
    """A tool of tools/ that is a test by itself; its last line says why where it is skipped."""
    with timed(label) as took:
        code, text = run_logged([*PATIENT, *command], env=build_env(), timeout=TOOL_TIMEOUT_S)
    last = (text.strip().splitlines() or [""])[-1]
    if code == SKIP_CODE:
        say(last)
        return Count(skipped=1)
    say(text[-8000:] if code else f"{last} ({took()})")
    return one(f"{label}: {last[:LAST_LINE_MAX]}" if code else label, code == 0)


SEEDS, CROWD_SEEDS, PROGRAM_SEEDS = 40000, 500, 10000
# The first of these, by the same programs: among the unit tests of the preset `test`.
UNIT_SEEDS, UNIT_CROWD_SEEDS, UNIT_PROGRAM_SEEDS = 5000, 60, 1000


def seeds(explore, count=SEEDS, before=UNIT_SEEDS):
    """The same for every commit, so that a check says something of the commit, without those that this check has run before; or, to
    explore, where none has looked before."""
    if not explore:
        return f"{before + 1}..{count}"
    code, head = run_logged(["git", "rev-parse", "HEAD"])
    first = 10_000_000 + (int(head[:12], 16) % 10**9 if code == 0 else 0)
    return f"{first}..{first + count - 1}"


def fetch_references():
    """What references read with; whoever finds it missing says why."""
    with timed("tests/reference/install"):
        run_logged([*BESIDE, "tests/reference/install"], timeout=TOOL_TIMEOUT_S)


def has_tests(folder):
    return any((ROOT / folder).glob("**/*test*.py"))


def cluster_ground():
    """What a Kubernetes on this machine stands on, made where the cache lacks it (some 20 minutes of two processors, with nothing there).

    None where it is all there, else what is to be counted instead of the stories."""
    for step in (["tools/install-packages", "--cluster"], ["tests/cluster/build"], ["tests/cluster/images"]):
        name = " ".join(step)
        with timed(name) as took:
            code, text = run_logged([*BESIDE, *step], timeout=CLUSTER_BUILD_TIMEOUT_S)
        if code and run_logged(["tests/offline"])[0] == 0:
            say(f"skipped: cluster: {name}: there is no network: {text.strip()[-2000:]}")
            return Count(skipped=1)
        if code:
            say(f"{text[-6000:]}\nno cluster; --no-cluster leaves its tests out")
            return one(name, False)
        say(f"{name}: {took()}")
    return None


def cluster_stories(ground, turn):
    """Two clusters at a time, a file's tests on one of them: they wait more than they work."""
    return ground.result() or pytest("cluster", ["tests/cluster"], workers=2, share="loadfile", turn=turn, again=True)


def simulators(explore):
    """One process at a time, and in no hurry: they take what stories leave that wait. Their time is virtual, so that whatever runs
    beside them changes nothing of what they find."""
    total = Count()
    total.add(tool("simulator", ["build/test/tests/ringmaster-sim", "--seeds", seeds(explore)]))
    total.add(tool("simulator, 64 workers", ["build/test/tests/ringmaster-sim", "--crowd", "--seeds", seeds(explore, CROWD_SEEDS, UNIT_CROWD_SEEDS)]))
    total.add(tool("simulator of programs",
                   ["build/test/tests/ringmaster-sim-programs", "--seeds", seeds(explore, PROGRAM_SEEDS, UNIT_PROGRAM_SEEDS)]))
    return total


def readers(explore, turn):
    """What runs a process for each processor by itself, one after the other. What is looked at follows from the commit, but to explore."""
    total = Count()
    mutate = [] if turn is None else ["--turn", str(turn)]
    mutate += [] if explore else ["--seed", str(1 + (turn or 0))]
    total.add(arm64())
    total.add(tool("analyze", ["tools/analyze"]))
    total.add(tool("fuzz", ["tools/fuzz", *mutate]))
    return total


def in_the_foreground(fast, presets, turn):
    """What needs the processor and whose outcome others' load could blur."""
    total = Count()
    total.add(pytest("layout", ["tests/layout"]))
    total.add(unit_tests(presets[:2], turn))
    total.add(second_opinion("test"))
    if has_tests("tests/reference"):
        total.add(pytest("references", ["tests/reference"], workers=1))
    if has_tests("tests/e2e"):
        total.add(pytest("end to end", ["tests/e2e"] + (["-m", "not slow"] if fast else []), turn=turn, again=True))
    if not fast:
        total.add(pytest("end to end (asan)", ["tests/e2e", "-m", "sanitized"], preset="asan", turn=turn, again=True))
    return total


def check(total, fast, explore, cluster, turn):
    """Adds to total what it finds, as it finds it."""
    presets = ["test"] if fast else ["test", "asan", "release"]
    with concurrent.futures.ThreadPoolExecutor(max_workers=4) as beside:
        ground = beside.submit(cluster_ground) if cluster and has_tests("tests/cluster") else None
        beside.submit(fetch_references)
        total.add(cuda_ground())
        for preset in presets:
            total.add(build(preset))
        if turn is None and not fast:
            total.add(build("tsan"))
        others = [] if fast else [beside.submit(simulators, explore)]
        total.add(in_the_foreground(fast, presets, turn))
        others += [beside.submit(cluster_stories, ground, turn)] if ground else []
        others += [] if fast else [beside.submit(readers, explore, turn)]
        for other in others:
            total.add(other.result())


def conclude(total):
    """What was slow, what failed, and the last line, whatever has happened before."""
    say("what took longest:")
    say("\n".join(WATCH.slowest()))
    if TIMES.parent.is_dir():
        TIMES.write_text(WATCH.table(), encoding="utf-8")
    if WATCH.stopped:
        total.add(one(f"{WATCH.stopped}; the ten slowest are above", False))
    for name in total.unsteady:
        say(f"UNSTEADY {name}: failed, and passed when it ran again by itself; what it said when it failed is above")
    if len(total.unsteady) > UNSTEADY_MOST:
        total.add(one(f"{len(total.unsteady)} stories are unsteady, and a check takes {UNSTEADY_MOST} at most", False))
    for failure in total.failures:
        say(f"FAILED {failure}")
    say(total.line())
    return 1 if total.failed or not total.passed else 0


def turn_to_take(everything):
    """Which stories have their turn; None: all of them."""
    if everything:
        say("turns: all stories run (--all)")
        return None
    turn, why = turns.turn_of(ROOT)
    say(f"turns: {turn + 1} of {turns.TURNS}, because {why}; --all runs all stories")
    return turn


def main():
    parser = argparse.ArgumentParser(prog="tools/check", description="Build and run every test.")
    parser.add_argument("--fast", action="store_true", help="no sanitizers, no slow end-to-end tests")
    parser.add_argument("--no-cluster", action="store_true", help="no tests on Kubernetes; --fast leaves them out, too")
    parser.add_argument("--all", action="store_true", help="also the stories whose turn is at another commit; takes longer than a check may otherwise")
    parser.add_argument("--arm64", action="store_true", help="only the unit tests that run for arm64, under qemu-user")
    parser.add_argument("--explore", action="store_true", help="simulate histories that follow from the commit instead of the usual ones, and fuzz by mutations of the day")
    parser.add_argument("--begun-s-ago", type=int, default=0, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    os.chdir(ROOT)
    WATCH.began_earlier(arguments.begun_s_ago)
    if arguments.all:
        WATCH.limit_s = ALL_LIMIT_S
    for signo in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signo, lambda number, _: WATCH.stop(f"the check was stopped by {signal.Signals(number).name}"))
    total = Count()
    try:
        if arguments.arm64:
            total.add(arm64())
        else:
            check(total, arguments.fast, arguments.explore, not (arguments.fast or arguments.no_cluster), turn_to_take(arguments.all))
    except Exception:  # the last line has to be said in any case
        say(traceback.format_exc())
        total.add(one("tools/check itself", False))
    return conclude(total)


if __name__ == "__main__":
    sys.exit(main())
