#!/usr/bin/python3
"""logind for a node of a test cluster, whose kubelet takes part in a machine's orderly end: a system bus of the node's own, and python3-dbusmock's logind on it.

  logind.py up            returns when both are there; they end with the node
  logind.py inhibitors    prints who delays a shutdown, as JSON: [what, who, why, mode] each
  logind.py shutdown      says that the machine is about to go down

It runs inside the node, and by the system's Python, whose dbus it uses."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

BUS = Path("/run/dbus/system_bus_socket")
NAME, OBJECT, MANAGER = "org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager"
DELAY_MAX_US = 120 * 1000000  # more than any kubelet of ours asks for: none has to write a file of logind's
DEADLINE_S = 60

SETTINGS = f"""<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN" "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>system</type>
  <listen>unix:path={BUS}</listen>
  <auth>EXTERNAL</auth>
  <policy context="default"><allow user="*"/><allow own="*"/><allow send_destination="*"/><allow receive_sender="*"/></policy>
</busconfig>
"""


def until(condition, what):
    deadline = time.monotonic() + DEADLINE_S
    while not (found := condition()):
        if time.monotonic() > deadline:
            sys.exit(f"logind.py: {what}: not in {DEADLINE_S} s")
        time.sleep(0.02)
    return found


def on_bus(interface):
    """logind's object, as whoever speaks that interface sees it."""
    import dbus  # the system's, which only the node needs
    return dbus.Interface(dbus.SystemBus().get_object(NAME, OBJECT), interface)


def begin(*command):
    subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)


def up():
    import dbus
    settings = BUS.parent / "settings.conf"
    BUS.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(SETTINGS, encoding="ascii")
    begin("dbus-daemon", f"--config-file={settings}", "--nofork", "--nopidfile")
    until(BUS.exists, "the bus")
    begin(sys.executable, "-m", "dbusmock", "--system", "--template", "logind")
    until(lambda: dbus.SystemBus().name_has_owner(NAME), "logind")
    on_bus("org.freedesktop.DBus.Mock").AddProperty(MANAGER, "InhibitDelayMaxUSec", dbus.UInt64(DELAY_MAX_US))


def inhibitors():
    print(json.dumps([[str(word) for word in each[:4]] for each in on_bus(MANAGER).ListInhibitors()]))


def shutdown():
    on_bus("org.freedesktop.DBus.Mock").EmitSignal(MANAGER, "PrepareForShutdown", "b", [True])


COMMANDS = {"up": up, "inhibitors": inhibitors, "shutdown": shutdown}

if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in COMMANDS:
        sys.exit(__doc__)
    os.environ["DBUS_SYSTEM_BUS_ADDRESS"] = f"unix:path={BUS}"
    COMMANDS[sys.argv[1]]()
