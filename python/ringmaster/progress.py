"""How far a training is, told to the agent that started it: one datagram for each report (docs/programs.md)."""

import math
import os
import socket
import warnings

_door = None  # connected to the agent's socket; made at the first report
_warned = False


def _warn(sentence):
    global _warned
    if not _warned:
        _warned = True
        warnings.warn("ringmaster.report: " + sentence, RuntimeWarning, stacklevel=4)


def _text(step, steps, loss):
    words = ["step=%d" % step]
    if steps is not None:
        words.append("steps=%d" % steps)
    if loss is not None:
        loss = float(loss)
        words.append("loss=%.9g" % loss if math.isfinite(loss) else "loss=nan")
    rank = os.environ.get("RANK", "")
    if rank.isdigit():
        words.append("rank=" + rank)
    return " ".join(words).encode("ascii", "replace")


def _open(path):
    door = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    door.setblocking(False)
    try:
        door.connect(path)
    except OSError:
        door.close()
        raise
    return door


def report(step, steps=None, loss=None):
    """Tells how far this program is.

    step: steps that are done since the training began, in whatever generation; steps: of the whole training, where that
    is known; loss: of this step, a number. A CUDA tensor is one, too, but waiting for it takes its time.

    It never waits, never raises, and where the agent has too much to read the report is dropped: the next one says more.
    Outside of a job, and in mode Elastic, whose trainer knows step and loss by itself, it does nothing.
    """
    global _door
    path = os.environ.get("RINGMASTER_SOCKET")
    if not path:
        return
    try:
        text = _text(step, steps, loss)
    except (TypeError, ValueError, OverflowError) as why:
        _warn("report(step, steps, loss) wants numbers: %s; nothing is told" % why)
        return
    try:
        if _door is None:
            _door = _open(path)
        _door.send(text)
    except BlockingIOError:
        pass  # full
    except OSError:
        if _door is not None:  # whoever read it is gone, and this program is about to be
            _door.close()
            _door = None
