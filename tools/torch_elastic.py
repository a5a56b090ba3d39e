#!/usr/bin/env python3
"""How long PyTorch's elastic launcher (torchrun) takes until the next step when a worker dies, leaves or joins.

Up to 4 launchers with one worker each on this machine run tools/elastic_worker.py (gloo, one thread each), 3 to 4 of them at a
time (--nnodes=3:4). --event kill: one launcher and its worker get SIGKILL at once. leave: one launcher gets SIGTERM. join:
three train, a fourth comes. Prints one JSON object: torch's version, the seconds to the first step in the new company, the
seconds without any step before it, the
steps redone, the time of a step before it. Where torch is not installed: a sentence, exit 77.

The rendezvous is told to wait 1 s instead of 30 s for more nodes, and to miss a dead one after 6 s instead of 15 s;
--defaults leaves both as they come.

In both cases the workers meet in a store of their own (TORCH_DISABLE_SHARE_RDZV_TCP_STORE): in the launchers' store they
look for each other under how often each was restarted, which differs after a loss, and mostly never meet.
"""

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import elastic_steps
import elastic_worker

NODES, LEAST = 4, 3
TRAINED, PATIENCE_S, BEGIN_S = 20, 150, 400  # four Pythons with torch may take minutes on a machine that is busy
QUICK = ["last_call_timeout=1", "keep_alive_interval=2", "keep_alive_max_attempt=3"]
WORKER = Path(__file__).resolve().parent / "elastic_worker.py"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def for_this_torch(folder):
    """Before PyTorch 2 a launcher's address is the one that the machine's name stands for, and its default of no redirects breaks on Python 3.11,
    whose flags are no longer gone through with 0 among them."""
    import torch.distributed.run as launcher
    if "--local-addr" in launcher.get_args_parser().format_help():
        return ["--local-addr=127.0.0.1"]
    return ["--redirects=1", "--tee=2", f"--log_dir={folder}/log"]


class Node:
    """A launcher and its worker, one of so many."""

    def __init__(self, port, folder, conf, least=LEAST, most=NODES, save_every=1):
        command = [sys.executable, "-m", "torch.distributed.run", f"--nnodes={least}:{most}", "--nproc_per_node=1",
                   "--max_restarts=99", "--rdzv_backend=c10d", f"--rdzv_endpoint=127.0.0.1:{port}", "--rdzv_id=bench",
                   *for_this_torch(folder), f"--rdzv_conf={','.join(conf)}", str(WORKER), str(folder), str(save_every)]
        env = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo",
               "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(command, env=env, stdout=self.log, stderr=self.log, text=True,
                                        preexec_fn=elastic_worker.die_with_parent)

    def kill(self):
        """At once with its worker, which dies with its parent."""
        self.process.kill()
        self.process.wait()

    def tail(self):
        self.log.seek(0)
        return self.log.read()[-1500:]


def harm(event, nodes, start):
    if event == "kill":
        nodes[-1].kill()
    elif event == "leave":
        nodes[-1].process.send_signal(signal.SIGTERM)
    else:
        nodes.append(start(len(nodes)))


def measure(event, conf, save_every):
    port = free_port()
    before, after = (LEAST, NODES) if event == "join" else (NODES, LEAST)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        steps = elastic_steps.Steps(Path(name))
        # The first one serves the rendezvous: else whoever is quickest would, and might be the one that dies.
        def start(i):
            return Node(port, Path(name), [*conf, f"is_host={str(i == 0).lower()}"], save_every=save_every)
        nodes = [start(i) for i in range(before)]
        try:
            if not steps.wait(lambda s: s["world"] == before and s["step"] >= TRAINED, BEGIN_S):
                raise RuntimeError("the workers did not begin to train: " + nodes[0].tail())
            began, step_ms = time.monotonic(), steps.pace_ms()
            harm(event, nodes, start)
            first = steps.after(began, PATIENCE_S, after)
            if not first:
                raise RuntimeError("the others did not go on: " + nodes[0].tail())
            return first["time"] - began, steps.stood_still(first), steps.redone(began, first), step_ms
        finally:
            for node in nodes:
                node.kill()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--event", choices=["kill", "leave", "join"], default="kill")
    parser.add_argument("--kills", type=int, default=3, help="how often")
    parser.add_argument("--defaults", action="store_true", help="torchrun's own timeouts")
    parser.add_argument("--save-every", type=int, default=1, help="rank 0 saves after each so many steps")
    arguments = parser.parse_args()
    try:
        import torch
    except (ImportError, OSError, ValueError) as why:
        print(f"torch_elastic: PyTorch can't be imported here: {why}", file=sys.stderr)
        return 77
    found = [measure(arguments.event, [] if arguments.defaults else QUICK, arguments.save_every) for _ in range(arguments.kills)]
    seconds, stood, redone, pace = zip(*found)
    print(json.dumps({"torch": torch.__version__, "seconds": [round(s, 3) for s in seconds], "stoodStill": [round(s, 3) for s in stood],
                      "stepsRedone": redone, "stepMs": [round(ms, 1) for ms in pace]}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
