"""A module that takes note of its import: in which process, and whether that had a rank by then."""

import os

RANK = os.environ.get("RANK")

with open(os.environ["EARLY_NOTES"], "a", encoding="utf-8") as notes:
    notes.write(f"{os.getpid()}\n")
