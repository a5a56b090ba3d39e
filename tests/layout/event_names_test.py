"""Each event that a test or a tool asks for by its name is one that the programs tell: who misspells one asks for what never comes, and a
story that none came could not fail."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EVENTS = ROOT / "common" / "wire" / "event.c"
NOBODYS = {"moonrise"}  # of stories about names that nobody knows
ASKED = re.compile(r'(?:\bread_until\(|\.of\(|\["event"\] [!=]= |\.get\("event"\) [!=]= |\["event"\] in \()((?:"\w+"(?:, )?)+)')


def told():
    return set(re.findall(r'\[EVENT_\w+\] = \{(?:\.name = )?"(\w+)"', EVENTS.read_text()))


def asked(source):
    return {name for names in ASKED.findall(source) for name in re.findall(r"\w+", names)}


def scripts():
    yield from (path for folder in ("tests", "tools", "python") for path in (ROOT / folder).rglob("*.py"))


def test_each_event_that_a_script_asks_for_is_told():
    wrong = {f"{path.relative_to(ROOT)}: {name}" for path in scripts() if path != Path(__file__).resolve()
             for name in asked(path.read_text()) - told() - NOBODYS}
    assert not wrong
    assert sum(len(asked(path.read_text())) for path in scripts()) > 100, "the scripts ask in other words now"


@pytest.mark.parametrize("line", ['run.read_until("ringFromed")', 'assert not run.of("ringFromed")', 'if event["event"] == "ringFromed":',
                                  'if e.get("event") == "ringFromed":', 'if e["event"] in ("step", "ringFromed"):'])
def test_an_event_that_nobody_tells_is_found(line):
    assert asked(line) - told() == {"ringFromed"}
