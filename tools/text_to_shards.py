#!/usr/bin/env python3
"""Turns text files into token shards (.bin) that a job trains on, with a Hugging Face tokenizer.

Files are taken in the order given; of a folder, all regular files below it in byte order of their paths, without
hidden ones and links, as a job's data.uri does. Each file is one piece of text: it is encoded as a whole, without
special tokens; --between NAME puts one between files. A shard holds --shard-tokens tokens, the last one what is left.

Exit codes: 2 wrong arguments, 3 text that can't be read, 4 shards that can't be written, 77 the library for the
tokenizer is not installed.
"""

import argparse
import array
import os
import struct
import sys
from pathlib import Path

HEADER_WORDS = 256
MAGIC_AND_VERSION = {2: (20240520, 1), 4: (20240801, 7)}  # as llm.c has them
WIDTHS = {"uint16": 2, "uint32": 4}
MOST_TOKENS = 2**31 - 1  # what the header can tell
READ_BYTES = 1 << 20


class Trouble(Exception):
    """A sentence for the user, with the program's exit code."""

    def __init__(self, code, sentence):
        super().__init__(sentence)
        self.code = code


class Bytes:
    """The tokenizer that needs no library: a byte is a token."""

    vocabulary = 256

    @staticmethod
    def tokens_of(path):
        with open(path, "rb") as file:
            while piece := file.read(READ_BYTES):
                yield piece

    @staticmethod
    def token(name):
        raise Trouble(2, f"--between {name}: bytes have no special tokens")


class HuggingFace:
    """A tokenizer.json, through the tokenizers library or, where that is missing, transformers."""

    def __init__(self, path):
        path = path / "tokenizer.json" if path.is_dir() else path
        if not path.is_file():
            raise Trouble(2, f"--tokenizer {path}: there is no such file")
        try:
            self._load(path)
        except ImportError:
            raise Trouble(77, "neither tokenizers nor transformers is installed for this Python; install one (in a "
                              "venv: pip install tokenizers), or make byte tokens with --bytes") from None
        except Trouble:
            raise
        except Exception as error:  # each library has kinds of its own for a file that it can't take
            raise Trouble(2, f"--tokenizer {path}: {error}") from None

    def _load(self, path):
        try:
            from tokenizers import Tokenizer  # pylint: disable=import-outside-toplevel
        except ImportError:
            from transformers import PreTrainedTokenizerFast  # pylint: disable=import-outside-toplevel
            loaded = PreTrainedTokenizerFast(tokenizer_file=str(path))
            self.vocabulary = len(loaded)
            self._encode = lambda text: loaded.encode(text, add_special_tokens=False)
            self._number = loaded.get_vocab().get
            return
        loaded = Tokenizer.from_file(str(path))
        self.vocabulary = loaded.get_vocab_size(with_added_tokens=True)
        self._encode = lambda text: loaded.encode(text, add_special_tokens=False).ids
        self._number = loaded.token_to_id

    def tokens_of(self, path):
        raw = Path(path).read_bytes()
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise Trouble(3, f"{path}: byte {error.start} is not UTF-8 text") from None
        yield self._encode(text)

    def token(self, name):
        number = self._number(name)
        if number is None:
            raise Trouble(2, f"--between {name}: the tokenizer has no such token")
        return number


class Shards:
    """Writes tokens into numbered files of at most `limit` tokens each."""

    def __init__(self, folder, width, header, limit):
        self.folder, self.width, self.header, self.limit = folder, width, header, limit
        self.code = next(c for c in "HIL" if array.array(c).itemsize == width)
        self.count, self.total = 0, 0
        self.pending = array.array(self.code)

    def add(self, tokens):
        """tokens: numbers in any iterable."""
        self.pending.extend(tokens)
        while len(self.pending) >= self.limit:
            self._write(self.pending[:self.limit])
            self.pending = self.pending[self.limit:]

    def close(self):
        if self.pending:
            self._write(self.pending)
        self.pending = array.array(self.code)

    def _write(self, tokens):
        part = self.folder / f".{self.count:06}.part"  # hidden: never taken for data
        with open(part, "wb") as file:
            if self.header:
                words = [*MAGIC_AND_VERSION[self.width], len(tokens)]
                file.write(struct.pack(f"<{HEADER_WORDS}i", *words, *[0] * (HEADER_WORDS - len(words))))
            if sys.byteorder == "big":
                tokens.byteswap()
            tokens.tofile(file)
            file.flush()
            os.fsync(file.fileno())
        part.rename(self.folder / f"{self.count:06}.bin")
        self.count += 1
        self.total += len(tokens)


def files_below(folder):
    """Relative paths in byte order, as the trainer takes them."""
    found = []
    for place, folders, names in os.walk(os.fsencode(folder)):
        folders[:] = [n for n in folders if not n.startswith(b".") and not os.path.islink(os.path.join(place, n))]
        for name in names:
            path = os.path.join(place, name)
            if not name.startswith(b".") and os.path.isfile(path) and not os.path.islink(path):
                found.append(os.path.relpath(path, os.fsencode(folder)))
    return [Path(folder) / os.fsdecode(name) for name in sorted(found)]


def inputs(names):
    found = []
    for name in names:
        if not name.exists():
            raise Trouble(3, f"{name}: there is no such file")
        found += files_below(name) if name.is_dir() else [name]
    if not found:
        raise Trouble(3, "there are no files to take text from")
    return found


def width_of(arguments, tokenizer):
    dtype = arguments.dtype or ("uint16" if tokenizer.vocabulary <= 1 << 16 else "uint32")
    width = WIDTHS[dtype]
    if tokenizer.vocabulary > 1 << (8 * width):
        raise Trouble(2, f"--dtype {dtype}: the tokenizer has {tokenizer.vocabulary} tokens, which do not fit; "
                         "take uint32")
    return width


def open_output(folder):
    folder.mkdir(parents=True, exist_ok=True)
    if any(True for _ in folder.iterdir()):
        raise Trouble(2, f"--output {folder}: the folder is not empty; choose another one")


def convert(arguments):
    tokenizer = Bytes() if arguments.bytes else HuggingFace(arguments.tokenizer)
    between = tokenizer.token(arguments.between) if arguments.between else None
    width = width_of(arguments, tokenizer)
    files = inputs(arguments.inputs)
    open_output(arguments.output)
    shards = Shards(arguments.output, width, arguments.header == "llm.c", arguments.shard_tokens)
    for i, path in enumerate(files):
        if i and between is not None:
            shards.add([between])
        for tokens in tokenizer.tokens_of(path):
            shards.add(tokens)
    shards.close()
    if not shards.total:
        raise Trouble(3, f"{len(files)} files hold no text")
    print(f"{shards.total} tokens of {len(files)} files in {shards.count} shards in {arguments.output}; for the job: "
          f"data.format Tokens{8 * width}, model.vocabulary {tokenizer.vocabulary}")


def count(text):
    value = int(text)
    if not 1 <= value <= MOST_TOKENS:
        raise argparse.ArgumentTypeError(f"write a number from 1 to {MOST_TOKENS}")
    return value


def parse(words):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("inputs", nargs="+", type=Path, metavar="FILE", help="text files, or folders of them")
    parser.add_argument("--output", required=True, type=Path, help="folder for the shards; new or empty")
    kind = parser.add_mutually_exclusive_group(required=True)
    kind.add_argument("--tokenizer", type=Path, help="a tokenizer.json, or a folder that has one")
    kind.add_argument("--bytes", action="store_true", help="each byte is a token; needs no library")
    parser.add_argument("--dtype", choices=list(WIDTHS), help="of a token; default: uint16 where the tokenizer fits")
    parser.add_argument("--header", choices=["llm.c", "none"], default="llm.c", help="default: %(default)s")
    parser.add_argument("--shard-tokens", type=count, default=100_000_000, help="default: %(default)s")
    parser.add_argument("--between", metavar="NAME", help="special token between files, <|endoftext|> say")
    return parser.parse_args(words)


def main():
    try:
        convert(parse(sys.argv[1:]))
    except Trouble as trouble:
        print(f"text_to_shards.py: {trouble}", file=sys.stderr)
        return trouble.code
    except OSError as error:
        print(f"text_to_shards.py: {error}", file=sys.stderr)
        return 4
    return 0


if __name__ == "__main__":
    sys.exit(main())
