"""One story of a ringmaster-snapshot, told as pid 1 of a namespace of pids, where all that ends is reaped and numbers are free:

    unshare --pid --fork --mount-proc python3 story.py RINGMASTER-SNAPSHOT STORY FOLDER

What was seen goes to standard output as one JSON object. snapshot_test.py says what it has to be."""

import ctypes
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

PROGRAM, STORY, FOLDER = sys.argv[1], sys.argv[2], Path(sys.argv[3])
COUNTER = Path(__file__).resolve().parents[1] / "programs/frozen_counter.py"
IO_URING_SETUP = 425


def snapshot(*words, keep=()):
    done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, check=False, pass_fds=keep)
    return {"code": done.returncode, "out": done.stdout, "err": done.stderr}


def from_1000_on():
    """What starts next has a number that nobody needs who starts something where it lives again."""
    Path("/proc/sys/kernel/ns_last_pid").write_text("999", encoding="ascii")


def dump_of_one_with(fd, *words):
    """Of a process that has it open."""
    holder = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"], pass_fds=[fd])
    done = snapshot("dump", "--pid", holder.pid, "--images", FOLDER, *words)
    holder.kill()
    holder.wait()
    return done


class Counter:
    """A counter, and what it has said."""

    def __init__(self, *words):
        self.numbers, self.rest = [], b""
        self.process = subprocess.Popen([sys.executable, COUNTER, *map(str, words)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, start_new_session=True)
        self.pid, self.pipe = self.process.pid, self.process.stdout.fileno()

    def read(self, more):
        """So many numbers more, or what there was until the end."""
        wanted = len(self.numbers) + more
        while len(self.numbers) < wanted:
            came = os.read(self.pipe, 4096)
            if not came:
                break
            *lines, self.rest = (self.rest + came).split(b"\n")
            self.numbers += map(int, lines)

    def restore(self):
        """Lives again at pipes of its own."""
        out, inner = os.pipe()
        os.set_inheritable(inner, True)
        done = snapshot("restore", "--images", FOLDER, "--stdout-fd", inner, "--stderr-fd", inner, keep=[inner])
        os.close(inner)
        self.pipe = out
        return done

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def moved():
    """Frozen, gone, and there again."""
    counter = Counter()
    counter.read(3)
    dumped = snapshot("dump", "--pid", counter.pid, "--images", FOLDER)
    _, status = os.waitpid(counter.pid, 0)
    counter.read(1 << 30)
    before = len(counter.numbers)
    restored = counter.restore()
    counter.read(5)
    state = Path(f"/proc/{counter.pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    counter.kill()
    return {"dumped": dumped, "restored": restored, "signal": os.WTERMSIG(status), "pid": counter.pid, "parent": int(state[1]), "before": before,
            "numbers": counter.numbers}


def frozen():
    """Frozen, and gone."""
    from_1000_on()
    counter = Counter()
    counter.read(3)
    dumped = snapshot("dump", "--pid", counter.pid, "--images", FOLDER)
    os.waitpid(counter.pid, 0)
    counter.read(1 << 30)
    return {"dumped": dumped, "pid": counter.pid, "numbers": counter.numbers}


def thawed():
    """Lives again of what lies in the folder."""
    counter = Counter.__new__(Counter)
    counter.numbers, counter.rest = [], b""
    restored = counter.restore()
    if restored["code"]:
        return {"restored": restored}
    counter.pid = json.loads(restored["out"])["pid"]
    counter.read(5)
    counter.kill()
    return {"restored": restored, "numbers": counter.numbers}


def left_running():
    """Frozen and left running; what lives again begins where it was frozen."""
    counter = Counter()
    counter.read(3)
    dumped = snapshot("dump", "--pid", counter.pid, "--images", FOLDER, "--leave-running")
    at = len(counter.numbers)
    counter.read(40)
    taken = snapshot("restore", "--images", FOLDER)
    counter.kill()
    counter.read(1 << 30)
    first, counter.numbers, counter.rest = counter.numbers, [], b""
    restored = counter.restore()
    counter.read(5)
    counter.kill()
    return {"dumped": dumped, "taken": taken, "restored": restored, "at": at, "first": first, "again": counter.numbers}


def mount_of(fd, of="self"):
    return re.search(r"^mnt_id:\t(\d+)$", Path(f"/proc/{of}/fdinfo/{fd}").read_text(encoding="ascii"), re.M).group(1)


def carried(*words):
    """A log that is open, which grew behind the dump and is gone before it lives again."""
    from_1000_on()
    work = FOLDER.parent / "work"
    work.mkdir()
    log = work / "log"
    counter = Counter(1 << 40, log)
    counter.read(3)
    dumped = snapshot("dump", "--pid", counter.pid, "--images", FOLDER, "--leave-running", *words)
    counter.read(20)
    with log.open("rb") as file:
        there = mount_of(file.fileno())
    counter.kill()
    log.unlink()
    work.rmdir()
    counter.numbers, counter.rest = [], b""
    restored = counter.restore()
    if restored["code"] == 0:
        counter.read(5)
        counter.kill()
    root = os.open("/", os.O_RDONLY)
    return {"dumped": dumped, "restored": restored, "own": there == mount_of(root), "numbers": counter.numbers,
            "log": [int(line) for line in log.read_text(encoding="ascii").split()] if log.exists() else None}


def named():
    """A folder that is named travels, wherever it lies."""
    return carried("--path", FOLDER.parent / "work")


def by_itself():
    """A file that is open for writing travels where it is the container's own."""
    return carried()


def refused():
    """What is refused, and how."""
    nobody = Path("/proc/sys/kernel/pid_max").read_text(encoding="ascii").strip()
    ring = ctypes.CDLL(None, use_errno=True).syscall(IO_URING_SETUP, 1, ctypes.create_string_buffer(120))
    ringed = dump_of_one_with(ring) if ring >= 0 else None
    return {"words": snapshot("dump", "--images", FOLDER), "path": snapshot("dump", "--pid", 2, "--images", FOLDER, "--path", "work"),
            "no_room": dump_of_one_with(1, "--path", COUNTER, "--room", 1 << 8), "folder": snapshot("restore"), "odd": snapshot("thaw"), "none": snapshot(),
            "nobody": snapshot("dump", "--pid", int(nobody) - 1, "--images", FOLDER), "no_images": snapshot("restore", "--images", FOLDER),
            "no_folder": snapshot("restore", "--images", FOLDER / "none"), "ringed": ringed,
            "no_criu": snapshot("check", "--criu", FOLDER / "none"), "check": snapshot("check")}


def without_rights():
    """Each of the five capabilities that it takes, left out. In a namespace of users all are there that setpriv can leave out."""
    done = subprocess.run(["setpriv", "--bounding-set=-sys_ptrace,-checkpoint_restore", "--inh-caps=-all", "--", PROGRAM, "check"], capture_output=True,
                          text=True, check=False)
    return {"check": {"code": done.returncode, "out": done.stdout, "err": done.stderr}}


def gpu():
    """A file whose name is a GPU's is open."""
    subprocess.run(["mount", "-t", "tmpfs", "none", "/dev"], check=True)
    Path("/dev/nvidia0").touch()
    with open("/dev/nvidia0", "rb") as file:
        return {"dumped": dump_of_one_with(file.fileno())}


print(json.dumps({"moved": moved, "frozen": frozen, "thawed": thawed, "left_running": left_running, "named": named, "by_itself": by_itself,
                  "refused": refused, "without_rights": without_rights, "gpu": gpu}[STORY]()))
