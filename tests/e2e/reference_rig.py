"""Pythons with programs of others that read what the trainer writes: transformers, torch and tokenizers, in the tests' cache."""

import subprocess

import pytest

import rig

OFFLINE = 77  # an exit code


def installed(name, what):
    """The path that it prints; what is not there yet is fetched."""
    done = subprocess.run([str(rig.ROOT / "tests/reference" / name)], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode == OFFLINE:
        pytest.skip(f"no {what}: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture(name="reference_python", scope="session")
def python_with_transformers():
    return installed("install", "transformers")


@pytest.fixture(name="tokenizers_python", scope="session")
def python_with_tokenizers():
    """Without transformers and torch, which not every machine can have."""
    return installed("install-tokenizers", "tokenizers")
