"""Which addresses a test cluster has: of one family alone, inside a network namespace of its own, so that clusters side by side have the same ones."""

import ipaddress
from dataclasses import dataclass


@dataclass(frozen=True)
class Network:
    family: int
    length: int      # of the network of machines
    api: str         # where the control plane is, DNS as well
    machines: str    # node N's address, by 10 + N
    node_pods: str   # what node N has for its pods
    pods: str        # all of these
    services: str
    kubernetes: str  # the API server's Service
    forwarding: str  # what makes a machine hand on what is not for it, under /proc/sys

    def machine(self, number):
        return self.machines.format(10 + number)

    def pods_of(self, number):
        return self.node_pods.format(number)

    def server(self, port):
        return f"https://{host(self.api)}:{port}"


IPV4 = Network(4, 24, "10.250.0.1", "10.250.0.{}", "10.244.{}.0/24", "10.244.0.0/16", "10.96.0.0/16", "10.96.0.1", "net/ipv4/ip_forward")
IPV6 = Network(6, 64, "fd00:250::1", "fd00:250::{}", "fd00:244:0:{}::/64", "fd00:244::/48", "fd00:96::/112", "fd00:96::1",
               "net/ipv6/conf/all/forwarding")
OF_FAMILY = {network.family: network for network in (IPV4, IPV6)}


def host(address):
    """An address as a URL has it."""
    return f"[{address}]" if ipaddress.ip_address(address).version == 6 else address
