#!/usr/bin/python3
"""GPT-2's forward pass and loss in numpy, in 64-bit floats, from a checkpoint folder. Shares no code with the trainer.

    gpt2_numpy.py FOLDER --data TEXT_FOLDER --hold-out 0.1 --sequences 8 [--first]
        mean loss over the first 8 held-out samples of a data folder (--first: over the first training samples)
    gpt2_numpy.py FOLDER --bytes FILE
        mean loss over the bytes of FILE, cut into samples as a data folder would be

Prints one number; --each prints the loss of each sequence, one a line.
"""
import argparse
import json
import math
import os
import stat
import struct

import numpy


def read_safetensors(path):
    """{name: float64 array} of an F32 file."""
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = file.read()
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        assert entry["dtype"] == "F32", name
        begin, end = entry["data_offsets"]
        values = numpy.frombuffer(data[begin:end], dtype="<f4")
        tensors[name] = values.reshape(entry["shape"]).astype(numpy.float64)
    return tensors


class Model:
    def __init__(self, folder):
        with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
            self.config = json.load(file)
        self.tensors = read_safetensors(os.path.join(folder, "model.safetensors"))
        self.heads = self.config["n_head"]
        self.context = self.config["n_positions"]

    def norm(self, x, name):
        mean = x.mean(axis=-1, keepdims=True)
        variance = ((x - mean) ** 2).mean(axis=-1, keepdims=True)
        scaled = (x - mean) / numpy.sqrt(variance + self.config["layer_norm_epsilon"])
        return scaled * self.tensors[name + ".weight"] + self.tensors[name + ".bias"]

    def linear(self, x, name):
        return x @ self.tensors[name + ".weight"] + self.tensors[name + ".bias"]

    def attention(self, x, name):
        length, width = x.shape
        size = width // self.heads
        query, key, value = numpy.split(self.linear(x, name + ".c_attn"), 3, axis=-1)
        out = numpy.empty_like(x)
        hidden = numpy.triu(numpy.ones((length, length), dtype=bool), k=1)
        for head in range(self.heads):
            part = slice(head * size, (head + 1) * size)
            scores = query[:, part] @ key[:, part].T / math.sqrt(size)
            scores[hidden] = -numpy.inf
            scores = numpy.exp(scores - scores.max(axis=-1, keepdims=True))
            out[:, part] = scores / scores.sum(axis=-1, keepdims=True) @ value[:, part]
        return self.linear(out, name + ".c_proj")

    def perceptron(self, x, name):
        y = self.linear(x, name + ".c_fc")
        y = 0.5 * y * (1.0 + numpy.tanh(math.sqrt(2.0 / math.pi) * (y + 0.044715 * y**3)))
        return self.linear(y, name + ".c_proj")

    def logits(self, tokens):
        x = self.tensors["wte.weight"][tokens] + self.tensors["wpe.weight"][: len(tokens)]
        for layer in range(self.config["n_layer"]):
            block = f"h.{layer}"
            x = x + self.attention(self.norm(x, block + ".ln_1"), block + ".attn")
            x = x + self.perceptron(self.norm(x, block + ".ln_2"), block + ".mlp")
        return self.norm(x, "ln_f") @ self.tensors["wte.weight"].T

    def loss(self, sample):
        """Mean loss of predicting sample[1:] from sample[:-1]."""
        logits = self.logits(sample[:-1])
        top = logits.max(axis=-1)
        total = top + numpy.log(numpy.exp(logits - top[:, None]).sum(axis=-1))
        return float((total - logits[numpy.arange(len(total)), sample[1:]]).mean())


def files_below(folder, relative=b""):
    for name in os.listdir(os.path.join(folder, relative)):
        path = os.path.join(relative, name)
        mode = os.lstat(os.path.join(folder, path)).st_mode
        if name.startswith(b"."):
            continue
        if stat.S_ISDIR(mode):
            yield from files_below(folder, path)
        elif stat.S_ISREG(mode):
            yield path


def read_folder(folder):
    folder = os.fsencode(folder)
    content = []
    for path in sorted(files_below(folder)):
        with open(os.path.join(folder, path), "rb") as file:
            content.append(file.read())
    return b"".join(content)


def cut(stream, context):
    tokens = numpy.frombuffer(stream, dtype=numpy.uint8).astype(numpy.int64)
    return [tokens[i * context : (i + 1) * context + 1] for i in range((len(tokens) - 1) // context)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--data")
    parser.add_argument("--bytes")
    parser.add_argument("--hold-out", type=float, default=0.0)
    parser.add_argument("--sequences", type=int)
    parser.add_argument("--first", action="store_true")
    parser.add_argument("--each", action="store_true")
    options = parser.parse_args()
    model = Model(options.folder)
    if options.bytes:
        with open(options.bytes, "rb") as file:
            stream = file.read()
    else:
        stream = read_folder(options.data)
    samples = cut(stream, model.context)
    if options.data and not options.first:
        samples = samples[len(samples) - math.floor(options.hold_out * len(samples)) :]
    losses = [model.loss(sample) for sample in samples[: options.sequences]]
    if options.each:
        for loss in losses:
            print(repr(loss))
    else:
        print(repr(sum(losses) / len(losses)))


if __name__ == "__main__":
    main()
