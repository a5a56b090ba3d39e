"""What tools/fuzz says of a target that broke, and that a check of one commit mutates as the one before did."""

import argparse
import importlib.machinery
import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(name="fuzz", scope="module")
def fuzz_tool():
    loader = importlib.machinery.SourceFileLoader("fuzz_tool", str(ROOT / "tools/fuzz"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("fuzz_tool", loader))
    loader.exec_module(module)
    return module


def options(seed):
    return argparse.Namespace(seed=seed, seconds=10)


def test_the_last_lines_name_what_broke_and_hold_the_input(fuzz, tmp_path):
    unit = tmp_path / "drill-crash-1"
    unit.write_bytes(b"hang:1@6s")
    said = f"INFO: Seed: 1\nbroken promise: every drill is handed out once\n==7== ERROR: libFuzzer: deadly signal\nTest unit written to {unit}\nstat::x: 1\n"
    assert fuzz.in_short("drill", said) == (
        f"fuzz: FAILED drill: broken promise: every drill is handed out once; its input: {unit}, 9 bytes, in base64: aGFuZzoxQDZz")
    unit.write_bytes(bytes(fuzz.INPUT_SHOWN + 1))
    assert fuzz.in_short("drill", said).endswith(f"{unit}, {fuzz.INPUT_SHOWN + 1} bytes")


def test_an_input_of_the_corpus_that_breaks_its_target_is_the_last_one_that_ran(fuzz, tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_bytes(b"1")
    two.write_bytes(b"2")
    said = f"Running: {one}\nExecuted {one} in 0 ms\nRunning: {two}\n==7== ERROR: AddressSanitizer: heap-buffer-overflow\n"
    assert fuzz.in_short("event", said) == (
        f"fuzz: FAILED event: ==7== ERROR: AddressSanitizer: heap-buffer-overflow; its input: {two}, 1 bytes, in base64: Mg==")


def test_a_target_that_does_not_end_says_so(fuzz):
    assert fuzz.in_short("event", "INFO: Seed: 1\nevent: it did not end") == "fuzz: FAILED event: event: it did not end"


def test_with_a_seed_what_is_tried_does_not_depend_on_how_fast_a_machine_is(fuzz):
    with_seed, without = fuzz.exploring(options(3)), fuzz.exploring(options(None))
    assert {"-seed=3", f"-runs={10 * fuzz.RUNS_PER_SECOND}", "-entropic=0"} <= set(with_seed)
    assert without == ["-max_total_time=10"]
