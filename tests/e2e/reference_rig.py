"""A Python with programs of others that read what the trainer writes: transformers, torch and tokenizers, in the tests' cache."""

import subprocess

import pytest

import rig

OFFLINE = 77  # an exit code


@pytest.fixture(name="reference_python", scope="session")
def python_with_transformers():
    """Its path; fetched where it is not there yet."""
    done = subprocess.run([str(rig.ROOT / "tests/reference/install")], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode == OFFLINE:
        pytest.skip(f"no transformers: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
