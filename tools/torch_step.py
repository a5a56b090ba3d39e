#!/usr/bin/env python3
"""How fast PyTorch does the step that Ringmaster does: GPT-2 on the CPU, forward, backward, AdamW.

Prints one JSON object on one line: torch's version, seconds (the median step), fastest, tokensPerSecond, and
the part of the median step that the optimizer took. Where torch is not installed: a sentence, exit 77.

With --bf16 the way forward and the loss run under autocast to bfloat16, as torch recommends it; weights,
gradients and optimizer stay in fp32.

The model is written with torch's fused building blocks (scaled_dot_product_attention, GELU in its tanh form,
cross_entropy, fused AdamW where this torch has it on the CPU), as a careful user of torch would.
"""

import argparse
import json
import math
import statistics
import sys
import time


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--heads", type=int, default=12)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--context", type=int, default=256)
    parser.add_argument("--vocabulary", type=int, default=50257)
    parser.add_argument("--sequences", type=int, default=4)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--bf16", action="store_true", help="under autocast to bfloat16")
    return parser.parse_args()


def attention(torch):
    """torch's own as of PyTorch 2; before, what it computes."""
    own = getattr(torch.nn.functional, "scaled_dot_product_attention", None)

    def causal(q, k, v):
        later = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).triu(1)
        scores = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).masked_fill(later, float("-inf"))
        return scores.softmax(dim=-1) @ v
    return (lambda q, k, v: own(q, k, v, is_causal=True)) if own else causal


def make_model(torch, a):
    nn, functional = torch.nn, torch.nn.functional
    attend = attention(torch)

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(a.width), nn.LayerNorm(a.width)
            self.attn, self.proj = nn.Linear(a.width, 3 * a.width), nn.Linear(a.width, a.width)
            self.fc, self.mlp_proj = nn.Linear(a.width, 4 * a.width), nn.Linear(4 * a.width, a.width)

        def forward(self, x):
            b, t, c = x.shape
            q, k, v = (
                part.view(b, t, a.heads, c // a.heads).transpose(1, 2)
                for part in self.attn(self.norm1(x)).split(c, dim=2)
            )
            mixed = attend(q, k, v)
            x = x + self.proj(mixed.transpose(1, 2).reshape(b, t, c))
            return x + self.mlp_proj(functional.gelu(self.fc(self.norm2(x)), approximate="tanh"))

    class Gpt(nn.Module):
        def __init__(self):
            super().__init__()
            self.wte, self.wpe = nn.Embedding(a.vocabulary, a.width), nn.Embedding(a.context, a.width)
            self.blocks = nn.ModuleList(Block() for _ in range(a.layers))
            self.norm = nn.LayerNorm(a.width)

        def forward(self, tokens, targets):
            x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1], device=tokens.device))
            for block in self.blocks:
                x = block(x)
            logits = functional.linear(self.norm(x), self.wte.weight)
            return functional.cross_entropy(logits.view(-1, a.vocabulary), targets.reshape(-1))

    model = Gpt()
    for name, parameter in model.named_parameters():
        if parameter.dim() == 2:
            deviation = 0.02 / math.sqrt(2 * a.layers) if "proj" in name else 0.02
            nn.init.normal_(parameter, std=deviation)
    return model


def make_optimizer(torch, model):
    options = {"lr": 6e-4, "betas": (0.9, 0.95), "weight_decay": 0.1}
    try:
        return torch.optim.AdamW(model.parameters(), fused=True, **options)
    except (RuntimeError, TypeError):  # not on the CPU; PyTorch 1 has no such word
        return torch.optim.AdamW(model.parameters(), **options)


def main():
    a = arguments()
    try:
        import torch
    except (ImportError, OSError, ValueError) as why:
        print(f"torch_step: PyTorch can't be imported here: {why}", file=sys.stderr)
        return 77
    torch.set_num_threads(a.threads)
    torch.manual_seed(1)
    model = make_model(torch, a)
    optimizer = make_optimizer(torch, model)
    tokens = torch.randint(a.vocabulary, (a.sequences, a.context + 1))
    steps, updates = [], []
    for step in range(a.steps + 1):
        start = time.monotonic()
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=a.bf16):
            loss = model(tokens[:, :-1], tokens[:, 1:])
        loss.backward()
        before_update = time.monotonic()
        optimizer.step()
        if step:  # the first one takes memory and builds kernels
            steps.append(time.monotonic() - start)
            updates.append(time.monotonic() - before_update)
    seconds = statistics.median(steps)
    print(json.dumps({
        "torch": torch.__version__, "threads": a.threads, "precision": "bf16" if a.bf16 else "fp32",
        "seconds": round(seconds, 6),
        "fastest": round(min(steps), 6), "optimizerSeconds": round(statistics.median(updates), 6),
        "tokensPerSecond": round(a.sequences * a.context / seconds, 1), "loss": round(loss.item(), 6),
    }))
    return 0


if __name__ == "__main__":
    sys.exit(main())
