"""A module as they are: it starts a thread, and a helper that reads standard input and stays."""

import decimal  # noqa: F401  (what the mirror looks for)
import os
import threading

threading.Thread(target=threading.Event().wait, daemon=True).start()
HELPER = os.fork()
if HELPER == 0:
    os.read(0, 1)
    os.execvp("sleep", ["sleep", "1000"])
