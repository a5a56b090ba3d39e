#!/usr/bin/env python3
"""How fast PyTorch does on a GPU what a lane of Ringmaster's trainer does: GPT-2 in bf16, forward and backward; and the whole step.

Prints one JSON object a number of sequences, each on a line: torch's version, attention's backend, milliseconds (the median of many,
by the GPU's clock) of forward and backward and of the step with AdamW, and tokens a second of both. The model is torch_step.py's,
compiled, with whichever of torch's attention kernels is the fastest here.
"""

import argparse
import json
import statistics
import sys

import torch_step

BACKENDS = ("FLASH_ATTENTION", "CUDNN_ATTENTION")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, value in {"layers": 12, "heads": 12, "width": 768, "context": 1024, "vocabulary": 50257, "times": 20}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--sequences", type=int, nargs="+", default=[16])
    return parser.parse_args()


def median_ms(torch, work, times):
    for _ in range(5):
        work()
    took = []
    for _ in range(times):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        work()
        end.record()
        end.synchronize()
        took.append(begin.elapsed_time(end))
    return statistics.median(took)


def measure(torch, a, model, sequences, backend):
    tokens = torch.randint(a.vocabulary, (sequences, a.context + 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    def lane():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.bfloat16), torch.nn.attention.sdpa_kernel(getattr(torch.nn.attention.SDPBackend, backend)):
            loss = model(tokens[:, :-1], tokens[:, 1:])
        loss.backward()

    def step():
        lane()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    count = sequences * a.context
    lane_ms, step_ms = median_ms(torch, lane, a.times), median_ms(torch, step, a.times)
    return {"torch": torch.__version__, "attention": backend, "sequences": sequences, "laneMs": round(lane_ms, 3), "stepMs": round(step_ms, 3),
            "laneTokensPerSecond": round(count / lane_ms * 1000), "stepTokensPerSecond": round(count / step_ms * 1000)}


def main():
    a = arguments()
    try:
        import torch  # pylint: disable=import-outside-toplevel  (what is missing is a sentence)
        import torch.nn.attention  # pylint: disable=import-outside-toplevel
    except ImportError as why:
        print(f"torch_lane: PyTorch can't be imported here: {why}", file=sys.stderr)
        return 77
    torch.set_default_device("cuda")
    torch.set_float32_matmul_precision("high")
    for sequences in a.sequences:
        for backend in BACKENDS:
            torch.manual_seed(1)
            print(json.dumps(measure(torch, a, torch.compile(torch_step.make_model(torch, a)), sequences, backend)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
