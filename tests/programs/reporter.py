"""A training that says how far it is, and knows nothing else of Ringmaster. Outside of a job it does the same, and says nothing.

    reporter.py STEPS SECONDS [hang STEP | garbage | flood | quiet]

hang: in the first generation it stands still after that step. garbage: what is no report comes before and between.
flood: it reports as fast as it can. quiet: it reports nothing.
"""

import os
import socket
import sys
import time

import ringmaster

STEPS, SECONDS = int(sys.argv[1]), float(sys.argv[2])
WHAT = sys.argv[3] if len(sys.argv) > 3 else ""
GARBAGE = [b"", b"\0" * 400, b"\xff\xfe step=3", b"step=-4", b"step=1e9", b"loss=1", b"x" * 100000, b"{\"step\": 3}",
           b"step=9999999999999999999999", b"step=2 loss=NaN steps=many"]


def throw_garbage():
    door = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    for one in GARBAGE:
        try:
            door.sendto(one, os.environ["RINGMASTER_SOCKET"])
        except OSError:
            pass  # too long for the socket: that is its word against it
    door.close()


def main():
    first = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") == "0"
    for step in range(1, STEPS + 1):
        if WHAT == "garbage":
            throw_garbage()
        if WHAT != "quiet":
            loss = float("nan") if step == 2 else 4.0 / step
            for _ in range(20000 if WHAT == "flood" else 1):
                ringmaster.report(step, STEPS, loss)
        time.sleep(SECONDS)
        if WHAT == "hang" and first and step == int(sys.argv[4]):
            time.sleep(3600)
    print(f"made {STEPS} steps", flush=True)


main()
