"""What a worker at half speed costs the others: lanes follow how fast ranks are (trainer/core/pace.h).

Four workers with a thread each and 64 lanes; one of them stands still half of the time, in turns of some milliseconds. Where this machine has
too few processors for four that never wait, all stand still so much that they fit, and that one half as often again. What the speeds add up to
is found from the same workers with nobody slowed: 64 lanes at that step's rate, less half a worker. Where all had equal shares a step would
take twice as long as undisturbed; the first steps of the slowed run, before lanes move, show it."""

import os
import signal
import statistics
import tempfile
import threading
import time

import rig

WORKERS, LANES, GOAL = 4, 64, 1.15
STEPS, SETTLED = 90, 40  # of a run; from there on lanes have moved
TURN_S = 0.02
FIELDS = {"trainer__batch__lanes": LANES, "trainer__batch__laneSequences": 4, "trainer__model__width": 64, "trainer__model__layers": 2,
          "workers__target": WORKERS, "workers__min": WORKERS, "trainer__steps": STEPS, "checkpoint__everySteps": 0, "trainer__threads": 1}


class Turns:
    """Lets processes go for their share of each turn, one behind the other, so that they meet as little as may be."""

    def __init__(self, shares):
        self.shares = shares  # pid: share of the time
        self.over = threading.Event()
        self.threads = [threading.Thread(target=self._turns, args=(pid, share, place * TURN_S / len(shares)), daemon=True)
                        for place, (pid, share) in enumerate(shares.items())]

    def _turns(self, pid, share, later_s):
        try:
            next_s = time.monotonic() + later_s
            while share < 1 and not self.over.wait(max(0, next_s - time.monotonic())):
                os.kill(pid, signal.SIGCONT)
                self.over.wait(share * TURN_S)
                os.kill(pid, signal.SIGSTOP)
                next_s += TURN_S
            os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            pass

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        for thread in self.threads:
            thread.join()


def step_ms(share, slowed):
    """(milliseconds of a step before lanes may move, after that) where worker 3 has half of the others' share of a processor."""
    with tempfile.TemporaryDirectory() as folder:
        run = rig.Run(rig.make_job(folder, **FIELDS))
        try:
            run.read_until("ringFormed")
            pids = {m["worker"]: m["trainerPid"] for m in run.the("ringFormed")["members"]}
            with Turns({pid: share / 2 if slowed and worker == WORKERS - 1 else share for worker, pid in pids.items()}):
                run.wait()
            if run.code:
                raise RuntimeError(f"tools/bench: the run failed: {run.tail()}")
        finally:
            run.clean_up()
    times = [event["time"] for event in run.of("step")]
    gaps = [b - a for a, b in zip(times, times[1:])]
    return statistics.mean(gaps[2:12]), statistics.mean(gaps[SETTLED:])


def bench():
    share = min(1.0, (os.cpu_count() or 1) / (WORKERS + 1))
    _, alike = step_ms(share, False)
    even, moved = step_ms(share, True)
    sum_of_speeds = alike * WORKERS / (WORKERS - 0.5)
    lines = [f"4 workers, 64 lanes, each with {share:.2f} of a processor, one of them with half as much; milliseconds a step:", "",
             "| what | step | of what the speeds add up to |", "|---|---|---|",
             f"| nobody slowed | {alike:.1f} | |",
             f"| what the speeds add up to | {sum_of_speeds:.1f} | 1 |",
             f"| equal shares, the first steps | {even:.1f} | {even / sum_of_speeds:.2f} |",
             f"| lanes moved | {moved:.1f} | {moved / sum_of_speeds:.2f} |", "",
             f"Goal: {GOAL} at most, {'met' if moved <= GOAL * sum_of_speeds else 'missed'}."]
    rows = [("one of four workers at half speed", f"{moved / sum_of_speeds:.2f} of what the speeds add up to", f"{even / sum_of_speeds:.2f} with equal shares",
             f"{even / moved:.2f} times faster")]
    return lines, rows
