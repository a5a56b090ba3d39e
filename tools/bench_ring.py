"""tools/bench ring: a sum over all ranks of one machine, in shared memory and over loopback TCP, beside OpenMPI and gloo.

Each measures itself in the same way (ring_bench.c, mpi_allreduce.c, gloo_allreduce.cc): the median time of a sum and the CPU seconds that all
ranks take for a GB of what one of them adds. They take turns, and of each size the median of the rounds counts. MPI's ranks spin while
they wait, so their CPU seconds are those of all of that time.
"""

import os
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SIZES = [4 << 10, 64 << 10, 512 << 10, 2 << 20, 16 << 20, 64 << 20, 256 << 20]
WORLDS = [2, 4]
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
NAMES = {"shm": "shared memory", "tcp": "TCP", "mpi": "OpenMPI", "gloo": "gloo"}


def build(folder, command, source, name, *libraries):
    """The program; None where what it needs is not installed."""
    program = Path(folder) / name
    if not shutil.which(command):
        return None
    done = subprocess.run([command, "-O2", str(ROOT / "tools" / source), "-o", str(program), *libraries], capture_output=True, check=False)
    return program if done.returncode == 0 and program.exists() else None


def commands(folder, world, programs):
    """{name: command} of one round."""
    made = {name: [str(programs["ours"]), name, str(world)] for name in ("shm", "tcp")}
    if programs.get("mpi"):
        made["mpi"] = ["mpirun", "--oversubscribe", "-np", str(world), str(programs["mpi"])]
    if programs.get("gloo"):
        made["gloo"] = [str(programs["gloo"]), tempfile.mkdtemp(dir=folder), str(world)]
    return made


def lines_of(text):
    """{bytes: (seconds, CPU seconds a GB)} of what a program printed."""
    rows = [line.split() for line in text.splitlines()]
    return {int(r[0]): (float(r[1]), float(r[2])) for r in rows if len(r) == 3 and r[0].isdigit()}


def measure(world, programs, rounds, sizes):
    """{name: {bytes: (seconds, CPU seconds a GB)}}, medians over the rounds."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds):
            for name, command in commands(folder, world, programs).items():
                done = subprocess.run([*command, *map(str, sizes)], capture_output=True, text=True, timeout=900, check=False,
                                      env={**os.environ, **AS_ROOT})
                if done.returncode:
                    raise RuntimeError(f"{' '.join(command)}: {done.stderr[-400:]}")
                found.setdefault(name, []).append(lines_of(done.stdout))
    return {name: {size: tuple(statistics.median(values) for values in zip(*(each[size] for each in all_rounds)))
                   for size in sizes} for name, all_rounds in found.items()}


def human(size):
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"


def took(seconds):
    return f"{seconds * 1e6:.0f} us" if seconds < 1e-3 else f"{seconds * 1e3:.3g} ms"


def table(world, found, sizes):
    names = [name for name in NAMES if name in found]
    head = [f"{NAMES[name]}{what}" for name in names for what in ("", ", CPU s/GB")]
    against = [f"{NAMES[name]} / shared memory" for name in names if name != "shm"]
    lines = [f"World of {world}:", "", f"| bytes | {' | '.join(head + against)} |", "|---" * (1 + len(head) + len(against)) + "|"]
    for size in sizes:
        cells = [cell for name in names for cell in (took(found[name][size][0]), f"{found[name][size][1]:.2f}")]
        cells += [f"{found[name][size][0] / found['shm'][size][0]:.2f}" for name in names if name != "shm"]
        lines.append(f"| {human(size)} | {' | '.join(cells)} |")
    return lines + [""]


def rows(world, found):
    """Of the table of all: one size, beside each peer."""
    size = 16 << 20
    own = found["shm"][size][0]
    return [(f"a sum of 16 MiB, {world} ranks of one machine", took(own), f"{took(found[name][size][0])} by {NAMES[name]}",
             f"{found[name][size][0] / own:.2f} times faster") for name in ("tcp", "mpi", "gloo") if name in found]


def bench(tools, rounds):
    lines, all_rows = [], []
    with tempfile.TemporaryDirectory() as folder:
        programs = {"ours": Path(tools) / "ring_bench", "mpi": build(folder, "mpicc", "mpi_allreduce.c", "mpi_allreduce"),
                    "gloo": build(folder, "g++", "gloo_allreduce.cc", "gloo_allreduce", "-lgloo", "-lpthread")}
        for world in WORLDS:
            found = measure(world, programs, rounds, SIZES)
            lines += table(world, found, SIZES)
            all_rows += rows(world, found)
    missing = [f"{NAMES[name]} is not installed ({package})" for name, package in
               (("mpi", "libopenmpi-dev, openmpi-bin"), ("gloo", "g++, libgloo-dev")) if not programs[name]]
    return lines + ([f"Not measured: {'; '.join(missing)}."] if missing else []), all_rows
