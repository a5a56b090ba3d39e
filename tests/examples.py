"""The jobs of deploy/examples, made so small that a test can train them to their end; all else stays as it lies in the tree."""

import json
import re
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "deploy/examples"
STEPS, WARM_UP = 24, 20  # at most
SMALL = [(r"^( +)model: \{.*\}$", r"\1model: {layers: 1, heads: 2, width: 16, context: 16, vocabulary: 256}"),
         (r"^( +)steps: \d+$", rf"\1steps: {STEPS}")]


def names():
    """Those files that have a job of the built-in trainer in them."""
    return [name for name in with_jobs() if name not in programs("Restart") + programs("Elastic")]


def programs(mode):
    """Those with a job that runs a program in that mode."""
    return [name for name in with_jobs() if any(re.search(f"^    mode: {mode}$", text, re.MULTILINE) for _, text in documents(name))]


def with_jobs():
    return sorted(path.name for path in FOLDER.glob("*.yaml") if any(is_job for is_job, _ in documents(path.name)))


def documents(name):
    """(is it a job, its text) for each document of the file."""
    texts = (FOLDER / name).read_text(encoding="utf-8").split("\n---\n")
    return [(bool(re.search("^kind: TrainingJob", text, re.MULTILINE)), text) for text in texts]


def beside(name):
    """What the file has beside its job."""
    return [text for is_job, text in documents(name) if not is_job]


def program(name, command):
    """The TrainingJob of an example that runs a program, with this one in its place."""
    text, = (text for is_job, text in documents(name) if is_job)
    text, count = re.subn(r"^    command: \[.*\]$", f"    command: {json.dumps(command)}", text, flags=re.MULTILINE)
    assert count == 1, f"{name}: command stands there {count} times"
    return text + "\n"


def job(name, *more):
    """The TrainingJob of an example with a small model and few steps, and with more of it replaced: (pattern, text) that stand there once."""
    text, = (text for is_job, text in documents(name) if is_job)
    for pattern, small in [*SMALL, *more]:
        text, count = re.subn(pattern, small, text, flags=re.MULTILINE)
        assert count == 1, f"{name}: {pattern} stands there {count} times"
    return re.sub(r"\bwarmupSteps: (\d+)", lambda found: f"warmupSteps: {min(int(found[1]), WARM_UP)}", text) + "\n"
