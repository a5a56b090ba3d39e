"""Builds and runs every test, and counts them: what tools/check does once its packages are there.

Each runner (the builds, the unit tests one program at a time, pytest for layout, end to end and
references) gives passed, failed and skipped; the very last line is their sum. What failed is shown
where it happened and listed again at the end.
"""

import argparse
import concurrent.futures
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/object_rig"))

import client  # noqa: E402  (its folder is on the path only now)
import servers  # noqa: E402

UNIT_TIMEOUT_S = 900
PYTEST_TIMEOUT_S = 3600
TOOL_TIMEOUT_S = 1800
CLUSTER_BUILD_TIMEOUT_S = 7200
SKIP_CODE = 77
MOTO_TESTS = "contract/*create*"


@dataclass
class Count:
    """What one or more runners found; add() sums them up."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    failures: list = field(default_factory=list)

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.failures += other.failures

    def line(self):
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def one(name, passed):
    return Count(passed=1) if passed else Count(failed=1, failures=[name])


def say(text):
    print(text, flush=True)


def seconds_since(started):
    return f"{time.monotonic() - started:.0f} s"


# In front of what may take its time beside tests that must not wait for a core.
STEP_BACK = ["nice", "-n", "19"]


def run_logged(command, env=None, timeout=None):
    """Runs to the end; returns (exit code, everything it printed)."""
    try:
        done = subprocess.run(command, cwd=ROOT, env=env, timeout=timeout, text=True, errors="replace",
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.returncode, done.stdout
    except subprocess.TimeoutExpired as late:
        text = late.stdout or b""
        text = text.decode(errors="replace") if isinstance(text, bytes) else text
        return 124, text + f"\nstopped after {timeout} s\n"


def build_env():
    env = dict(os.environ)
    if shutil.which("ccache"):
        env["CMAKE_C_COMPILER_LAUNCHER"] = "ccache"
    return env


def build(preset):
    """One preset, configured and built. Counts as one test: a tree that doesn't build has failed."""
    started = time.monotonic()
    for command in (["cmake", "--preset", preset], ["cmake", "--build", "--preset", preset, "--", "-k", "0"]):
        code, text = run_logged(command, env=build_env())
        if code:
            failed = [line for line in text.splitlines() if re.search(r"FAILED|error|Error|undefined", line)]
            say(text[-6000:] if not failed else "\n".join(failed[:60]))
            say(f"build {preset}: failed")
            return one(f"build {preset}", False)
    say(f"build {preset}: {seconds_since(started)}")
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
        else:
            count.passed += 1
    return count


def unit_test(preset, test, bucket=None):
    name, command, folder, extra = test
    extra = {**extra, **(bucket or {})} if name == "contract_test" else extra
    label = f"{preset}/{name}"
    if command is None:
        return Count(failed=1, failures=[f"{label}: not built"]), ""
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.xml"
        env = {**os.environ, "LSAN_OPTIONS": f"suppressions={ROOT}/tests/lsan.supp:print_suppressions=0", **extra,
               "CRITERION_OUTPUTS": f"xml:{report}"}
        try:
            done = subprocess.run(command, cwd=folder or ROOT, env=env, timeout=UNIT_TIMEOUT_S, text=True,
                                  errors="replace", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT)
            code, text = done.returncode, done.stdout
        except subprocess.TimeoutExpired:
            code, text = 124, f"stopped after {UNIT_TIMEOUT_S} s"
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
def bucket_of(kind):
    """The environment that names a bucket of a real server; empty where none can be had, which is said."""
    try:
        server = servers.start(kind)
    except servers.Missing as why:
        say(f"no {kind}: {why}")
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
    with bucket_of("moto") as bucket:
        if not bucket:
            return Count(skipped=1)
        program = str(ROOT / f"build/{preset}/tests/contract_test")
        count, text = unit_test(preset, ("contract_test", [program, "--filter", MOTO_TESTS], None, {}), bucket)
        count.skipped = 0  # what wasn't asked
        if text:
            say(f"--- contract_test against moto\n{text[-8000:]}")
        say(f"conditional writes against moto: {count.line()}")
        return count


def unit_tests(preset):
    started, total = time.monotonic(), Count()
    tests = registered_tests(preset)
    with bucket_of("versitygw") as bucket, concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        for test, (count, text) in zip(tests, pool.map(lambda t: unit_test(preset, t, bucket), tests)):
            if text:
                say(f"--- {preset}/{test[0]}\n{text[-8000:]}")
            total.add(count)
    say(f"unit tests ({preset}): {total.line()}, {seconds_since(started)}")
    return total


def count_junit(label, path):
    count = Count()
    try:
        tree = ElementTree.parse(path)
    except (OSError, ElementTree.ParseError):
        return None
    for case in tree.iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            count.failed += 1
            count.failures.append(f"{label}: {case.get('classname')}.{case.get('name')}")
        elif case.find("skipped") is not None:
            count.skipped += 1
        else:
            count.passed += 1
    return count


def pytest(label, arguments, preset="test", workers=os.cpu_count() or 1, share="load"):
    """One pytest run against the programs of a preset."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "junit.xml"
        env = {**os.environ, "RINGMASTER_BIN": str(ROOT / "build" / preset / "bin"), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider", "-rs",
                   f"--junitxml={report}", *arguments]
        if workers > 1:
            command += ["-n", str(workers), "--dist", share]
        code, text = run_logged(command, env=env, timeout=PYTEST_TIMEOUT_S)
        count = count_junit(label, report)
    if count is None:
        count = one(f"{label}: pytest ended with exit code {code}", False)
    elif code not in (0, 1, 5):
        count.add(one(f"{label}: pytest ended with exit code {code}", False))
    if count.failed:
        say(text[-20000:])
    elif count.skipped:
        say("\n".join(line for line in text.splitlines() if line.startswith("SKIPPED")))
    say(f"{label}: {count.line()}, {seconds_since(started)}")
    return count


def tool(label, command):
    """A tool of tools/ that is a test by itself; its last line says why where it is skipped."""
    started = time.monotonic()
    code, text = run_logged([*STEP_BACK, *command], timeout=TOOL_TIMEOUT_S)
    last = (text.strip().splitlines() or [""])[-1]
    if code == SKIP_CODE:
        say(last)
        return Count(skipped=1)
    say(text[-8000:] if code else f"{last} ({seconds_since(started)})")
    return one(label, code == 0)


SEEDS = 40000


def seeds(explore):
    """The same for every commit, so that a check says something of the commit; or, to explore, where none has looked before."""
    if not explore:
        return f"1..{SEEDS}"
    code, head = run_logged(["git", "rev-parse", "HEAD"])
    first = 10_000_000 + (int(head[:12], 16) % 10**9 if code == 0 else 0)
    return f"{first}..{first + SEEDS - 1}"


def has_tests(folder):
    return any((ROOT / folder).glob("**/*test*.py"))


def cluster_tiers():
    """A Kubernetes on this machine: its programs and images (minutes where nothing is cached), then the tests on both tiers."""
    for step in (["tools/install-packages", "--cluster"], ["tests/cluster/build"], ["tests/cluster/images"]):
        started = time.monotonic()
        code, text = run_logged(step, timeout=CLUSTER_BUILD_TIMEOUT_S)
        if code == SKIP_CODE:
            say(f"no cluster: {text.strip()[-2000:]}")
            return Count(skipped=1)
        if code:
            say(text[-6000:])
            return one(" ".join(step), False)
        say(f"{' '.join(step)}: {seconds_since(started)}")
    # Two clusters at a time, a file's tests on one of them: they wait more than they work.
    return pytest("cluster", ["tests/cluster"], workers=2, share="loadfile")


def patient_tools(explore):
    """What needs nothing but a processor and no time at all."""
    total = Count()
    total.add(tool("simulator", ["build/test/tests/ringmaster-sim", "--seeds", seeds(explore)]))
    total.add(tool("fuzz", ["tools/fuzz"]))
    total.add(tool("analyze", ["tools/analyze"]))
    return total


def tools_beside_cluster(explore, cluster):
    """Pods wait more than they work: what is patient takes what they leave of the processor."""
    with concurrent.futures.ThreadPoolExecutor(max_workers=1) as beside:
        patient = beside.submit(patient_tools, explore)
        total = cluster_tiers() if cluster and has_tests("tests/cluster") else Count()
        total.add(patient.result())
        return total


def check(fast, explore, cluster):
    total = Count()
    presets = ["test"] if fast else ["test", "asan", "release"]
    for preset in presets:
        total.add(build(preset))
    total.add(pytest("layout", ["tests/layout"], workers=1))
    for preset in presets[:2]:
        total.add(unit_tests(preset))
    total.add(second_opinion("test"))
    if has_tests("tests/reference"):
        total.add(pytest("references", ["tests/reference"], workers=1))
    if has_tests("tests/e2e"):
        total.add(pytest("end to end", ["tests/e2e"] + (["-m", "not slow"] if fast else [])))
    if fast:
        return total
    total.add(pytest("end to end (asan)", ["tests/e2e", "-m", "sanitized"], preset="asan"))
    total.add(tools_beside_cluster(explore, cluster))
    return total


def main():
    parser = argparse.ArgumentParser(prog="tools/check", description="Build and run every test.")
    parser.add_argument("--fast", action="store_true", help="no sanitizers, no slow end-to-end tests")
    parser.add_argument("--no-cluster", action="store_true", help="no tests on Kubernetes; --fast leaves them out, too")
    parser.add_argument("--explore", action="store_true", help="simulate histories that follow from the commit instead of the usual ones")
    arguments = parser.parse_args()
    os.chdir(ROOT)
    total = check(arguments.fast, arguments.explore, not (arguments.fast or arguments.no_cluster))
    for failure in total.failures:
        say(f"FAILED {failure}")
    say(total.line())
    return 1 if total.failed or not total.passed else 0


if __name__ == "__main__":
    sys.exit(main())
