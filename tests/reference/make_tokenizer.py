#!/usr/bin/python3
"""A small tokenizer of GPT-2's kind, learned from texts: make_tokenizer.py TOKENIZER.json VOCABULARY FILE... (tests/reference/install)."""
import sys

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers


def main(path, vocabulary, files):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train(files, trainers.BpeTrainer(vocab_size=vocabulary, special_tokens=["<|endoftext|>"], show_progress=False,
                                               initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.save(path)
    print(tokenizer.get_vocab_size())


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
