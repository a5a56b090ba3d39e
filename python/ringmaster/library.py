"""libringmaster.so by ctypes: its structs and functions as ringmaster.h has them, and where it is found."""

import ctypes
import json
import os
import sys
import sysconfig
import time
import traceback

ABI = 1
DIMS_MAX = 8
LANE, UPDATE, SAVE, LOAD, END, AGAIN = range(1, 7)
DTYPES = ("bool", "uint8", "int8", "int16", "uint16", "float16", "bfloat16", "int32", "uint32", "float32", "int64", "uint64", "float64")
CODES = {name: code for code, name in enumerate(DTYPES)}
FILE = "libringmaster.so.1"


class Error(RuntimeError):
    """What can't be, in a sentence that says what to do."""


def is_refusal(error):
    return isinstance(error, Error) or (isinstance(error, ImportError) and str(error).startswith("ringmaster.connect: "))


def tell_refusal(error, trace):
    """Nobody has caught it: the launcher finds in torch's error file that this program would end the same if it was started anew."""
    path = os.environ.get("TORCHELASTIC_ERROR_FILE")
    if not path:
        return
    stack = "".join(traceback.format_exception(type(error), error, trace))
    more = {"py_callstack": stack, "timestamp": str(int(time.time())), "ringmaster": "refused", "pid": os.getpid()}  # a fork has this file too
    try:
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"message": {"message": "ringmaster refuses it: %s" % error, "extraInfo": more}}, file)
    except OSError:
        pass  # then it is a failure like any other


_hook_before = sys.excepthook


def _hook(kind, error, trace):
    if is_refusal(error):
        tell_refusal(error, trace)
    _hook_before(kind, error, trace)


sys.excepthook = _hook


class Options(ctypes.Structure):
    _fields_ = [("abi", ctypes.c_uint32), ("deterministic", ctypes.c_uint32), ("samples", ctypes.c_int64),
                ("arithmetic", ctypes.c_char_p)]


class Task(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_uint32), ("lane", ctypes.c_uint32), ("again", ctypes.c_uint32), ("lanes", ctypes.c_uint32),
                ("step", ctypes.c_int64), ("steps", ctypes.c_int64), ("seed", ctypes.c_uint64),
                ("samples", ctypes.POINTER(ctypes.c_int64)), ("count", ctypes.c_int64), ("loss", ctypes.c_double),
                ("why", ctypes.c_char_p)]


class Tensor(ctypes.Structure):
    _fields_ = [("dtype", ctypes.c_uint32), ("dims", ctypes.c_int32), ("shape", ctypes.c_int64 * DIMS_MAX),
                ("data", ctypes.c_void_p), ("bytes", ctypes.c_int64)]


def places():
    """Where the library may lie, in this order: where the environment says, beside this package, in its prefix, where the loader looks."""
    named = os.environ.get("RINGMASTER_LIBRARY")
    if named:
        return [named]
    here = os.path.dirname(os.path.abspath(__file__))
    prefix = os.path.normpath(os.path.join(here, *[os.pardir] * 4))  # of share/ringmaster/python/ringmaster
    beside = [os.path.join(here, FILE), os.path.join(prefix, "lib", FILE)]
    return [path for path in beside if os.path.exists(path)] + [FILE]


def check_c_library():
    """The library is linked with glibc; a musl loader would say no more than that some symbol is missing."""
    suffix = sysconfig.get_config_var("SOABI") or sysconfig.get_config_var("EXT_SUFFIX") or ""
    if "musl" in suffix:
        raise ImportError("ringmaster.connect: this Python is linked with musl, as Alpine's is, and %s needs glibc: use an image of "
                          "Debian, Ubuntu or another with glibc 2.17 or later, or write mode: Restart" % FILE)


def load():
    check_c_library()
    for path in places():
        try:
            loaded = ctypes.CDLL(path)
            break
        except OSError as why:
            reason = why
    else:
        raise ImportError("ringmaster.connect: there is no %s (%s); RINGMASTER_LIBRARY may name it" % (FILE, reason))
    job, text = ctypes.c_void_p, ctypes.c_char_p
    for name, result, arguments in (
            ("rm_connect", job, [ctypes.POINTER(Options)]),
            ("rm_gradient", ctypes.c_int, [job, text, ctypes.c_int64]),
            ("rm_gradients", ctypes.c_void_p, [job]),
            ("rm_next", ctypes.c_int, [job, ctypes.POINTER(Task)]),
            ("rm_add", ctypes.c_int, [job, ctypes.c_double]),
            ("rm_fail", ctypes.c_int, [job, text]),
            ("rm_put", ctypes.c_int, [job, text, ctypes.c_int, ctypes.c_int, ctypes.POINTER(ctypes.c_int64), ctypes.c_void_p]),
            ("rm_find", ctypes.c_int, [job, text, ctypes.POINTER(Tensor)]),
            ("rm_report", ctypes.c_int, [job, text, ctypes.c_double]),
            ("rm_why", text, [job]),
            ("rm_close", None, [job])):
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, arguments
    return loaded


class Connection:
    """One job of the library. What it refuses is raised as Error; memory that it gives stays until the process ends, for tensors
    may be views of it."""

    def __init__(self, samples, arithmetic, deterministic):
        self.library = load()
        options = Options(abi=ABI, deterministic=bool(deterministic), samples=samples, arithmetic=arithmetic.encode())
        self.job = self.library.rm_connect(ctypes.byref(options))
        if not self.job:
            raise Error(self.library.rm_why(None).decode(errors="replace"))
        self.task = Task()

    def check(self, result):
        if result < 0:
            raise Error(self.library.rm_why(self.job).decode(errors="replace"))

    def gradient(self, name, count):
        self.check(self.library.rm_gradient(self.job, name.encode(), count))

    def gradients(self):
        return self.library.rm_gradients(self.job)

    def next(self):
        self.check(self.library.rm_next(self.job, ctypes.byref(self.task)))
        return self.task

    def add(self, loss):
        self.check(self.library.rm_add(self.job, loss))

    def fail(self, why):
        self.check(self.library.rm_fail(self.job, why.encode()))

    def put(self, name, dtype, shape, address):
        if len(shape) > DIMS_MAX:
            raise Error("%s has %d dimensions; %d are possible" % (name, len(shape), DIMS_MAX))
        self.check(self.library.rm_put(self.job, name.encode(), CODES[dtype], len(shape), (ctypes.c_int64 * DIMS_MAX)(*shape),
                                       address))

    def find(self, name):
        """(dtype, shape, address, bytes)"""
        found = Tensor()
        self.check(self.library.rm_find(self.job, name.encode(), ctypes.byref(found)))
        return DTYPES[found.dtype], tuple(found.shape[:found.dims]), found.data, found.bytes

    def report(self, key, value):
        self.check(self.library.rm_report(self.job, key.encode(), value))
