"""tools/bench gpu: a lane of the GPU backend without a GPU, which leaves the time that its host takes.

The stand-ins for NVIDIA's driver and cuBLASLt compute nothing here (`empty` in tests/cuda_rig/standin_driver/script.c), but they keep their
books of work and memory, so what is measured is a little more than the host's own time. What a GPU takes is `tools/gpu-check run bench`'s.
"""

import os
import subprocess
from pathlib import Path

GPT2 = (12, 12, 768, 1024, 50257)
SEQUENCES = (1, 4, 16)
LANES = 200


def told(tools, sequences, lanes):
    """What gpu_tool says of a lane: a table of milliseconds."""
    standins = Path(tools).parent / "standin"
    env = {**os.environ, "RINGMASTER_TEST_GPU": "1", "RINGMASTER_CUDA_LIBRARY": str(standins / "libcuda.so.1"),
           "RINGMASTER_CUBLASLT_LIBRARY": str(standins / "libcublasLt.so.13"), "RINGMASTER_STANDIN_CUDA": "empty,sms=132,memory=100G"}
    done = subprocess.run([str(Path(tools) / "gpu_tool"), "lane", *map(str, (*GPT2, sequences, lanes))], env=env, capture_output=True,
                          text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"gpu_tool lane: {done.stdout}{done.stderr}")
    return dict(line.split("\t") for line in done.stdout.splitlines())


def bench(tools):
    """(lines, rows of the table of all)"""
    lines = ["A lane of gpt2-124m with a context of 1024, on stand-ins whose kernels and products do nothing; the median of "
             f"{LANES} lanes:", "", "| sequences a lane | as one graph | handing it over | work by work | handing it over |", "|---|---|---|---|---|"]
    for sequences in SEQUENCES:
        found = {name: float(value) for name, value in told(tools, sequences, LANES).items()}
        cells = [f"{found[f'{way}.exact.{what}']:.3f} ms" for way in ("graphs", "plain") for what in ("ms", "handedOverMs")]
        lines.append(f"| {sequences} | {' | '.join(cells)} |")
    return lines, []
