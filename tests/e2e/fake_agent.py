#!/usr/bin/python3
"""A stand-in for ringmaster-agent that trains nothing: it keeps the contract between `run` and its children.

Copied as `ringmaster-agent` beside a copy of `ringmaster`, it lets a test look at run alone, and at children that
misbehave in ways the real ones don't. What the coordinator hears goes to the file FAKE_HEARD, a line each.
FAKE_MOOD: crash (the coordinator dies at step 7), deaf (it ignores interrupts), rubbish (it says what is no event),
silent (it ends before it listens), die:N (each worker exits with N at once)."""

import ctypes
import json
import os
import select
import signal
import socket
import sys
import time

MOOD = os.environ.get("FAKE_MOOD", "")
STEP_S = 0.01


def tell(event, **fields):
    print(json.dumps({"event": event, "time": int(time.time() * 1000), **fields}), flush=True)


def options(words):
    return {words[i][2:]: words[i + 1] for i in range(0, len(words) - 1, 2)}


def check_job(given):
    """The job and its key can be read, by this user only."""
    key = open(given["key-file"], encoding="ascii").read()
    assert len(key.strip()) == 64 and os.stat(given["key-file"]).st_mode & 0o777 == 0o600
    return json.load(open(given["job"], encoding="utf-8"))["spec"]


def work(given):
    if MOOD.startswith("die:"):
        print("a worker that can't go on", file=sys.stderr)
        return int(MOOD[4:])
    asked = []
    signal.signal(signal.SIGTERM, lambda *_: asked.append(True))
    host, port = given["coordinator"].split(":")
    link = socket.create_connection((host, int(port)))
    link.sendall(json.dumps([int(given["worker"]), int(given["attempt"]), os.getpid()]).encode() + b"\n")
    while True:
        readable, _, _ = select.select([link, 0], [], [], 0.01)
        if asked:
            link.sendall(b"leave\n")
            asked.clear()
        if 0 in readable:
            return 9
        if link in readable:
            return 0


class Coordinator:
    def __init__(self, given, spec):
        self.steps = spec["trainer"]["steps"]
        self.uri = spec["checkpoint"]["uri"]
        self.workers, self.expected, self.heard = {}, 0, b""
        self.step = self.generation = 0
        self.log = open(os.environ.get("FAKE_HEARD", os.devnull), "w", encoding="ascii")
        self.server = socket.socket()
        self.server.bind(("127.0.0.1", int(given["port"])))
        self.server.listen()
        os.set_blocking(0, False)

    def listen(self):
        """The words on standard input; returns an exit code, or None to go on."""
        words = os.read(0, 65536)
        if not words:
            return 1
        *lines, self.heard = (self.heard + words).split(b"\n")
        for line in lines:
            self.log.write(line.decode() + "\n")
            self.log.flush()
            command = json.loads(line)
            if command["command"] == "expect":
                self.expected = len(command["workers"])
            if command["command"] == "interrupt" and MOOD != "deaf":
                tell("interrupted", step=self.step)
                return 130
        return None

    def take_changes(self, readable):
        """Workers that come and go; returns the cause of a new ring, or None."""
        cause = None
        if self.server in readable:
            link, _ = self.server.accept()
            worker, attempt, pid = json.loads(link.makefile().readline())
            self.log.write(json.dumps({"hello": worker, "attempt": attempt}) + "\n")
            self.workers[link] = (worker, pid)
            if self.generation:
                tell("workerJoined", worker=worker, step=self.step, cause="WorkerJoined")
                cause = "WorkerJoined"
        for link in [l for l in self.workers if l in readable]:
            said = link.recv(100)
            worker, _ = self.workers.pop(link)
            cause = "WorkerLeft" if said else "WorkerLost"
            tell("workerLeft" if said else "workerLost", worker=worker, step=self.step, cause="gone")
            if said:
                tell("released", worker=worker)
                link.close()
        return cause

    def form(self, cause):
        self.generation += 1
        members = [{"worker": w, "agentPid": p, "trainerPid": 0} for w, p in self.workers.values()]
        tell("ringFormed", term=1, generation=self.generation, world=len(members), step=self.step, members=members)
        if cause:
            tell("recovered", cause=cause, detectMs=1, agreeMs=1, ringMs=1, stateMs=0, firstStepMs=1, totalMs=4, stepsRedone=0)

    def train(self):
        self.step += 1
        if MOOD == "crash" and self.step == 7:
            os.kill(os.getpid(), signal.SIGKILL)
        if MOOD == "rubbish" and self.step == 7:
            print("this is no event", flush=True)
            tell("moonrise", step=7)
        tell("step", step=self.step, loss=5 / self.step, tokensPerSecond=100, world=len(self.workers))
        time.sleep(STEP_S)

    def run(self):
        if MOOD == "silent":
            print("no room at the inn", file=sys.stderr)
            return 4
        tell("listening", address=f"127.0.0.1:{self.server.getsockname()[1]}")
        while self.step < self.steps:
            readable, _, _ = select.select([self.server, 0, *self.workers], [], [], 0.01)
            code = self.listen() if 0 in readable else None
            if code is not None:
                return code
            cause = self.take_changes(readable)
            if not self.workers or (not self.generation and len(self.workers) < self.expected):
                continue
            if cause or not self.generation:
                self.form(cause)
            self.train()
        tell("complete", step=self.step, loss=1.0, weightsSha256="ab" * 32, exact=True, goodput=0.9, uri=self.uri + "/final")
        for link in self.workers:
            link.close()
        return 0


def main():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    given = options(sys.argv[2:])
    assert os.getppid() == int(given["parent"])
    spec = check_job(given)
    return work(given) if sys.argv[1] == "work" else Coordinator(given, spec).run()


if __name__ == "__main__":
    sys.exit(main())
