"""What a loss, a leave and a join cost a program that knows nothing of it: ringmaster (mode Restart) beside torchrun.

All run the same elastic_worker.py on this machine, one process a worker, 3 to 4 workers. Measured is the time from the harm to the
first step of the new company, which holds the end of the old processes, the meeting, the start of Python with torch, loading what
rank 0 saved, and one step. How long that start alone takes is printed beside it."""

import json
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import elastic_steps
import rig

ROOT = Path(__file__).resolve().parent.parent
EVENTS = {"kill": "SIGKILL of one of 4", "leave": "one of 4 is told to leave", "join": "a fourth joins 3"}
DRILLS = {"kill": "kill:3", "leave": "term:3", "join": "join"}
PATIENCE_S = 150


def job(folder, python, workers, preload):
    tree = {"apiVersion": "ringmaster.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": "bench"}, "spec": {
        "workers": {"target": workers, "min": 3, "max": 4},
        "launch": {"mode": "Restart", "gracePeriod": "5s", "preload": json.dumps(preload),
                   "command": json.dumps([python, str(ROOT / "tools/elastic_worker.py"), str(folder)])}}}
    path = folder / "job.yaml"
    path.write_text("\n".join(rig.yaml_lines(tree)) + "\n")
    return path


def ours(event, python, at_s, preload):
    """(seconds until the next step, seconds without a step, steps redone) of one drill."""
    before, after = (3, 4) if event == "join" else (4, 3)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        folder = Path(name)
        run = rig.Run(job(folder, python, before, preload), "--drill", f"{DRILLS[event]}@{at_s}s",
                      env={"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"})
        try:
            steps = elastic_steps.Steps(folder)
            run.read_until("drill")
            began = time.monotonic()
            steps.look()
            if not steps.all:
                raise RuntimeError(f"the program had made no step after {at_s} s; say a longer --at")
            first = steps.after(began, PATIENCE_S, after)
            if not first:
                raise RuntimeError(f"the others did not go on: {run.tail()}")
            return first["time"] - began, steps.stood_still(first), steps.redone(began, first)
        finally:
            run.interrupt()
            run.wait()
            run.clean_up()


def start_of_python(python):
    """Seconds until a Python has torch, one beside three others of them, as after a change."""
    began = time.monotonic()
    all_four = [subprocess.Popen([python, "-c", "import torch, torch.distributed"]) for _ in range(4)]
    for one in all_four:
        one.wait()
    return time.monotonic() - began


def row(event, what, found, least):
    """found: (seconds, stood still, redone) of each time."""
    seconds, stood, redone = zip(*found)
    ratio = statistics.median(stood) / least
    return (f"| {EVENTS[event]} | {what} | {statistics.median(seconds):.2f} | {statistics.median(stood):.2f} | {max(stood):.2f} "
            f"| {ratio:.1f} | {max(redone)} |")


def bench(peer, python, times, at_s):
    lines = ["| what happens | launcher | seconds to the next step | of these without any step | worst | in Restart's | steps redone, at most |",
             "|---|---|---|---|---|---|---|"]
    rows, version = [], None
    for event in EVENTS:
        least = None
        for name, preload in (("`mode: Restart`", []), ("the same, `preload: [torch]`", ["torch"])):
            found = [ours(event, python, at_s, preload) for _ in range(times)]
            least = least or statistics.median(stood for _, stood, _ in found)
            lines.append(row(event, name, found, least))
        for name, options in (("torchrun, quick timeouts", []), ("torchrun, its defaults", ["--defaults"])):
            other = peer(python, "torch_elastic.py", "--event", event, "--kills", str(max(1, times - len(options))), *options)
            if not other:
                lines.append(f"| {EVENTS[event]} | {name} | did not go on within {PATIENCE_S} s | | | | |")
                continue
            version = other["torch"]
            lines.append(row(event, name, list(zip(other["seconds"], other["stoodStill"], other["stepsRedone"])), least))
            theirs = statistics.median(other["stoodStill"])
            rows.append((f"a program, {EVENTS[event]}, against {name}", f"{least:.1f} s", f"{theirs:.1f} s",
                         f"{theirs / least:.1f} times faster"))
    begin = statistics.median(start_of_python(python) for _ in range(3))
    lines += ["", f"PyTorch {version}; four Pythons that start at once have it imported after {begin:.1f} s. {times} times each."]
    return lines, rows
