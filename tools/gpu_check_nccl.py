"""Parts of tools/gpu-check that need several trainers of one GPU: sums by a real NCCL, and what a whole run's steps, losses and starts take.
Also what a GPU's memory is after the death of who made it."""

import lzma
import statistics
import time

from gpu_check_parts import Story, compare, result

ARENA_MIB = {"gpu": 4096, "standins": 4}
SWITCHED = "the ring's sums go by a quicker way"
# Two ranks of one GPU, which NCCL allows since 2.30 for those who ask, and with few blocks: both have to be there at the same time.
TWO_ON_ONE = {"NCCL_MULTI_RANK_GPU_ENABLE": "1", "NCCL_MAX_CTAS": "4", "NCCL_SOCKET_IFNAME": "lo", "NCCL_IB_DISABLE": "1", "NCCL_DEBUG": "WARN"}
NCCL_FILE = "libnccl.so.2"

def arena(check):
    """Memory whose descriptor somebody holds keeps its contents after a SIGKILL of its maker, between kernels and inside of one."""
    told = check.tool("arena", ARENA_MIB["standins" if check.standins else "gpu"])
    if "why" in told:
        yield result("memory outlives its maker", told["why"])
        return
    for when in ("between", "inside"):
        others = int(told[f"{when}.otherWords"])
        yield result(f"memory outlives its maker, killed {when} its kernels", f"{others} words differ" if others else None,
                     {"bytes": int(told["bytes"]), "mappedAndReadMs": float(told[f"{when}.ms"])})


# ---- NCCL ----

class OverNccl(Story):
    """Trainers of one GPU that have NCCL beside their ring."""

    def __init__(self, check, name, workers, drills=()):
        super().__init__(check, name, workers, drills, "nccl")
        self.env, self.switches, self.said = {**TWO_ON_ONE, "RINGMASTER_NCCL_LIBRARY": str(check.nccl)}, 0, ""

    def run(self, until=None):
        run = super().run(until)
        self.switches = run.stderr.count(SWITCHED)
        self.said = "; ".join(line.strip() for line in run.stderr.splitlines() if "NCCL" in line)[-1500:]
        return run


def by_nccl(check, name, workers, drills, wanted, switches):
    story = OverNccl(check, name, workers, drills)
    made = compare(story, wanted, lambda: story.told(story.run()))
    made.setdefault("values", {}).update({"switches": story.switches, "said": story.said})
    if made["outcome"] == "passed" and story.switches < switches:
        return result(name, f"its sums went over TCP: {story.said or 'nothing was said of NCCL'}", made["values"])
    return made


def nccl(check):
    """The weights of one worker, of two whose sums go by NCCL, and of two with a loss and a join on the way."""
    alone = Story(check, "alone, as long", 1, job="nccl")
    wanted = alone.told(alone.run())
    yield by_nccl(check, "two workers over NCCL", 2, (), wanted, 2)
    third = alone.last // 3
    yield by_nccl(check, "over NCCL, one is killed and another one comes", 2, (f"kill:1@{third}", f"join@{third + 50}"), wanted, 3)
    yield by_nccl(check, "over NCCL, a new trainer", 2, (f"trainer:0@{third}",), wanted, 3)


# ---- whole steps ----

def gaps_ms(run):
    """Between steps, from the fifth on."""
    times = [event["time"] for event in run.of("step")]
    return [later - earlier for earlier, later in zip(times[4:], times[5:])]


def steps_of(check, name, workers, drills, more):
    story = Story(check, name, workers, drills, "gpt2")
    story.env = more
    began = time.time() * 1000
    run = story.run()
    if run.code != 0:
        return result(name, run.tail())
    first, values = run.of("step")[0], {"stepMs": statistics.median(gaps_ms(run)), "worstGapMs": max(gaps_ms(run))}
    values["startToFirstStepMs"] = round(first["time"] - began)
    tokens = story.fields["trainer__batch__lanes"] * story.fields["trainer__batch__laneSequences"] * story.fields["trainer__model__context"]
    values["tokensPerSecond"] = round(tokens / values["stepMs"] * 1000)
    for event in run.of("recovered"):
        values["recovered"] = {key: value for key, value in event.items() if key.endswith("Ms") or key in ("cause", "stepsRedone")}
    return result(name, None, values)


def steps(check):
    """gpt2-124m by a whole run: its steps, its start, and what a SIGKILL of one of two workers on the one GPU costs."""
    kill = ("kill:1@20",)
    yield steps_of(check, "gpt2-124m, one worker", 1, (), {})
    yield steps_of(check, "gpt2-124m, two workers of one GPU, one is killed", 2, kill, {})
    if check.nccl:
        yield steps_of(check, "gpt2-124m, the same over NCCL", 2, kill, {**TWO_ON_ONE, "RINGMASTER_NCCL_LIBRARY": str(check.nccl)})


def unpacked(archive, to):
    """NCCL's library of the pack, None where it has none."""
    if not archive.exists():
        return None
    to.mkdir()
    (to / NCCL_FILE).write_bytes(lzma.decompress(archive.read_bytes()))
    return to / NCCL_FILE
