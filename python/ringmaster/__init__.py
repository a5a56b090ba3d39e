"""What a training of one's own may say to the Ringmaster job that runs it; outside of a job report() does nothing."""

__all__ = ["connect", "report"]

# Each name's module, imported when it is used first.
_PLACES = {"connect": "elastic", "Error": "library", "report": "progress"}


def __getattr__(name):  # of Python 3.7; 3.6 finds them below
    if name not in _PLACES:
        raise AttributeError("module 'ringmaster' has no attribute %r" % name)
    from importlib import import_module

    value = getattr(import_module("ringmaster." + _PLACES[name]), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted(set(globals()) | set(_PLACES))


import sys as _sys

if _sys.version_info < (3, 7):
    for _name in _PLACES:
        __getattr__(_name)
