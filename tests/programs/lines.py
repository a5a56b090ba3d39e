"""A program in an image of its own that knows nothing of Ringmaster: the ranks write lines to one file, which all of them see.

    lines.py FOLDER

Rank r writes the numbers n with n % WORLD_SIZE == r that are not in FOLDER/lines yet, each in a line appended whole, with how many
generations there were, the world, and the rank. So a number comes twice if anything of one generation outlives it. Until
FOLDER/last says how many numbers are wanted it goes on for ever, unhurried.
"""

import os
import sys
import time
from pathlib import Path

FOLDER = Path(sys.argv[1])
RANK, WORLD, BEFORE = (int(os.environ[name]) for name in ("RANK", "WORLD_SIZE", "TORCHELASTIC_RESTART_COUNT"))
PAUSE_S = 0.1


def written():
    try:
        return {int(line.split()[0]) for line in (FOLDER / "lines").read_text(encoding="ascii").splitlines()}
    except FileNotFoundError:
        return set()


def wanted():
    try:
        return int((FOLDER / "last").read_text(encoding="ascii"))
    except (FileNotFoundError, ValueError):
        return None


def check_the_image_is_as_it_was_made():
    """What the image says to loaders holds for this process, and there is a home to write to."""
    assert os.environ["LD_PRELOAD"] == "/astray/trap.so" and os.environ["LD_LIBRARY_PATH"] == "/astray", os.environ
    assert "/astray/trap.so" in Path("/proc/self/maps").read_text(encoding="utf-8")
    assert not [name for name in os.environ if name.startswith("RINGMASTER_ASIDE_")], os.environ
    for place in (os.environ["HOME"], os.environ["XDG_CACHE_HOME"], "/tmp"):
        os.makedirs(place, exist_ok=True)
        (Path(place) / f"rank-{RANK}").write_text("here", encoding="ascii")
    assert os.getuid() and os.environ["USER"] == "ringmaster"


def main():
    check_the_image_is_as_it_was_made()
    there, number = written(), RANK
    out = os.open(FOLDER / "lines", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    while (last := wanted()) is None or number < last:
        if number not in there:
            if last is None:
                time.sleep(PAUSE_S)
            os.write(out, f"{number} {BEFORE} {WORLD} {RANK}\n".encode())
        number += WORLD


main()
