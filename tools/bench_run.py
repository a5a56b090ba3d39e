"""The measurements behind docs/benchmarks.md; tools/bench builds what they need and calls this."""

import argparse
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests/e2e")]

import bench_checkpoint  # noqa: E402  (its folder is on the path only now)
import bench_compare  # noqa: E402
import bench_elastic  # noqa: E402
import bench_gpu  # noqa: E402
import bench_join  # noqa: E402
import bench_ring  # noqa: E402
import bench_slow  # noqa: E402
import bench_spot  # noqa: E402
import bench_store  # noqa: E402
import rig  # noqa: E402
from bench_page import PHASES, PHASES_HEAD, machine, write_section  # noqa: E402

KILLS_PER_RUN = 6
NO_TORCH = "not measured: install torch in a venv and name its Python by --python"
STEPS_BETWEEN = 40

RECOVERY_MODEL = {
    "trainer__model__layers": 4, "trainer__model__heads": 4, "trainer__model__width": 128,
    "trainer__model__context": 64, "trainer__batch__lanes": 12, "workers__target": 4, "workers__max": 4,
    "trainer__threads": 1,
}
GPT2 = {"trainer__model__preset": "gpt2-124m", "trainer__model__context": 256, "trainer__threads": "Auto"}


class Found:
    """What a bench found: Markdown lines, rows (what, Ringmaster, peer, how they compare) of the table of all, and lines of further
    sections of the page, by their names."""

    def __init__(self, lines, rows, more=None):
        self.lines, self.rows, self.more = lines, rows, more or {}


def first_line(command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except OSError:
        return "none"
    return (done.stdout or "none").splitlines()[0].strip()


def versions(python):
    """What this was built of and compared with."""
    package = {name: first_line(["dpkg-query", "-W", "-f=${Version}", name]) for name in ("libdnnl-dev", "libuv1-dev")}
    commit = first_line(["git", "-C", str(ROOT), "describe", "--always", "--dirty"])
    torch = first_line([python, "-c", "import torch; print(torch.__version__)"])
    return (f"Ringmaster at {commit}; {first_line(['gcc', '--version'])}; oneDNN {package['libdnnl-dev']}; libuv "
            f"{package['libuv1-dev']}; PyTorch {torch}; Python {platform.python_version()}")


def job_of(folder, fields, drop=()):
    """A job file from rig's defaults; the names in drop are left to the program's own defaults."""
    saved = dict(rig.DEFAULTS)
    for name in drop:
        rig.DEFAULTS.pop(name, None)
    try:
        return rig.make_job(folder, **fields)
    finally:
        rig.DEFAULTS.clear()
        rig.DEFAULTS.update(saved)


def run_job(job, *arguments, on_event=None):
    run = rig.Run(job, *arguments)
    try:
        event = run.next_event(600)
        while event is not None:
            if on_event:
                on_event(run, event)
            event = run.next_event(600)
        if run.wait() != 0:
            sys.exit(f"tools/bench: the run failed: {run.tail()}")
        return run
    finally:
        run.clean_up()


def recovery_drills():
    """kill and join by turns, another worker each time; each kill takes the ring from 4 to 3."""
    step, drills = 20, []
    for number in range(KILLS_PER_RUN):
        drills += ["--drill", f"kill:{number % 4}@{step}", "--drill", f"join@{step + STEPS_BETWEEN}"]
        step += 2 * STEPS_BETWEEN
    return drills, step


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def peer(python, script, *arguments):
    """The JSON that a peer's script prints, or None where that Python has no torch."""
    done = subprocess.run([python, str(ROOT / "tools" / script), *arguments], capture_output=True, text=True, timeout=1800,
                          check=False)
    if done.returncode == 77:
        return None
    if done.returncode:
        print(f"tools/bench: {script} failed: {done.stdout}{done.stderr[-2000:]}", file=sys.stderr)
        return {}
    return json.loads(done.stdout.splitlines()[-1])


def torchrun_rows(python, lines, median_ms):
    """The same death under torchrun: its own timeouts, and the shortest that it took without losing live nodes."""
    rows = []
    for name, options in (("quick timeouts", ["--kills", "2"]), ("its default timeouts", ["--kills", "1", "--defaults"])):
        found = peer(python, "torch_elastic.py", *options)
        what = f"recovery against torchrun, {name}"
        if not found:
            why = NO_TORCH if found is None else "the survivors did not go on within 150 s"
            lines.append(f"torchrun, {name}: {why}.")
            rows.append((what, f"{median_ms:.0f} ms", why, ""))
            continue
        seconds = statistics.median(found["seconds"])
        lines.append(f"torchrun of PyTorch {found['torch']}, {name}: {seconds:.1f} s to the survivors' next step "
                     f"(median of {len(found['seconds'])}), {seconds * 1000 / median_ms:.0f} times as long.")
        rows.append((what, f"{median_ms:.0f} ms", f"{seconds:.1f} s", f"{seconds * 1000 / median_ms:.0f} times faster"))
    return rows


def bench_recovery(kills, python):
    lost, joined, step_ms = [], [], []
    drills, steps = recovery_drills()
    for number in range(-(-kills // KILLS_PER_RUN)):
        with tempfile.TemporaryDirectory() as folder:
            run = run_job(job_of(folder, {**RECOVERY_MODEL, "trainer__steps": steps}), *drills)
        lost += [e for e in run.of("recovered") if e["cause"] == "WorkerLost"]
        joined += [e for e in run.of("recovered") if e["cause"] == "WorkerJoined"]
        times = [e["time"] for e in run.of("step")]
        step_ms.append((times[-1] - times[0]) / (len(times) - 1))
        print(f"run {number + 1}: {len(lost)} kills so far", file=sys.stderr, flush=True)
    lines = [f"{len(lost)} times SIGKILL to one of 4 workers' agent and trainer together, then 3 go on; between two, one joins. "
             f"4 layers, width 128, 12 lanes of 64 tokens; {statistics.mean(step_ms):.1f} ms a step on average, recoveries included. "
             "Milliseconds:", "",
             *PHASES_HEAD]
    for name, events in (("loss", lost), ("join", joined)):
        for label, of in (("median", lambda v: percentile(v, 0.5)), ("90 %", lambda v: percentile(v, 0.9)), ("worst", max)):
            cells = " | ".join(f"{of([e[phase] for e in events]):.1f}" for phase in PHASES)
            lines.append(f"| {name}, {label} | {cells} |")
    lines += ["", f"Steps redone: {sum(e['stepsRedone'] for e in lost)} in {len(lost)} losses, at most "
              f"{max(e['stepsRedone'] for e in lost)} in one; {sum(e['stepsRedone'] for e in joined)} in {len(joined)} joins.", ""]
    median = percentile([e["totalMs"] for e in lost], 0.5)
    return Found(lines, torchrun_rows(python, lines, median))


class Memory:
    """The most resident memory of any trainer, as the kernel keeps it."""

    def __init__(self):
        self.peak_kib = 0
        self.pids = []

    def see(self, _run, event):
        if event["event"] == "ringFormed":
            self.pids = [m["trainerPid"] for m in event["members"]]
        for pid in self.pids:
            try:
                status = Path(f"/proc/{pid}/status").read_text()
            except OSError:
                continue
            found = re.search(r"VmHWM:\s*(\d+)", status)
            self.peak_kib = max(self.peak_kib, int(found.group(1)) if found else 0)


def gpt2_speed(precision, reduction, lanes, sequences, steps):
    """(tokens/s over the steps but the first two, peak GiB of the trainer) of a whole run with one worker."""
    memory = Memory()
    fields = {**GPT2, "trainer__precision": precision, "trainer__reduction": reduction, "trainer__batch__lanes": lanes,
              "trainer__batch__laneSequences": sequences, "trainer__steps": steps, "workers__target": 1, "workers__max": 1,
              "checkpoint__everySteps": 0}
    model = [f"spec.trainer.model.{name}" for name in ("layers", "heads", "width", "vocabulary")]
    with tempfile.TemporaryDirectory() as folder:
        run = run_job(job_of(folder, fields, drop=model), on_event=memory.see)
    times = [e["time"] for e in run.of("step")]
    gaps = [b - a for a, b in zip(times[1:], times[2:])]
    return lanes * sequences * 256 * 1000 / statistics.median(gaps), memory.peak_kib / (1 << 20)


TRAIN = [("fp32", "exact", 1, 4), ("fp32", "fast", 1, 4), ("fp32", "exact", 4, 1), ("bf16", "exact", 1, 4), ("bf16", "fast", 1, 4)]


def torch_rows(lines, middle, torch):
    rows = []
    for precision in ("fp32", "bf16"):
        ours = middle[(precision, "exact", 1, 4)]
        what, cell = f"training step, {precision}", f"{ours:.0f} tokens/s"
        found = [p for p in torch[precision] if p]
        if not found:
            lines.append(f"PyTorch, {precision}: {NO_TORCH}.")
            rows.append((what, cell, NO_TORCH, ""))
            continue
        theirs = statistics.median(p["tokensPerSecond"] for p in found)
        lines.append(f"PyTorch {found[0]['torch']}, the same step in {precision}: {theirs:.0f} tokens/s; Ringmaster (exact, 1 x 4) reaches "
                     f"{ours / theirs:.2f} of that.")
        rows.append((what, cell, f"{theirs:.0f} tokens/s", f"{ours / theirs:.2f} of its speed"))
    return rows


def bench_train(python, rounds, steps):
    speeds, peaks = {s: [] for s in TRAIN}, {s: 0.0 for s in TRAIN}
    torch = {"fp32": [], "bf16": []}
    for number in range(rounds):  # by turns, so that a machine that slows down slows all of them
        for setting in TRAIN:
            speed, peak = gpt2_speed(*setting, steps)
            speeds[setting].append(speed)
            peaks[setting] = max(peaks[setting], peak)
        torch["fp32"].append(peer(python, "torch_step.py"))
        torch["bf16"].append(peer(python, "torch_step.py", "--bf16"))
        print(f"round {number + 1} of {rounds} done", file=sys.stderr, flush=True)
    middle = {s: statistics.median(v) for s, v in speeds.items()}
    lines = ["gpt2-124m (12 layers, width 768, vocabulary 50257), whole steps of 4 x 256 tokens with AdamW, one worker:", "",
             "| precision | sums | lanes x sequences | tokens/s | trainer's peak memory |", "|---|---|---|---|---|"]
    lines += [f"| {s[0]} | {s[1]} | {s[2]} x {s[3]} | {middle[s]:.0f} | {peaks[s]:.2f} GiB |" for s in TRAIN]
    shares = {p: middle[(p, "exact", 1, 4)] / middle[(p, "fast", 1, 4)] for p in torch}
    lines += ["", f"Exact against fast sums: {shares['fp32']:.3f} of the speed in fp32, {shares['bf16']:.3f} in bf16.", ""]
    rows = torch_rows(lines, middle, torch)
    rows += [(f"exact sums, {p}", f"{middle[(p, 'exact', 1, 4)]:.0f} tokens/s", f"{middle[(p, 'fast', 1, 4)]:.0f} tokens/s with fast sums",
              f"{share:.3f} of its speed") for p, share in shares.items()]
    return Found(lines, rows)


def table_of_all(found, python):
    lines = [f"`tools/bench all` on {machine()}.", "", f"{versions(python)}.", "",
             "| measured | Ringmaster | compared with | |", "|---|---|---|---|"]
    return lines + [f"| {' | '.join(row)} |" for result in found for row in getattr(result, "rows", [])]


def show(name, found, write, hours):
    """Prints what a bench found, section by section, and puts it into the page where that is wanted."""
    for section, lines in {name: getattr(found, "lines", found), **getattr(found, "more", {})}.items():
        if lines:
            lines = [bench_spot.heading(section, hours) or f"`tools/bench {section.replace('-', ' --only ')}` on {machine()}:", "", *lines]
            print("\n".join(lines) + "\n", flush=True)
            if write:
                write_section(section, lines)


def main():
    parser = argparse.ArgumentParser(prog="tools/bench")
    parser.add_argument("what", nargs="?", default="all", choices=["recovery", "join", "train", "checkpoint", "store", "elastic", "ring", "slow", "spot", "gpu", "compare", "all"])
    parser.add_argument("--write", action="store_true", help="put the result into docs/benchmarks.md")
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--steps", type=int, default=8, help="steps of each training measurement")
    parser.add_argument("--snapshots", type=int, default=10, help="in each setting of the checkpoint measurement")
    parser.add_argument("--bytes", type=int, default=1_500_000_000, help="of the object that is moved")
    parser.add_argument("--times", type=int, default=3, help="of each change of a program's members")
    parser.add_argument("--save-every", type=int, default=1, help="elastic: so many steps of a program that is started anew between two that it saves")
    parser.add_argument("--at", type=int, default=30, help="seconds after which a program's members change")
    parser.add_argument("--with", dest="other", help="compare: the folder of the other build's programs")
    parser.add_argument("--only", nargs="*", choices=[*bench_compare.MEASURES, *bench_spot.PARTS], help="compare, spot: these parts")
    parser.add_argument("--pairs", type=int, help="compare: so many of each")
    parser.add_argument("--trace", nargs="+", help="of spot machines, files (tools/spot_trace.py says of what form)")
    parser.add_argument("--notices", type=int, default=20, help="spot: so many of each cloud")
    parser.add_argument("--calm", type=int, default=8, help="spot: rounds without notices")
    parser.add_argument("--seed", type=int, default=1, help="of the traces that are made up, and of who goes")
    parser.add_argument("--hours", type=float, default=72, help="of the trace of a zone, and of files at most")
    parser.add_argument("--spot-price", type=float, default=0.3)
    parser.add_argument("--on-demand-price", type=float, default=1.0)
    parser.add_argument("--python", default=sys.executable, help="a Python that has torch")
    arguments = parser.parse_args()
    if arguments.what == "compare" and not arguments.other:
        parser.error("compare needs --with FOLDER: the other build's build/release/bin")
    parts = {"compare": bench_compare.MEASURES, "spot": bench_spot.PARTS}.get(arguments.what, ())
    if not set(arguments.only or ()) <= set(parts):
        parser.error(f"--only of {arguments.what}: " + (", ".join(parts) or "it has no parts"))
    benches = {"recovery": lambda: bench_recovery(arguments.kills, arguments.python),
               "join": lambda: Found(*bench_join.bench(arguments.rounds, lambda text: print(text, file=sys.stderr, flush=True))),
               "checkpoint": lambda: Found(*bench_checkpoint.bench(run_job, job_of, percentile, arguments.snapshots)),
               "train": lambda: bench_train(arguments.python, arguments.rounds, arguments.steps),
               "store": lambda: bench_store.bench(arguments.bytes, arguments.rounds),
               "ring": lambda: Found(*bench_ring.bench(os.environ["RINGMASTER_TOOLS"], arguments.rounds)),
               "slow": lambda: Found(*bench_slow.bench()),
               "gpu": lambda: Found(*bench_gpu.bench(os.environ["RINGMASTER_TOOLS"])),
               "spot": lambda: Found(*bench_spot.bench(rig, job_of, RECOVERY_MODEL, peer, arguments)),
               "elastic": lambda: Found(*bench_elastic.bench(peer, arguments.python, arguments.times, arguments.at, arguments.save_every))}
    if arguments.what == "compare":
        benches["compare"] = lambda: Found(bench_compare.bench(rig, run_job, job_of, arguments.other, arguments.only, arguments.pairs,
                                                               lambda text: print(text, file=sys.stderr, flush=True)), [])
    found = []
    for name in benches if arguments.what == "all" else [arguments.what]:
        found.append(benches[name]())
        show(name, found[-1], arguments.write, arguments.hours)
    if arguments.what == "all":
        lines = table_of_all(found, arguments.python)
        print("\n".join(lines))
        if arguments.write:
            write_section("all", lines)


if __name__ == "__main__":
    main()
