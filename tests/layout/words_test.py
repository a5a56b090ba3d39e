"""One word a thing, where people read it: pages, the API's descriptions, the texts of programs."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# What is not said any more, and the word for it.
OTHERS = {r"(done|trained) again": "redone", r"harm on order": "a fault that you ask for"}
READ = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), ROOT / "crds/trainingjob.yaml", ROOT / "deploy/install.yaml",
        *(ROOT / "cli/core").glob("*.c"), *(ROOT / "coordinator/status").glob("*.c"), *(ROOT / "common/wire").glob("*.c")]
HISTORY = {"bugs.md", "benchmarks.md"}  # what was said once, and other programs' doings


def said(text):
    """(line, what, instead) of each."""
    for number, line in enumerate(text.splitlines(), 1):
        for pattern, word in OTHERS.items():
            yield from ((number, found[0], word) for found in re.finditer(pattern, line, re.IGNORECASE))


@pytest.mark.parametrize("path", [path for path in READ if path.name not in HISTORY], ids=lambda path: path.name)
def test_a_thing_has_one_word(path):
    found = list(said(path.read_text(encoding="utf-8")))
    assert not found


def test_another_word_is_seen_with_its_line():
    assert list(said("| steps |\n| Steps done again, at most |")) == [(2, "done again", "redone")]
