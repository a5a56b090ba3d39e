"""State as a tree of dicts, lists and tuples, whose leaves are tensors, numbers, strings and None, and as a flat list of named tensors.

The tree that is there is the form: what is read back takes the same places and types. A number becomes a tensor of no dimension, a
string one of its bytes, None an empty one: so the size of the whole stays while numbers change.
"""

import collections
import copy
import ctypes

from .library import Error

# What can be written: safetensors' dtype, sizes, an address, and whatever has to live until it was read.
Flat = collections.namedtuple("Flat", "dtype shape address keeps")

REFUSED = "%s is a %s: a state holds tensors, numbers and strings, in dicts, lists and tuples; leave it out of state_dict()"


def items(tree, path):
    """(path, key, value) of a dict, list or tuple; None for a leaf."""
    if isinstance(tree, dict):
        for key in tree:
            if not isinstance(key, (str, int)):
                raise Error("%s has the key %r: keys of a state are strings or whole numbers" % (path, key))
        return [("%s.%s" % (path, key), key, value) for key, value in tree.items()]
    if isinstance(tree, (list, tuple)):
        return [("%s.%d" % (path, key), key, value) for key, value in enumerate(tree)]
    return None


def leaves(tree, path):
    """[(path, leaf)]"""
    inside = items(tree, path)
    if inside is None:
        return [(path, tree)]
    return [leaf for below, _, value in inside for leaf in leaves(value, below)]


def rebuilt(tree, path, take):
    """The tree once more with take(path, leaf) for each leaf."""
    inside = items(tree, path)
    if inside is None:
        return take(path, tree)
    values = [(key, rebuilt(value, below, take)) for below, key, value in inside]
    if isinstance(tree, dict):
        new = copy.copy(tree)  # of its own type
        for key, value in values:
            new[key] = value
        return new
    if hasattr(tree, "_fields"):
        return type(tree)(*[value for _, value in values])
    return type(tree)([value for _, value in values])


def flat_number(path, value):
    """What is no tensor."""
    if value is None:
        return Flat("uint8", (0,), None, None)
    if isinstance(value, bool):
        room, dtype = ctypes.c_uint8(value), "bool"
    elif isinstance(value, int):
        if not -(1 << 63) <= value < 1 << 63:
            raise Error("%s is %d, which has more than 64 bits" % (path, value))
        room, dtype = ctypes.c_int64(value), "int64"
    elif isinstance(value, float):
        room, dtype = ctypes.c_double(value), "float64"
    elif isinstance(value, str):
        text = value.encode()
        room = ctypes.create_string_buffer(text, len(text)) if text else None
        return Flat("uint8", (len(text),), ctypes.addressof(room) if text else None, room)
    else:
        raise Error(REFUSED % (path, type(value).__name__))
    return Flat(dtype, (), ctypes.addressof(room), room)


READERS = {"bool": ctypes.c_uint8, "int64": ctypes.c_int64, "float64": ctypes.c_double}


def number_found(was, dtype, address, size):
    """The value that flat_number wrote, where `was` stood."""
    if was is None:
        return None
    if isinstance(was, str):
        return ctypes.string_at(address, size).decode()
    value = READERS[dtype].from_address(address).value
    return bool(value) if dtype == "bool" else value
