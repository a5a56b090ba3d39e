"""The first generation fails once the next processes have imported `early`; the second one says whether it was them.

    second.py FOLDER WORLD
"""

import json
import os
import sys
import time

import early

FOLDER, WORLD = sys.argv[1], int(sys.argv[2])


def imports():
    with open(os.environ["EARLY_NOTES"], encoding="utf-8") as notes:
        return notes.read().split()


def say():
    line = json.dumps({"generation": int(os.environ["TORCHELASTIC_RESTART_COUNT"]), "rank": int(os.environ["RANK"]),
                       "ahead": early.RANK is None, "pid": os.getpid()})
    with open(os.path.join(FOLDER, "said"), "a", encoding="utf-8") as out:
        out.write(line + "\n")


say()
if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    while len(set(imports())) < 2 * WORLD:
        time.sleep(0.02)
    if os.environ["RANK"] == "0":
        sys.exit(3)
    time.sleep(1000)
