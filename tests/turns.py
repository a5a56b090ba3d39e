"""Stories that take turns, as a plug-in of pytest (`-p turns`): of those marked `turns` or `slow`, or listed in turns.txt as having
taken long, a check runs every fourth.

    /usr/bin/python3 tests/turns.py build/check-times.txt     writes turns.txt anew from what the last check measured; commit it

A story's slot follows from its name, or is the argument of `turns` where a few long ones are to be spread evenly. The turn
follows from the commit: how many led to it, along first parents. So of any four commits in a row each story has its turn
in one, and two checks of one commit run the same. Without RINGMASTER_TURN all of them run: by hand, and in
`tools/check --all`; those marked `turns("all")`, which need what is dear to make, run only then. RINGMASTER_TURN_REPORT names a file that gets what ran: {story: [how many ran, of how many]}.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TURNS = 4
LIST = Path(__file__).resolve().parent / "turns.txt"
ALL = "all"  # in a slot's place


def slot(name, given=None):
    """The turn in which the story of that name runs; None where it never has one."""
    if given == ALL:
        return None
    return (hashlib.sha3_256(name.encode()).digest()[0] if given is None else given) % TURNS


def turn_of(root):
    """(turn, sentence that says what it follows from)."""
    def git(*arguments):
        done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False)
        return done.stdout.strip() if done.returncode == 0 else ""

    head = git("rev-parse", "HEAD")
    if not head:
        return 0, "no commit here"
    if git("rev-parse", "--is-shallow-repository") == "true":
        return slot(head), f"the history of commit {head[:12]} is cut off, so its name is what counts"
    count = int(git("rev-list", "--count", "--first-parent", "HEAD"))
    return count % TURNS, f"commit {head[:12]} is number {count}"


def listed(text):
    """{file::story} of a list: a line each, of all its cases; what begins with # is a remark."""
    return {line.split("#")[0].strip() for line in text.splitlines()} - {""}


LONG = listed(LIST.read_text(encoding="utf-8")) if LIST.exists() else set()


def mark_of(item):
    mark = item.get_closest_marker("turns") or item.get_closest_marker("slow")
    return pytest.mark.turns.mark if mark is None and name_of(item).split("[")[0] in LONG else mark


def name_of(item):
    """Without the folder, so that it does not matter from where pytest was started."""
    return item.nodeid.split("/")[-1]


def has_turn(item, turn):
    mark = mark_of(item)
    return mark is None or slot(name_of(item), *mark.args) == turn


def pytest_configure(config):
    config.addinivalue_line("markers", "turns(slot): runs in the check of every fourth commit; of none with the slot \"all\"")


def pytest_collection_modifyitems(config, items):
    turn = os.environ.get("RINGMASTER_TURN")
    if turn is None:
        return
    kept = [item for item in items if has_turn(item, int(turn))]
    write_report(items, kept)
    config.hook.pytest_deselected(items=[item for item in items if not has_turn(item, int(turn))])
    items[:] = kept


def write_report(items, kept):
    path = os.environ.get("RINGMASTER_TURN_REPORT")
    if not path:
        return
    told, kept = {}, set(kept)
    for item in filter(mark_of, items):
        counts = told.setdefault(name_of(item).split("[")[0], [0, 0])
        counts[0] += item in kept
        counts[1] += 1
    # The processes of one run write the same, side by side.
    new = Path(f"{path}.{os.getpid()}")
    new.write_text(json.dumps(told), encoding="utf-8")
    new.replace(path)


LONG_S = 5  # all cases of a story together, while another story runs beside it
HEAD = "# Stories that take turns because they take long: what all cases of each took together in a check of two cores, in seconds.\n"
RAN = re.compile(r"(?:end to end|cluster): tests\.(?:e2e|cluster)\.(\w+)\.(\w+)")


def seconds_of(times):
    """{file::story: seconds of all its cases that ran}; times: lines of seconds, a tab, what took them."""
    took = {}
    for line in times.splitlines():
        seconds, _, name = line.partition("\t")
        found = RAN.match(name)
        if found:
            story = f"{found[1]}.py::{found[2]}"
            took[story] = took.get(story, 0) + float(seconds)
    return took


def is_marked(story):
    """Whether its own file says that it takes turns; a case's own mark counts for all of its cases."""
    file, name = story.split("::")
    for path in Path(__file__).resolve().parent.glob(f"*/{file}"):
        text = path.read_text(encoding="utf-8")
        head = re.search(rf"((?:^[@ \])].*\n)*)^def {name}\(", text, re.MULTILINE)
        if "mark.slow" in text.split("\ndef ")[0].partition("pytestmark")[2] or (head and re.search(r"mark\.(slow|turns)|\bturn", head[1])):
            return True
    return False


def list_of(times, before, marked=is_marked):
    """The new list's text: who took long, and of those listed before (lines) who had no turn in that check."""
    took = {story: seconds for story, seconds in seconds_of(times).items() if not marked(story)}
    kept = [line for line in before.splitlines() if not line.startswith("#") and line.split("#")[0].strip() not in {*took, ""}]
    return HEAD + "".join(f"{line}\n" for line in sorted(kept + [f"{story} # {seconds:.0f}" for story, seconds in took.items() if seconds >= LONG_S]))


if __name__ == "__main__":
    LIST.write_text(list_of(Path(sys.argv[1]).read_text(encoding="utf-8"), LIST.read_text(encoding="utf-8")), encoding="utf-8")
