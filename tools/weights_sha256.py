#!/usr/bin/python3
"""Prints weightsSha256 of a checkpoint folder: SHA-256 over the bytes of all tensors, in byte order of their names."""
import hashlib
import json
import struct
import sys

with open(sys.argv[1] + "/model.safetensors", "rb") as file:
    (length,) = struct.unpack("<Q", file.read(8))
    header = json.loads(file.read(length))
    header.pop("__metadata__", None)
    digest = hashlib.sha256()
    for name in sorted(header, key=str.encode):
        begin, end = header[name]["data_offsets"]
        file.seek(8 + length + begin)
        digest.update(file.read(end - begin))
print(digest.hexdigest())
