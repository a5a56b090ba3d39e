#!/usr/bin/python3
"""Opens a folder with weights with transformers and compares its logits with gpt2_numpy.py's.

    open_with_transformers.py FOLDER [SEQUENCES.json]

Exit 0: they agree; 1: they don't, or a tensor is missing or one too many. With a list of lists of tokens it also says, as the
last word, the mean loss over them. tests/reference/install gives a Python that has transformers.
"""
import json
import os
import sys

import numpy
import torch
import transformers

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import gpt2_numpy  # noqa: E402

os.environ["HF_HUB_OFFLINE"] = "1"


def opened(folder):
    """The model, or None after a line that says which tensors don't fit."""
    model, report = transformers.AutoModelForCausalLM.from_pretrained(folder, local_files_only=True, output_loading_info=True)
    wrong = {kind: report[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys") if report.get(kind)}
    if wrong:
        print(wrong)
        return None
    return model.eval()


def logits_of(model, tokens):
    with torch.no_grad():
        return model(torch.tensor(tokens)[None]).logits[0].double()


def mean_loss(model, sequences):
    losses = [torch.nn.functional.cross_entropy(logits_of(model, tokens[:-1]), torch.tensor(tokens[1:])) for tokens in sequences]
    return float(torch.stack(losses).mean())


def main(folder, sequences=None):
    reference = gpt2_numpy.Model(folder)
    model = opened(folder)
    if model is None:
        return 1
    tokens = (numpy.arange(reference.context) * 7919) % reference.config["vocab_size"]
    worst = float(numpy.abs(logits_of(model, tokens).numpy() - reference.logits(tokens)).max())
    print(f"largest difference of a logit: {worst:.3g}")
    if sequences:
        with open(sequences, encoding="utf-8") as file:
            print(f"mean loss: {mean_loss(model, json.load(file)):.9g}")
    return 0 if worst < 1e-4 else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
