"""A trainer's stand-in for programs of mode Elastic: it plays the other side of common/program/packets.h.

It has as many programs as it is told, deals lanes out, adds gradients up in float64 in the order of the lanes, and asks for whatever
a trainer may ask for: lanes once more, a state now, another state in the midst of a step, nothing for a while, updates of steps that
a program had no lane of; it kills programs while they compute and starts others. With the same seed it asks for the same.

With `plain` it adds up as workers do that have no exact sums: in fp32, each its own lanes, and then theirs one after the other.

It is strict: a packet out of turn or of another length, a byte changed where nothing should be, or two programs whose states of one
step differ, is an AssertionError.
"""

import functools
import hashlib
import mmap
import os
import random
import select
import signal
import socket
import struct
import subprocess
import tempfile
import time

import numpy

HELLO, GRADIENT, READY, NEXT, REPORT, WELCOME, TASK = 1, 2, 3, 4, 5, 64, 65
LANE, UPDATE, SAVE, LOAD, END, AGAIN = range(1, 7)
FORMS = {HELLO: "<IIqII1024s", GRADIENT: "<IIq256s", READY: "<IIq", NEXT: "<IId1024s", REPORT: "<IId256s"}
WELCOME_FORM, TASK_FORM = "<IIIIqQqqqqqq", "<IIqIIIIQd1024s"
ABI, GRADIENTS_MAX = 1, 1156
PATIENCE_S = 120
GUARD = b"\xa5" * 64  # between the parts of the memory: nobody may write there


def text(raw):
    return raw.split(b"\0", 1)[0].decode()


def seed_of(seed, step, lane):
    return int.from_bytes(hashlib.sha256(b"%d %d %d" % (seed, step, lane)).digest()[:8], "little")


class Program:
    """One process of the user's, and what it is at."""

    def __init__(self, process):
        self.process, self.connection, self.memory = process, None, None
        self.hello, self.gradients, self.image_bytes = None, [], None
        self.asked, self.task, self.area, self.held, self.late = False, None, 0, None, 0
        self.reports, self.failed, self.ended, self.said = [], None, False, ""

    @property
    def elements(self):
        return sum(count for _, count in self.gradients)


class StandIn:
    def __init__(self, command, *, workers, steps=6, lanes=4, sequences=3, samples=48, seed=7, mischief=None, kills=0, plain=False, env=None, cwd=None):
        self.command, self.env, self.cwd = command, {**os.environ, **(env or {})}, cwd
        self.workers, self.steps, self.lanes, self.sequences, self.samples, self.seed = workers, steps, lanes, sequences, samples, seed
        self.chance, self.kills, self.plain = random.Random(mischief) if mischief is not None else None, kills, plain
        self.folder = tempfile.mkdtemp(prefix="standin-")
        self.path = os.path.join(self.folder, "socket")
        self.door = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.door.bind(self.path)
        self.door.listen(64)
        self.programs = []
        self.means = {}  # step -> (mean gradient, mean loss)
        self.states = {}  # step -> image
        self.found = {}  # lane -> (gradient, loss) of the step under way
        self.passes = {}  # (step, lane) -> how often it was asked for
        self.bits = {}  # (step, lane) -> gradient's bytes
        self.heard = time.monotonic()
        self.asked_for = {LANE: 0, UPDATE: 0, SAVE: 0, LOAD: 0, AGAIN: 0, "again": 0, "kill": 0, "late": 0}

    def start(self):
        self.programs.append(Program(subprocess.Popen(
            self.command, env={**self.env, "RINGMASTER_SOCKET": self.path}, cwd=self.cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True)))

    @property
    def step(self):
        return len(self.means) + 1

    # What goes over the socket.

    def accept(self):
        connection, _ = self.door.accept()
        raw = connection.recv(4096)
        word, abi, samples, determinate, pid, arithmetic = struct.unpack(FORMS[HELLO], raw)
        assert (word, abi) == (HELLO, ABI)
        program = next(p for p in self.programs if p.process.pid == pid)
        assert program.connection is None and samples > 0 and text(arithmetic)
        program.connection, program.hello = connection, {"samples": samples, "determinate": determinate, "arithmetic": text(arithmetic)}
        self.samples = min(self.samples, samples)

    def hear(self, program):
        try:
            raw = program.connection.recv(4096)
        except ConnectionResetError:  # it was killed with something unread
            raw = b""
        if not raw:
            self.gone(program)
            return
        word = struct.unpack_from("<I", raw)[0]
        assert word in FORMS and len(raw) == struct.calcsize(FORMS[word]), f"packet {word} of {len(raw)} bytes"
        fields = struct.unpack(FORMS[word], raw)[1:]
        if program.memory is None:
            self.hear_early(program, word, fields)
        elif word == REPORT:
            program.reports.append((text(fields[2]), fields[1]))
        else:
            assert word == NEXT and not program.asked, f"packet {word} out of turn"
            program.asked = True
            if fields[0]:
                program.failed = text(fields[2])
            else:
                self.done(program, fields[1])

    def hear_early(self, program, word, fields):
        if word == GRADIENT:
            name = text(fields[2])
            assert name not in dict(program.gradients) and fields[1] > 0 and len(program.gradients) < GRADIENTS_MAX
            program.gradients.append((name, fields[1]))
            return
        assert word == READY, f"packet {word} before the welcome"
        assert fields[0] == len(program.gradients) > 0 and fields[1] > 8 and fields[1] % 8 == 0
        program.image_bytes = fields[1]
        first = next((p for p in self.programs if p.memory is not None), program)
        assert (program.gradients, program.image_bytes) == (first.gradients, first.image_bytes), "programs differ"
        self.welcome(program)

    def welcome(self, program):
        at, places = 0, []
        for size in 2 * [4 * program.elements] + 2 * [8 * self.sequences] + [program.image_bytes]:
            places.append(at)
            at += (size + len(GUARD) + 63) // 64 * 64
        fd = os.memfd_create("standin")
        os.ftruncate(fd, at)
        program.memory = mmap.mmap(fd, at)
        for place, size in zip(places, 2 * [4 * program.elements] + 2 * [8 * self.sequences] + [program.image_bytes]):
            program.memory[place + size:place + size + len(GUARD)] = GUARD
        program.places, program.sizes = places, 2 * [4 * program.elements] + 2 * [8 * self.sequences] + [program.image_bytes]
        packet = struct.pack(WELCOME_FORM, WELCOME, self.lanes, self.sequences, 0, self.steps, self.seed, at, *places)
        socket.send_fds(program.connection, [packet], [fd])
        os.close(fd)

    def part(self, program, index):
        return program.memory[program.places[index]:program.places[index] + program.sizes[index]]

    def write(self, program, index, data):
        program.memory[program.places[index]:program.places[index] + len(data)] = data

    def give(self, program, kind, *, step=0, lane=0, area=0, seed=0, loss=0.0, why=""):
        again = self.passes.get((step, lane), 0) if kind == LANE else 0
        packet = struct.pack(TASK_FORM, TASK, kind, step, lane, again, area, 0, seed, loss, why.encode())
        program.task, program.asked = (kind, step, lane, area), False
        program.before = hashlib.sha256(self.others(program)).digest()
        try:
            program.connection.send(packet)
        except BrokenPipeError:
            pass  # killed, which is heard of when it is read from
        if kind in self.asked_for:
            self.asked_for[kind] += 1

    def others(self, program):
        """All of the memory that the task under way may not change."""
        kind, _, _, area = program.task
        mine = {LANE: area, UPDATE: area, SAVE: 4}.get(kind)
        whole = bytearray(program.memory[:])
        if mine is not None:
            whole[program.places[mine]:program.places[mine] + program.sizes[mine]] = bytes(program.sizes[mine])
        return whole

    # What was done, and what is next.

    def done(self, program, loss):
        if program.task is None:
            return
        kind, step, lane, area = program.task
        assert hashlib.sha256(self.others(program)).digest() == program.before, f"task {kind} changed what is not its own"
        program.task = None
        if kind == LANE:
            raw = self.part(program, area)
            assert not numpy.isnan(numpy.frombuffer(raw, numpy.float32)).any(), "a lane's gradient has NaN: was the area not zeroed?"
            assert self.bits.setdefault((step, lane), (raw, loss)) == (raw, loss), f"lane {lane} of step {step} has other bits now"
            if step == self.step:
                self.found[lane] = (numpy.frombuffer(raw, numpy.float32).astype(numpy.float64), loss)
                self.close_step()
        elif kind == UPDATE:
            program.held = step
        elif kind == LOAD:
            program.held = step
        elif kind == SAVE:
            image = self.part(program, 4)
            program.held = step
            if step == 0 and 0 in self.states:
                assert self.states[0] == image, "programs begin with other weights: seed before building"
            assert self.states.setdefault(step, image) == image, f"two states of step {step}"

    def close_step(self):
        if len(self.found) == self.lanes:
            total = self.plain_sum() if self.plain else sum(self.found[lane][0] for lane in range(self.lanes))
            self.means[self.step] = ((total / self.lanes).astype(numpy.float32).tobytes(),
                                     sum(self.found[lane][1] for lane in range(self.lanes)) / self.lanes)
            self.found = {}

    def plain_sum(self):
        """Each worker has lanes that follow each other."""
        parts = numpy.array_split([self.found[lane][0].astype(numpy.float32) for lane in range(self.lanes)], self.workers)
        return functools.reduce(numpy.add, [functools.reduce(numpy.add, part) for part in parts])

    def lane_for(self, program, step, lane):
        program.area ^= 1
        first = ((step - 1) * self.lanes + lane) * self.sequences
        samples = [(first + i) % self.samples for i in range(self.sequences)]
        self.write(program, 2 + program.area, struct.pack(f"<{self.sequences}q", *samples))
        self.write(program, program.area, b"\xff" * program.sizes[program.area])  # NaN
        self.passes[(step, lane)] = self.passes.get((step, lane), -1) + 1
        self.give(program, LANE, step=step, lane=lane, area=program.area, seed=seed_of(self.seed, step, lane))

    def mischief(self, program):
        """Something that a trainer may ask for at any time; False where it asks for nothing unusual now."""
        what = self.chance.random()
        if what < 0.06:
            self.give(program, AGAIN)
        elif what < 0.14:
            self.give(program, SAVE, step=program.held)
        elif what < 0.20:
            step = self.chance.choice([step for step in self.states if step <= len(self.means)])
            self.write(program, 4, self.states[step])
            self.give(program, LOAD, step=step)
        elif what < 0.30 and program.held == self.step - 1 and self.found:
            self.asked_for["again"] += 1
            self.lane_for(program, self.step, self.chance.choice(sorted(self.found)))
        elif what < 0.36 and self.found:  # the ring broke: all of the step once more
            self.found = {}
            return False
        elif what < 0.42 and not program.late and sum(p.memory is not None for p in self.programs) > 1:
            self.asked_for["late"] += 1
            program.late = self.step + 1  # it hears nothing until that step is complete
        else:
            return False
        return True

    def next(self, program):
        """Answers a program that asks, or lets it wait."""
        if program.held is None:
            if self.states:
                step = max(self.states)
                if step == 0:
                    self.give(program, SAVE, step=0)
                else:
                    self.write(program, 4, self.states[step])
                    self.give(program, LOAD, step=step)
            else:
                self.give(program, SAVE, step=0)
            return
        if not self.means and sum(p.held is not None for p in self.programs) < self.workers:
            return  # all begin together
        if program.late and len(self.means) < min(program.late, self.steps) and self.somebody_else(program):
            return
        program.late = 0
        if self.chance and program.held < self.steps and self.mischief(program):
            return
        if program.held < len(self.means):
            step = program.held + 1
            program.area ^= 1
            self.write(program, program.area, self.means[step][0])
            self.give(program, UPDATE, step=step, area=program.area, loss=self.means[step][1])
        elif program.held == self.steps:
            if program.saved:
                self.give(program, END)
                program.ended = True
            else:
                program.saved = True
                self.give(program, SAVE, step=self.steps)
        else:
            under_way = {p.task[2] for p in self.programs if p.task and p.task[0] == LANE and p.task[1] == self.step}
            free = [lane for lane in range(self.lanes) if lane not in self.found and lane not in under_way]
            if free:
                self.lane_for(program, self.step, free[0])
                self.maybe_kill(program)

    def somebody_else(self, program):
        return any(p is not program and p.memory is not None and not p.late and not p.ended for p in self.programs)

    def maybe_kill(self, program):
        if self.kills and self.chance.random() < 0.15 and len(self.means) > 0:
            self.kills -= 1
            self.asked_for["kill"] += 1
            program.process.send_signal(signal.SIGKILL)

    def gone(self, program):
        program.connection.close()
        program.said += program.process.communicate()[0]
        self.programs.remove(program)
        if program.ended:
            self.finished.append(program)
        elif program.process.returncode == -signal.SIGKILL and self.asked_for["kill"]:
            self.start()
        else:
            self.broken.append(program)

    def run(self):
        """The final image, when all programs have ended with 0; an AssertionError with their output else."""
        self.finished, self.broken = [], []
        try:
            for _ in range(self.workers):
                self.start()
            while self.programs and not self.broken:
                self.turn()
            said = "".join(program.said for program in self.broken)
            assert not self.broken, f"a program ended with {self.broken[0].process.returncode}:\n{said}"
            for program in self.finished:
                assert program.process.returncode == 0, f"ended with {program.process.returncode}:\n{program.said}"
            return self.states[self.steps]
        finally:
            self.clean()

    def turn(self):
        connected = [p for p in self.programs if p.connection]
        ready, _, _ = select.select([self.door] + [p.connection for p in connected], [], [], 1)
        self.heard = time.monotonic() if ready else self.heard
        assert time.monotonic() < self.heard + PATIENCE_S, "nothing more comes"
        if self.door in ready:
            self.accept()
        for program in connected:
            if program.connection in ready:
                self.hear(program)
        for program in [p for p in self.programs if p.connection is None and p.process.poll() is not None]:
            program.said += program.process.communicate()[0]
            self.programs.remove(program)
            self.broken.append(program)
        for program in list(self.programs):
            if program.asked and not program.failed:
                program.saved = getattr(program, "saved", False)
                self.next(program)

    def clean(self):
        for program in self.programs:
            program.process.kill()
            program.said += program.process.communicate()[0]
        self.door.close()
        os.unlink(self.path)
        os.rmdir(self.folder)
