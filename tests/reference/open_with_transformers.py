#!/usr/bin/python3
"""Opens a checkpoint folder with transformers and compares its logits with gpt2_numpy.py's.

    open_with_transformers.py FOLDER

Exit 0: they agree; 1: they don't; 77, with a line that starts with SKIP: transformers or torch are not installed.
"""
import os
import sys

import numpy

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import gpt2_numpy  # noqa: E402

try:
    import torch
    import transformers
except ImportError as error:
    print(f"SKIP: {error}")
    sys.exit(77)

os.environ["HF_HUB_OFFLINE"] = "1"


def main(folder):
    reference = gpt2_numpy.Model(folder)
    model, report = transformers.AutoModelForCausalLM.from_pretrained(
        folder, local_files_only=True, output_loading_info=True
    )
    for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        if report.get(kind):
            print(f"{kind}: {report[kind]}")
            return 1
    model.eval()
    tokens = (numpy.arange(reference.context) * 7919) % reference.config["vocab_size"]
    with torch.no_grad():
        found = model(torch.tensor(tokens)[None]).logits[0].double().numpy()
    worst = float(numpy.abs(found - reference.logits(tokens)).max())
    print(f"largest difference of a logit: {worst:.3g}")
    return 0 if worst < 1e-3 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
