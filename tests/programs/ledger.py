"""A program that knows nothing of Ringmaster: it works for a while and says in a shared file what it sees.

Each line of the ledger is one JSON object, appended whole. A rank that starts looks whether any process of an
older generation still lives on this machine, which must never be.

    ledger.py LEDGER SECONDS [fail RANK CODE [times N]] [stubborn] [until FILE]

times: in the first N generations alone. until: it works on until there is that file.
"""

import json
import os
import signal
import subprocess
import sys
import time

LEDGER, SECONDS = sys.argv[1], float(sys.argv[2])
RANK, GENERATION = int(os.environ["RANK"]), os.environ["RINGMASTER_GENERATION"]


def say(what, **more):
    line = json.dumps({"what": what, "rank": RANK, "generation": GENERATION, "pid": os.getpid(), **more})
    fd = os.open(LEDGER, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(fd, line.encode() + b"\n")
    os.close(fd)


def lives(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def older_ones():
    found = []
    if os.path.exists(LEDGER):
        with open(LEDGER, encoding="utf-8") as lines:
            for line in map(json.loads, (line for line in lines if line.endswith("\n"))):
                if line["generation"] != GENERATION and lives(line["pid"]):
                    found.append(line["pid"])
    return found


def asked_to_go(_signo, _frame):
    say("asked")
    sys.exit(0)


def leave_a_grandchild():
    """In a session of its own, deaf to SIGTERM: what only a launcher that takes it in can end."""
    child = subprocess.Popen(["setsid", sys.executable, "-c",
                              "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(3600)"])
    say("child", child=child.pid)


def main():
    stubborn = "stubborn" in sys.argv
    signal.signal(signal.SIGTERM, signal.SIG_IGN if stubborn else asked_to_go)
    say("start", world=int(os.environ["WORLD_SIZE"]), older=older_ones(), environment=dict(os.environ),
        files=sorted(int(fd) for fd in os.listdir("/proc/self/fd")))
    if stubborn:
        leave_a_grandchild()
        sys.stdout.write(("x" * 99 + "\n") * 20000)
    if "fail" in sys.argv:
        at = sys.argv.index("fail")
        rank, code = int(sys.argv[at + 1]), int(sys.argv[at + 2])
        times = int(sys.argv[at + 4]) if sys.argv[at + 3:at + 4] == ["times"] else 1 << 30
        if rank == RANK and int(os.environ["TORCHELASTIC_RESTART_COUNT"]) < times:
            print("the reason why", file=sys.stderr, flush=True)
            os.kill(os.getpid(), -code) if code < 0 else sys.exit(code)
    file, end = (sys.argv[sys.argv.index("until") + 1] if "until" in sys.argv else "/"), time.monotonic() + SECONDS
    while time.monotonic() < end or not os.path.exists(file):
        time.sleep(0.02)
    say("end")


main()
