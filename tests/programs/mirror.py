"""What a program finds when it begins, as one JSON line in FILE: to see that it can't tell how it was started.

    mirror.py FILE [raise]
"""

import json
import os
import resource
import signal
import sys

KEPT = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "GROUP_RANK", "MASTER_ADDR", "RINGMASTER_GENERATION", "OMP_NUM_THREADS", "MY_OWN",
        "TORCHELASTIC_RUN_ID", "PYTHONPATH", "LD_LIBRARY_PATH")


def look():
    main = sys.modules["__main__"]
    return {
        "argv": sys.argv[:1] + sys.argv[2:], "name": __name__, "file": globals().get("__file__"), "path": sys.path,
        "globals": sorted(name for name in globals() if not name.startswith("__")), "main": main.__dict__ is globals(),
        "package": __package__, "spec": str(getattr(__spec__, "name", None)), "flags": str(sys.flags), "warn": sys.warnoptions,
        "environment": {name: os.environ.get(name) for name in KEPT},
        "stdin": os.readlink("/proc/self/fd/0"), "files": sorted(map(int, os.listdir("/proc/self/fd"))),
        "session": os.getsid(0) == os.getpid() == os.getpgid(0), "nice": os.getpriority(os.PRIO_PROCESS, 0),
        "limits": resource.getrlimit(resource.RLIMIT_NOFILE), "cwd": os.getcwd(), "umask": os.umask(0o22),
        "signals": [str(signal.getsignal(signo)) for signo in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD, signal.SIGPIPE)],
        "threads": sorted(os.getpriority(os.PRIO_PROCESS, int(thread)) for thread in os.listdir("/proc/self/task")),
        "buffered": sys.stdout.line_buffering, "encoding": sys.stdout.encoding, "hook": sys.excepthook is sys.__excepthook__,
    }


def main():
    with open(sys.argv[1], "a", encoding="utf-8") as out:
        out.write(json.dumps({"imported": "decimal" in sys.modules, "seen": look()}) + "\n")
    if "raise" in sys.argv:
        raise ValueError("as it was asked to")


if __name__ == "__main__":
    main()
