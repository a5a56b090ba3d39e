"""Counts, and says each number once, whatever becomes of its process: all that it remembers lies in a memory file of the name
ringmaster-state at descriptor 9, which the stand-in for CRIU keeps (tests/snapshot_rig); CRIU itself keeps everything.

    frozen_counter.py [UNTIL [FILE]]

With a FILE each number is a line of that, too, which stays open.

Its first word is 1 while a number is on its way out: then is no moment to be frozen by a stand-in, which starts it anew."""

import mmap
import os
import select
import struct
import sys

PLACE = 9
UNTIL = int(sys.argv[1]) if len(sys.argv) > 1 else 1 << 60

LOG = open(sys.argv[2], "ab", buffering=0) if len(sys.argv) > 2 else None


def is_there():
    try:
        return os.readlink(f"/proc/self/fd/{PLACE}").startswith("/memfd:ringmaster-state")
    except OSError:
        return False


if not is_there():
    made = os.memfd_create("ringmaster-state", 0)
    os.ftruncate(made, 16)
    os.dup2(made, PLACE)
    os.close(made)
state = mmap.mmap(PLACE, 16)
while True:
    (count,) = struct.unpack_from("<Q", state, 8)
    if count >= UNTIL:
        break
    struct.pack_into("<Q", state, 0, 1)
    os.write(1, b"%d\n" % count)
    if LOG:
        LOG.write(b"%d\n" % count)
    struct.pack_into("<Q", state, 8, count + 1)
    struct.pack_into("<Q", state, 0, 0)
    select.select([], [], [], 0.005)
