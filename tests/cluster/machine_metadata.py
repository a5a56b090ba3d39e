"""The metadata of a test's machines: on 169.254.169.254, one hop outside of each node, as a cloud's hypervisor has it.

So what leaves there with a TTL of 1 (AWS's tokens) gets as far as the node, and not into the pods behind its bridge.
The server is a thread of the test, which says what stands there; its network namespace ends with the test."""

import concurrent.futures
import ctypes
import os
import subprocess

from metadata_rig.server import LINK_LOCAL, Metadata, somebody_answers

CLONE_NEWNET = 0x40000000
LINK = "metadata"  # the node's end of the cable
C = ctypes.CDLL(None, use_errno=True)


def in_thread(act):
    """What act() gives in a thread of its own, which may leave this process's network: the others stay in it."""
    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        return thread.submit(act).result()


def must(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def within(network, act):
    """What act() gives in that network namespace (a path). Sockets and threads that it makes stay there."""
    def enter_and_act():
        with open(network, "rb") as there:
            must(C.setns(there.fileno(), CLONE_NEWNET))
        return act()
    return in_thread(enter_and_act)


def new_network():
    """A descriptor that holds a new network namespace."""
    def leave():
        must(C.unshare(CLONE_NEWNET))
        return os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    return in_thread(leave)


def ip(network, *words):
    """What the command `ip` prints in that network namespace."""
    return subprocess.run(["nsenter", f"--net={network}", "--", "ip", *words], check=True, capture_output=True, text=True).stdout


class MachineMetadata(Metadata):
    """first: a process in the machine's network; address: one of the machine's own, by which answers find back."""

    def __init__(self, cloud, first, address):
        machine = f"/proc/{first}/ns/net"
        if within(machine, somebody_answers):
            raise RuntimeError(f"somebody answers on {LINK_LOCAL} already: no test may stand in its way")
        self.network = new_network()
        self.outside = f"/proc/{os.getpid()}/fd/{self.network}"
        try:
            ip(self.outside, "link", "add", "eth0", "type", "veth", "peer", "name", LINK, "netns", str(first))
            ip(self.outside, "addr", "add", f"{LINK_LOCAL}/32", "dev", "eth0")
            ip(self.outside, "link", "set", "eth0", "up")
            ip(self.outside, "route", "add", "default", "via", address, "dev", "eth0", "onlink")
            ip(machine, "link", "set", LINK, "up")
            ip(machine, "route", "add", f"{LINK_LOCAL}/32", "dev", LINK, "src", address)
            within(self.outside, lambda: super(MachineMetadata, self).__init__(cloud, LINK_LOCAL, 80))
        except BaseException:
            self.disconnect()
            raise

    def __exit__(self, *how):
        super().__exit__(*how)
        self.disconnect()

    def disconnect(self):
        """Connections that are open keep the namespace for a while: the cable is pulled at once."""
        if "eth0" in ip(self.outside, "-brief", "link"):  # a machine that is gone has taken it along
            ip(self.outside, "link", "del", "eth0")
        os.close(self.network)
