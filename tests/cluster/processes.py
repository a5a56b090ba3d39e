"""Processes that belong to a test cluster: started in its namespaces, known by number and start time, ended one by one."""

import ctypes
import os
import signal
import subprocess
import time
from pathlib import Path

PR_SET_PDEATHSIG = 1
POLL_S = 0.02


def until(condition, what, seconds=60.0):
    """Waits until condition() gives something true, and returns that."""
    deadline = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {seconds:.0f} s")
        time.sleep(POLL_S)


def start_time(pid):
    """Field 22 of /proc/PID/stat, or None where no such process lives. A zombie counts as dead, for its parent may be slow to
    reap it; but not while other threads of it are still ending: they hold its ports."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
        threads = len(os.listdir(f"/proc/{pid}/task"))
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in "ZX" and threads <= 1 else int(fields[19])


def descendants(pid):
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = task.read_text(encoding="ascii").split()
        except OSError:
            continue
        for child in children:
            yield int(child)
            yield from descendants(int(child))


def depth_and_number(pid):
    """In how many pid namespaces a process is, and its number in the innermost."""
    try:
        for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("NSpid:"):
                numbers = line.split()[1:]
                return len(numbers), int(numbers[-1])
    except OSError:
        pass
    return 0, 0


def first_of_deeper(pid, depth):
    """The first process of a pid namespace below `pid`, or None while it isn't there."""
    for child in descendants(pid):
        if depth_and_number(child) == (depth, 1):
            return child
    return None


class Known:
    """Numbers of processes, kept in a file each, so that other commands find them and no stranger with the same number is hit."""

    def __init__(self, folder):
        self.folder = Path(folder)

    def write(self, name, pid):
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_text(f"{pid} {start_time(pid)}\n", encoding="ascii")

    def read(self, name):
        """The number of a living process, or None."""
        try:
            pid, started = (self.folder / name).read_text(encoding="ascii").split()
        except (OSError, ValueError):
            return None
        return int(pid) if started == str(start_time(int(pid))) else None

    def end(self, name, how=signal.SIGTERM, patience_s=10.0):
        """Ends it, by force where it takes longer than patience_s."""
        pid = self.read(name)
        if pid:
            os.kill(pid, how)
            try:
                until(lambda: self.read(name) is None, name, patience_s)
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                until(lambda: self.read(name) is None, name, patience_s)
        (self.folder / name).unlink(missing_ok=True)


def die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def spawn(command, log, tied=False, environment=None):
    """A process in a session of its own with its output in a log; with tied, it ends when its parent does."""
    with open(log, "ab") as output:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
                                env=environment, preexec_fn=die_with_parent if tied else None)
