"""tools/bench checkpoint: what a periodic checkpoint takes from training, in plain copies of the state.

gpt2-124m with few tokens a step, so that a step is short beside a copy of the state and its own noise small. A plain
copy is memcpy of three arrays of the parameters' size (parameters and both moments), on one thread, touched before,
measured before and after each run on the idle machine. The checkpoints go to tmpfs, so that no disk is measured.

A snapshot touches two steps: the one that makes the state leaves it in the snapshot memory, the next one leads home.
Both are compared with the median of the steps during which nobody writes. Beside that the agent hashes and writes the
slice; the last columns say what training loses to it on the cores that both share, and how long that takes.
"""

import ctypes
import statistics
import sys
import tempfile
import time

PARAMETERS = 124_439_808 - (1024 - 64) * 768  # with a context of 64
SETTINGS = [(1, 1), (1, 2), (2, 1)]  # workers, threads of each
EVERY = 12
LEFT_OUT = 3  # the first steps: memory is touched for the first time, products are made

FIELDS = {
    "trainer__model__preset": "gpt2-124m", "trainer__model__context": 64, "trainer__batch__lanes": 2,
    "trainer__batch__laneSequences": 1, "checkpoint__everySteps": EVERY, "checkpoint__keep": 1,
}


def copy_times(count=5):
    """Seconds of plain copies of the whole state."""
    size = PARAMETERS * 4
    arrays = [(ctypes.create_string_buffer(size), ctypes.create_string_buffer(size)) for _ in range(3)]
    for source, target in arrays:
        ctypes.memset(source, 1, size)
        ctypes.memset(target, 1, size)
    times = []
    for _ in range(count):
        began = time.monotonic()
        for source, target in arrays:
            ctypes.memmove(target, source, size)
        times.append(time.monotonic() - began)
    return times


class Record:
    """When each step was committed and each checkpoint published, in seconds."""

    def __init__(self):
        self.step, self.saved = {}, {}

    def see(self, _run, event):
        if event["event"] == "step":
            self.step[event["step"]] = event["time"] / 1000
        elif event["event"] == "checkpointSaved":
            self.saved[event["step"]] = event["time"] / 1000

    def gaps(self):
        return {s: self.step[s] - self.step[s - 1] for s in sorted(self.step) if s - 1 in self.step and s > LEFT_OUT}


def is_quiet(record, step):
    """Nobody writes while that step is made, and it touches no snapshot."""
    began, ended = record.step[step - 1], record.step[step]
    writing = any(record.step[s] <= ended and began <= saved for s, saved in record.saved.items() if s in record.step)
    return not writing and step % EVERY > 1


def examine(record, steps):
    """Of each snapshot: what its two steps took above the median, what all did until it was published, and how long
    that was. Seconds; and the median."""
    gaps = record.gaps()
    quiet = [gap for step, gap in gaps.items() if is_quiet(record, step)]
    if not quiet:
        sys.exit("tools/bench: the checkpoints take all the time; nothing is left to compare with")
    usual = statistics.median(quiet)
    two, whole, took = [], [], []
    for due in range(EVERY, steps, EVERY):
        if due not in record.saved or due + 1 not in gaps:
            continue
        two.append((gaps[due] - usual, gaps[due + 1] - usual))
        until = [s for s in gaps if s >= due and record.step[s - 1] <= record.saved[due]]
        whole.append(sum(gaps[s] - usual for s in until))
        took.append(record.saved[due] - record.step[due])
    return usual, two, whole, took


def row(workers, threads, copies, found, percentile):
    """A line of the table of checkpoints, and a row of that of all."""
    usual, two, whole, took = found
    copy = statistics.median(copies)
    makes, home, both = [a / copy for a, _ in two], [b / copy for _, b in two], [(a + b) / copy for a, b in two]
    cells = [f"{statistics.median(v):+.2f} ({percentile(v, 0.9):+.2f})" for v in (makes, home, both)]
    line = (f"| {workers} x {threads} | {usual * 1000:.0f} | {copy * 1000:.0f} | {' | '.join(cells)} | "
            f"{statistics.median(whole) / copy:+.1f} | {statistics.median(took):.1f} s |")
    what = f"a snapshot, {workers} worker{'s' * (workers > 1)} x {threads} thread{'s' * (threads > 1)}"
    added = statistics.median(a for a, _ in two)
    return line, (what, f"{added * 1000:+.1f} ms to the step that makes it", f"{copy * 1000:.0f} ms for a plain copy",
                  f"{added / copy:+.2f} of it")


def bench(run_job, job_of, percentile, snapshots):
    """Markdown lines, and rows for the table of all; the three functions are tools/bench_run.py's."""
    rows = []
    steps = EVERY * snapshots + EVERY // 2
    lines = [f"gpt2-124m, 2 lanes of 64 tokens a step, a checkpoint every {EVERY} steps ({snapshots} of them) to tmpfs. What a "
             "snapshot adds to the step that makes it and to the next one, in plain copies of the state (parameters and both "
             "moments, one thread): median (90 %). Then what all steps lose until it is published, while the agents hash and "
             "write on the same cores.", "",
             "| workers x threads | step, ms | plain copy, ms | the step that makes it | the next | both | until published | published after |",
             "|---|---|---|---|---|---|---|---|"]
    model = [f"spec.trainer.model.{name}" for name in ("layers", "heads", "width", "vocabulary")]
    for workers, threads in SETTINGS:
        record, copies = Record(), copy_times()
        fields = {**FIELDS, "trainer__threads": threads, "trainer__steps": steps, "workers__target": workers,
                  "workers__max": workers}
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            run_job(job_of(folder, fields, drop=model), on_event=record.see)
        copies += copy_times()
        line, summary = row(workers, threads, copies, examine(record, steps), percentile)
        lines.append(line)
        rows.append(summary)
        print(line, file=sys.stderr, flush=True)
    return lines, rows
