"""docs/benchmarks.md, the machine that its figures are from, and the columns of its recoveries."""

import os
import platform
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/benchmarks.md"

# Of an event `recovered` and of a status' lastRecovery; and the head of a table of them.
PHASES = ["detectMs", "agreeMs", "ringMs", "stateMs", "firstStepMs", "totalMs"]
PHASES_HEAD = ["| | detect | agree | ring | state | first step | total |", "|---|---|---|---|---|---|---|"]


def machine():
    """One line that says where this was measured."""
    cpu = re.search(r"model name\s*:\s*(.*)", Path("/proc/cpuinfo").read_text())
    memory = int(re.search(r"MemTotal:\s*(\d+)", Path("/proc/meminfo").read_text()).group(1)) // (1 << 20)
    return (f"{cpu.group(1) if cpu else platform.processor()}, {os.cpu_count()} cores, {memory} GiB, "
            f"Linux {platform.release()}")


def write_section(name, lines):
    """Puts lines between the page's markers of that name."""
    text = PAGE.read_text()
    start, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    if start not in text or end not in text:
        sys.exit(f"tools/bench: {PAGE} has no {start} ... {end}")
    before, rest = text.split(start, 1)
    PAGE.write_text(before + start + "\n" + "\n".join(lines) + "\n" + end + rest.split(end, 1)[1])
