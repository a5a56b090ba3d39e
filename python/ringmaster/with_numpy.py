"""numpy's half of elastic.py: parameters and state are arrays that are changed in place; the loop computes the gradients itself."""

import ctypes
import platform

import numpy

from . import tree
from .library import DTYPES, Error
from .samples import reader_of
from .watch import ELEMENTS, Watch


IDLE = 10  # updates in a row that may leave weights as they are: a rate may begin with 0, which would not show


def flat(path, value):
    if isinstance(value, numpy.generic):
        value = value.item()
    if not isinstance(value, numpy.ndarray):
        return tree.flat_number(path, value)
    if value.dtype.name not in DTYPES or not value.dtype.isnative:
        raise Error("%s has the dtype %s: %s are possible" % (path, value.dtype, ", ".join(DTYPES)))
    array = numpy.ascontiguousarray(value).reshape(value.shape)
    return tree.Flat(value.dtype.name, value.shape, array.ctypes.data, array)


def array_at(address, size, dtype):
    room = (ctypes.c_char * size).from_address(address)
    return numpy.frombuffer(room, dtype)


def find_into(connection, path, old):
    """What came instead of `old`: an array in place, anything else as a new value."""
    dtype, shape, address, size = connection.find(path)
    if isinstance(old, numpy.ndarray):
        if old.size:
            old[...] = array_at(address, size, old.dtype).reshape(shape)
        return old
    value = tree.number_found(old.item() if isinstance(old, numpy.generic) else old, dtype, address, size)
    return type(old)(value) if isinstance(old, numpy.generic) else value


def check_in_place(value, path):
    """Numbers and strings can't be changed within a tuple."""
    for below, _, inside in tree.items(value, path) or []:
        if isinstance(value, tuple) and tree.items(inside, below) is None and not isinstance(inside, numpy.ndarray):
            raise Error("%s stands in a tuple, where it can't be changed: use a list" % below)
        check_in_place(inside, below)


def some_of(array):
    return array.flat[::max(1, array.size // ELEMENTS)].tobytes()


def batch_of(samples):
    """Lists of samples as arrays, field by field."""
    first = samples[0]
    if isinstance(first, (tuple, list)):
        return tuple(numpy.stack([numpy.asarray(sample[i]) for sample in samples]) for i in range(len(first)))
    return numpy.stack([numpy.asarray(sample) for sample in samples])


class Gradients(dict):
    """{parameter's name: array}. Also what is assigned goes into these arrays, for they are what the trainer reads."""

    def __setitem__(self, name, value):
        if name not in self:
            raise Error("step.gradients[%r]: there is no parameter of that name; there are %s" % (name, ", ".join(map(repr, self))))
        if value is not self[name]:
            self[name][...] = value


class Side:
    def __init__(self, parameters, state):
        for name, array in parameters.items():
            if not isinstance(array, numpy.ndarray) or not array.flags.writeable:
                raise Error("parameters[%r] is no array that can be written to; parameters= is a dict of numpy arrays" % name)
        if not isinstance(state, dict):
            raise Error("state= beside parameters= is a dict, which is changed in place")
        check_in_place(state, "state")
        self.parameters, self.state, self.gradients = parameters, state, None
        self.views = {}
        self.watch = Watch([("parameters[%r]" % name, array) for name, array in parameters.items()], some_of, lambda: 0, self.has_gradient,
                           IDLE, "behind the inner loop they are changed in place, as by `w -= rate * step.gradients['w']`; `w = w - ...` "
                           "makes another array, of which the job knows nothing")

    @staticmethod
    def arithmetic():
        return "numpy %s, %s" % (numpy.__version__, platform.machine())

    def shapes(self):
        return [(name, array.size) for name, array in self.parameters.items()]

    def leaves(self):
        return tree.leaves(self.parameters, "model") + tree.leaves(self.state, "state")

    def put(self, connection):
        for path, value in self.leaves():
            it = flat(path, value)
            connection.put(path, it.dtype, it.shape, it.address)

    def load(self, connection):
        for path, array in tree.leaves(self.parameters, "model"):
            find_into(connection, path, array)
        self.take(self.state, "state", connection)

    def take(self, inside, path, connection):
        for below, key, value in tree.items(inside, path):
            if tree.items(value, below) is not None:
                self.take(value, below, connection)
            else:
                new = find_into(connection, below, value)
                if new is not value:
                    inside[key] = new

    def has_gradient(self):
        return any(gradient.any() for gradient in self.gradients.values())

    def begin_loops(self):
        self.watch.begin()

    def check_update(self):
        self.watch.updated()

    def settle(self):
        self.gradients = None

    def begin(self, address):
        if address not in self.views:
            at, views = address, {}
            for name, array in self.parameters.items():
                views[name] = array_at(at, 4 * array.size, numpy.float32).reshape(array.shape)
                at += 4 * array.size
            self.views[address] = Gradients(views)
        self.gradients = self.views[address]

    apply = begin

    def end(self):
        pass

    @staticmethod
    def reader(data, collate, samples):
        return reader_of(data, collate, samples, numpy.ndarray, batch_of)
