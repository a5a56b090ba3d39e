#!/usr/bin/python3
"""What transformers writes with a folder of weights, opened as people do: pipeline("text-generation", FOLDER), the likeliest token each time.

    write_with_transformers.py FOLDER PROMPT TOKENS

The prompt and the text behind it go to stdout as they are. Before that the folder's tokenizer.json is held against its promise
(check_tokenizer.py). tests/reference/install gives a Python that has both packages.
"""
import json
import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"

import transformers.generation.utils  # noqa: E402
from check_tokenizer import check_tokenizer  # noqa: E402
from transformers import pipeline  # noqa: E402

# It would ask whether the model is spread by FSDP, which Debian's torch 1.13 can't import under Python 3.11.
transformers.generation.utils.is_fsdp_managed_module = lambda model: False


def main(folder, prompt, tokens):
    check_tokenizer(folder)
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        assert len(prompt) + tokens <= json.load(file)["n_positions"], "transformers goes no further"
    write = pipeline("text-generation", model=folder)
    (answer,) = write(prompt, do_sample=False, temperature=None, max_new_tokens=tokens)
    sys.stdout.buffer.write(answer["generated_text"].encode())


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
