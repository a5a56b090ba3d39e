"""Fixtures of the end-to-end tests."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import rig  # noqa: E402  (its folder is on the path only now)
from reference_rig import python_with_tokenizers, python_with_transformers  # noqa: E402,F401  (fixtures)
from s3_rig import (moto_under_way, prefix_of_the_test, proxy_in_front, versitygw_over_tls,  # noqa: E402,F401  (fixtures)
                    versitygw_under_way)


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: left out by tools/check --fast, and takes turns in tools/check")
    config.addinivalue_line("markers", "turns: takes turns in tools/check, see tests/turns.py")
    config.addinivalue_line("markers", "sanitized: also run against the sanitizers' build")


@pytest.fixture(name="launch")
def launch_and_clean_up():
    """launch(job, *arguments, env=None): a run under way, ended at the latest with the test."""
    if not (rig.BIN / "ringmaster").exists():
        pytest.fail(f"no programs in {rig.BIN}: build first")
    runs = []

    def launch(job, *arguments, env=None):
        runs.append(rig.Run(job, *arguments, env=env))
        return runs[-1]

    yield launch
    for run in runs:
        run.clean_up()


@pytest.fixture(name="finish")
def launch_and_wait(launch):
    """finish(job, *arguments, env=None): a run that came to its end."""

    def finish(job, *arguments, env=None):
        run = launch(job, *arguments, env=env)
        run.wait()
        return run

    return finish


REFERENCES = {}


@pytest.fixture(name="reference")
def undisturbed_run(launch, tmp_path_factory):
    """reference(**fields): the same job with one worker, one thread and nothing that disturbs it.

    Returns (weightsSha256, [loss of each step]); each kind of job is run once per test process."""

    def reference(**fields):
        fields = {**fields, "workers__target": 1, "workers__min": 1, "trainer__threads": 1}
        key = repr(sorted(fields.items()))
        if key not in REFERENCES:
            run = launch(rig.make_job(tmp_path_factory.mktemp("reference"), **fields))
            run.wait()
            complete = rig.check_complete(run, last=fields.get("trainer__steps", rig.STEPS))
            REFERENCES[key] = (complete["weightsSha256"], [e["loss"] for e in run.of("step")])
        return REFERENCES[key]

    return reference
