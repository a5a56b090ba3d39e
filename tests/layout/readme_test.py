"""README.md tells a newcomer little, and no number that the tree does not hold: those of its table stand on docs/benchmarks.md, in the rows that they
are claimed to be of; those of its picture, in the picture and in the command that made it."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BENCHMARKS = (ROOT / "docs/benchmarks.md").read_text(encoding="utf-8")
LONGEST = 115  # lines
NUMBER = r"(?<![\w.])\d+(?:\.\d+)?(?: m?s\b)?"
OURS, TORCHRUN = "Ringmaster", "torchrun"
# (row, column): each number there with the beginning of the row that it is of, and the number's cell (0: the line is no table's).
CLAIMS = {
    ("until the next step", OURS): [("83 ms", "| recovery against torchrun, quick timeouts |", 2)],
    ("until the next step", TORCHRUN): [("11.7 s", "| recovery against torchrun, quick timeouts |", 3), ("48.3 s", "| recovery against torchrun, its default timeouts |", 3)],
    ("steps redone", OURS): [("1", "Steps redone: 29 in 30 losses, at most 1 in one;", 0)],
    ("until the next step of your own program, restarted", OURS): [
        ("7.07 s", "| SIGKILL of one of 4 | `mode: Restart` |", 3), ("2.75 s", "| SIGKILL of one of 4 | the same, `preload: [torch]` |", 3)],
    ("until the next step of your own program, restarted", TORCHRUN): [("13.50 s", "| SIGKILL of one of 4 | torchrun, quick timeouts |", 3)],
    ("the same, kept running", OURS): [("0.18 s", "| SIGKILL of one of 4 | `mode: Elastic` |", 3)],
}


def cells(line):
    """Of a table's row, from 1 on; the whole line is cell 0."""
    return [line, *(cell.strip() for cell in line.strip().strip("|").split("|"))]


def told(readme):
    """{(row, column): [numbers]} of its table, where there are any."""
    lines = readme.splitlines()
    head = next(number for number, line in enumerate(lines) if line.startswith("| | Ringmaster |"))
    found = {}
    for line in lines[head + 2:]:
        if not line.startswith("|"):
            break
        _, row, *values = cells(line)
        found.update({(row, column): re.findall(NUMBER, value) for column, value in zip((OURS, TORCHRUN), values)})
    return {place: numbers for place, numbers in found.items() if numbers}


def violations(readme, benchmarks):
    wrong, claimed = [], {place: [number for number, _, _ in claims] for place, claims in CLAIMS.items()}
    if told(readme) != claimed:
        wrong.append(f"README.md's table has {told(readme)}, and not {claimed}: say in CLAIMS where each stands")
    for number, row, cell in (claim for claims in CLAIMS.values() for claim in claims):
        lines = [line for line in benchmarks.splitlines() if line.startswith(row)]
        bare = number.partition(" ")[0]  # a table's head may have the unit
        if len(lines) != 1 or bare not in re.findall(r"\d+(?:\.\d+)?", cells(lines[0])[cell]):
            wrong.append(f"docs/benchmarks.md: {number} is not in cell {cell} of the one row {row}")
    return wrong


def test_each_number_of_the_table_stands_on_the_page_that_measured_it():
    wrong = violations(README, BENCHMARKS)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("page, old, new", [
    ("readme", "| 83 ms |", "| 80 ms |"), ("readme", "at most 1 |", "at most 1 in 2 |"), ("readme", "| 13.50 s |", "| 13 s |"), ("readme", " go on |", " go on for 3 s |"),
    ("benchmarks", "timeouts | 83 ms | 11.7 s |", "timeouts | 84 ms | 11.7 s |"), ("benchmarks", "timeouts | 83 ms | 48.3 s |", "timeouts | 48.3 ms | 49.3 s |"),
    ("benchmarks", "| 7.07 | 7.07 | 7.18 |", "| 7.08 | 7.07 | 7.18 |"), ("benchmarks", "at most 1 in one;", "at most 2 in one;"),
])
def test_a_number_that_is_another_one_is_found(page, old, new):
    pages = {"readme": README, "benchmarks": BENCHMARKS}
    assert old in pages[page]
    assert violations(**{**pages, page: pages[page].replace(old, new, 1)})


def test_what_is_said_of_the_picture_is_what_it_shows_and_how_it_was_made():
    picture = (ROOT / "docs/run.svg").read_text(encoding="utf-8")
    steps, killed, joined = re.search(r"(\d+) steps in two minutes\. Worker 1 is killed after step (\d+) and comes back after step (\d+)\.", README).groups()
    assert f">{steps} steps in 2 min 00 s" in picture
    assert f"--drill kill:1@{killed} --drill join@{joined} " in (ROOT / "tools/quickstart").read_text(encoding="utf-8")


def hops(readme, architecture):
    """The link of the README that asks it, and the file in bold of the walk that it leads to; None where a hop is missing."""
    link = re.search(r"\[[^]]*what happens when a worker is told to go[^]]*\]\(docs/architecture\.md#([a-z-]+)\)", readme)
    heads = {head.lower().replace(" ", "-"): at.end() for at in re.finditer(r"^## (.*)$", architecture, re.M) for head in at.groups()}
    walk = re.match(r".*?^\* \*\*A worker is told to go\*\*.*?\*\*`([\w/.]+)`", architecture[heads[link[1]]:], re.S | re.M) if link and link[1] in heads else None
    return walk and walk[1]


def test_who_asks_what_happens_when_a_worker_is_told_to_go_is_there_in_three_hops():
    architecture = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    assert hops(README, architecture) == "coordinator/core/rdzv_leave.c"
    assert hops(README.replace("told to go", "lost"), architecture) is None
    assert hops(README, architecture.replace("## Six walks", "## Walks")) is None


def test_a_newcomer_is_done_with_it_soon():
    assert len(README.splitlines()) <= LONGEST
    assert README.index("    tools/quickstart ") < README.index("    tools/check ") < README.index("(docs/run.svg)") < README.index("| torchrun |")


def memory_violations(pages):
    """What is said of ten thousand running jobs' memory stands in the row that measured it."""
    row = next(line for line in BENCHMARKS.splitlines() if line.startswith("| most memory while the API server starts anew"))
    measured = re.findall(r"\d+ MiB", cells(row)[-1])
    said = {name: re.findall(r"ten thousand running jobs of 8 workers took (\d+ MiB)", text) for name, text in pages.items()}
    return [f"{name}: {found}, and measured were {measured}" for name, found in said.items() if len(found) != 1 or found[0] not in measured]


MEMORY_PAGES = {name: (ROOT / name).read_text(encoding="utf-8") for name in ("docs/operator.md", "charts/ringmaster/values.yaml")}


def test_the_memory_of_ten_thousand_jobs_is_said_as_it_was_measured():
    assert not memory_violations(MEMORY_PAGES)


@pytest.mark.parametrize("name", MEMORY_PAGES)
def test_another_amount_of_memory_is_found(name):
    other = re.sub(r"(running jobs of 8 workers took )\d", r"\g<1>1", MEMORY_PAGES[name])
    assert memory_violations({name: other.replace("took 1", "took 9")})
