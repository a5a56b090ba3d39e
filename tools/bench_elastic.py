"""What a loss, a leave and a join cost a program: ringmaster, modes Restart and Elastic, beside torchrun and torchft.

All train the same model on this machine, one process a worker, 3 to 4 workers. Restart and torchrun run the same elastic_worker.py, which
knows of nothing and saves after each step (or after each few: then a step costs less before the harm, and the steps behind the newest state are
made again); elastic_loop.py is that loop for mode Elastic, torch_ft.py for torchft. Measured is the
time from the harm to the first step of the new company: where processes are started anew that holds the end of the old ones, the meeting,
the start of Python with torch, loading what rank 0 saved, and one step. How long that start alone takes is printed beside it, and
what a step takes when nothing happens.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import elastic_steps
import elastic_worker
import rig

ROOT = Path(__file__).resolve().parent.parent
EVENTS = {"kill": "SIGKILL of one of 4", "leave": "one of 4 is told to leave", "join": "a fourth joins 3"}
DRILLS = {"kill": "kill:3", "leave": "term:3", "join": "join"}
PATIENCE_S = 150
RESTART, PRELOAD, ELASTIC = "`mode: Restart`", "the same, `preload: [torch]`", "`mode: Elastic`"
STANDS_BY = "the next process waits with its modules imported"
TORCHRUN = "torch_elastic.py"
PEERS = {"torchrun, quick timeouts": [TORCHRUN], "torchrun, its defaults": [TORCHRUN, "--defaults"],
         "torchft, tuned": ["torch_ft.py", "--tuned"], "torchft, as it comes": ["torch_ft.py"]}


class TooEarly(RuntimeError):
    """The drill came before the program had made steps, or its next processes had their imports: the machine is slower than --at says."""


def job(folder, python, workers, mode, save_every):
    launch = {"gracePeriod": "5s", "mode": "Elastic" if mode == ELASTIC else "Restart"}
    script = "elastic_loop.py" if mode == ELASTIC else "elastic_worker.py"
    spec = {"workers": {"target": workers, "min": 3, "max": 4}, "launch": launch}
    more = [] if mode == ELASTIC else [str(save_every)]
    launch["command"] = json.dumps([python, str(ROOT / "tools" / script), str(folder), *more])
    if mode == ELASTIC:
        launch.update(steps=1000000, batch={"lanes": elastic_worker.SEQUENCES, "laneSequences": 1})
        spec["checkpoint"] = {"uri": str(folder / "out")}
    else:
        launch["preload"] = json.dumps(["torch"] if mode == PRELOAD else [])
    tree = {"apiVersion": "ringmaster.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": "bench"}, "spec": spec}
    path = folder / "job.yaml"
    path.write_text("\n".join(rig.yaml_lines(tree)) + "\n")
    return path


def first_step(run, steps, began, mode, after):
    """Elastic: its processes stay and know no world, so the new ring has to be heard of first."""
    if mode != ELASTIC:
        first = steps.after(began, PATIENCE_S, after)
        return first, steps.stood_still(first) if first else None
    while len(run.read_until("ringFormed")["members"]) != after:
        pass
    formed = elastic_steps.now()
    first = steps.wait(lambda s: s["time"] > formed, PATIENCE_S)
    return first, steps.gap_before(first) if first else None


def ours(event, python, at_s, mode, save_every):
    """(seconds until the next step, seconds without a step, steps redone, milliseconds of a step before) of one drill."""
    before, after = (3, 4) if event == "join" else (4, 3)
    package = Path(rig.BIN).parent / "share/ringmaster/python"
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        folder = Path(name)
        run = rig.Run(job(folder, python, before, mode, save_every), "--drill", f"{DRILLS[event]}@{at_s}s",
                      env={"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo",
                           "PYTHONPATH": os.pathsep.join([str(package), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)})
        try:
            steps = elastic_steps.Steps(folder)
            run.read_until("drill")
            began = time.monotonic()
            steps.look()
            if len(steps.all) < 2:
                raise TooEarly(f"the program had made no step after {at_s} s: {run.tail()}")
            if mode == PRELOAD and run.tail().count(STANDS_BY) < before:
                raise TooEarly(f"not all of the next processes had their imports behind them after {at_s} s: {run.tail()}")
            step_ms = steps.pace_ms()
            first, stood_still = first_step(run, steps, began, mode, after)
            if not first:
                raise RuntimeError(f"the others did not go on: {run.tail()}")
            return first["time"] - began, stood_still, steps.redone(began, first), step_ms
        finally:
            run.interrupt()
            run.wait()
            run.clean_up()


def ours_in_time(event, python, at_s, mode, save_every):
    """The same, later where it came too early."""
    for longer in (1, 2, 4):
        try:
            return ours(event, python, longer * at_s, mode, save_every)
        except TooEarly as why:
            early = why
    raise early


def start_of_python(python):
    """Seconds until a Python has torch, one beside three others of them, as after a change."""
    began = time.monotonic()
    all_four = [subprocess.Popen([python, "-c", "import torch, torch.distributed"]) for _ in range(4)]
    for one in all_four:
        one.wait()
    return time.monotonic() - began


def row(event, what, found, least):
    """found: (seconds, stood still, redone, milliseconds of a step) of each time. least: of mode Restart's."""
    seconds, stood, redone, pace = zip(*found)
    ratio = statistics.median(stood) / least
    return (f"| {EVENTS[event]} | {what} | {statistics.median(seconds):.2f} | {statistics.median(stood):.2f} | {max(stood):.2f} "
            f"| {ratio:.2f} | {max(redone)} | {statistics.median(pace):.0f} |")


def tell(lines, line):
    """A row as soon as it is known: all of them take half an hour, and what breaks the last one must not cost the others."""
    lines.append(line)
    print(line, file=sys.stderr, flush=True)


def theirs(peer, python, event, name, times, save_every):
    script, *options = PEERS[name]
    if script == TORCHRUN:
        options += ["--save-every", str(save_every)]
    other = peer(python, script, "--event", event, "--kills", str(times), *options)
    return other and {**other, "found": list(zip(other["seconds"], other["stoodStill"], other["stepsRedone"], other["stepMs"]))}


def why_no_figure(other, ended):
    if other is None:
        return "not installed"
    return f"a survivor ended each of {ended} times" if ended else f"did not go on within {PATIENCE_S} s"


def bench(peer, python, times, at_s, save_every):
    lines = ["| what happens | launcher | seconds to the next step | of these without any step | worst | in Restart's | steps redone, at most "
             "| ms a step before |", "|---|---|---|---|---|---|---|---|"]
    rows, version = [], None
    for event in EVENTS:
        least = {}
        for mode in (RESTART, PRELOAD, ELASTIC):
            found = [ours_in_time(event, python, at_s, mode, save_every) for _ in range(times)]
            least[mode] = statistics.median(stood for _, stood, *_ in found)
            tell(lines, row(event, mode, found, least[RESTART]))
        for name in PEERS:
            other = theirs(peer, python, event, name, times, save_every)
            ended = other.get("ended", 0) if other else 0
            if not other or ended == times:
                tell(lines, f"| {EVENTS[event]} | {name} | {why_no_figure(other, ended)} | | | | | |")
                continue
            version = other["torch"]
            tell(lines, row(event, name + (f"; of {times} times a survivor ended {ended}" if ended else ""), other["found"], least[RESTART]))
            mode = ELASTIC if name.startswith("torchft") else RESTART
            peers = statistics.median(other["stoodStill"])
            rows.append((f"a program, {EVENTS[event]}, {mode} against {name}", f"{least[mode]:.2f} s", f"{peers:.2f} s",
                         f"{peers / least[mode]:.1f} times faster"))
    begin = statistics.median(start_of_python(python) for _ in range(3))
    lines += ["", f"PyTorch {version}; four Pythons that start at once have it imported after {begin:.1f} s. {times} times each.",
              f"Restart and torchrun saved {'each step' if save_every == 1 else f'each {save_every} steps'}, the others nothing."]
    return lines, rows
