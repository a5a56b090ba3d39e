#!/usr/bin/python3
"""Holds a folder's tokenizer.json against its promise: check_tokenizer.py FOLDER

What `tokenizers` encodes it decodes to the same text, for all of UTF-8; and where a model's tokens are bytes, a token is a byte.
tests/reference/install-tokenizers gives a Python that has the package.
"""
import os
import sys

from tokenizers import Tokenizer

TEXTS = ["", "the ring forms again", " two  blanks\n\tand a tab\r\n", "it's 12345 o'clock, isn't it?", "\0\x01\x7f\x80\xad",
         "Zürich, naïve, Ωμέγα, 東京, שלום, 🙂👩‍🚀", "".join(map(chr, range(1, 0x800)))]


def check_tokenizer(folder):
    """How many tokens it knows."""
    tokenizer = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
    for text in TEXTS:
        ids = tokenizer.encode(text).ids
        assert tokenizer.decode(ids, skip_special_tokens=False) == text, text
        assert tokenizer.get_vocab_size() != 256 or ids == list(text.encode()), text
    return tokenizer.get_vocab_size()


if __name__ == "__main__":
    print(check_tokenizer(sys.argv[1]))
