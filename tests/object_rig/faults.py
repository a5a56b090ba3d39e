"""What the proxy does to a request, drawn from a seed.

What is done to a request depends on the seed, on the request itself and on how often it was made, not on when it
came: the same seed does the same to the same requests, in whatever order parallel connections bring them.
"""

import dataclasses
import random
import re

# name: (what it needs to have a meaning, weight)
KINDS = {
    "slow": ("", 3),             # the body comes in drops
    "silence": ("", 1),          # taken, never answered
    "reset": ("", 3),            # RST before anything is read
    "busy": ("", 3),             # 503 SlowDown, not executed
    "broken": ("", 2),           # 500 InternalError, not executed
    "page": ("", 1),             # 502 with a page of HTML, as a load balancer says it
    "cut-up": ("up", 3),         # RST in the middle of what the client sends
    "flip-up": ("up", 3),        # a byte of what the client sends is another one
    "cut-down": ("down", 3),     # RST in the middle of the answer's body
    "flip-down": ("object", 3),  # a byte of an object is another one
    "short": ("down", 2),        # the answer ends early, and its length says so
    "long": ("down", 2),         # the answer is longer than what comes
    "lost-answer": ("", 3),      # executed, and cut before a byte of the answer
    "half-head": ("", 2),        # executed, and cut within the answer's head
    "skew": ("", 1),             # not executed: the server's clock is hours off, says the answer
    "error-in-200": ("complete", 4),       # not executed: status 200 with an error as its body
    "late-error-in-200": ("complete", 4),  # the same, executed
}


# What looks like a good answer and is none: so often at most for one request, or nobody could ever get by.
LIES = ("flip-down", "short", "skew")
LIES_MOST = 2


@dataclasses.dataclass
class Request:
    """The head of a request, as far as faults look at it."""

    method: str
    target: str
    length: int  # of its body
    headers: dict

    @property
    def name(self):
        """The same for every try, and for every run: without what is random in it."""
        return re.sub(r"uploadId=[^&]*", "uploadId=", f"{self.method} {self.target}")

    @property
    def key(self):
        return self.target.partition("?")[0]

    @property
    def query(self):
        return self.target.partition("?")[2]

    def fits(self, needs):
        if needs == "up":
            return self.length > 0
        if needs == "down":
            return self.method == "GET"
        if needs == "object":
            return self.method == "GET" and "list-type=" not in self.query and "upload" not in self.query
        if needs == "complete":
            return self.method == "POST" and "uploadId=" in self.query
        return True


@dataclasses.dataclass
class Fault:
    kind: str
    at: float  # where in a body, 0 to 1
    pause_s: float = 0


class Quiet:
    """Does nothing to anybody."""

    def fault(self, _request):
        return None


class Seeded:
    """Faults of one seed: how many there are, which kinds, and storms in which every request has one."""

    def __init__(self, seed, prefix="", silence_s=2.0):
        chance = random.Random(f"faults {seed}")
        self.seed, self.prefix, self.silence_s = seed, prefix, silence_s
        self.share = chance.choice([0.02, 0.05, 0.1, 0.2, 0.35])
        self.kinds = chance.sample(sorted(KINDS), chance.randint(2, len(KINDS)))
        self.storm_from = chance.randint(0, 120) if chance.random() < 0.4 else None
        self.storm_requests = chance.choice([3, 8, 20])
        self.storm_kind = chance.choice(["busy", "reset", "broken", "lost-answer"])
        self.count = 0
        self.seen, self.lies = {}, {}

    def fault(self, request):
        self.count += 1
        name = request.name.replace(self.prefix, "") if self.prefix else request.name
        tries = self.seen[name] = self.seen.get(name, 0) + 1
        chance = random.Random(f"{self.seed} {name} {tries}")
        if self.storm_from is not None and 0 <= self.count - self.storm_from < self.storm_requests:
            return Fault(self.storm_kind, chance.random())
        fitting = [kind for kind in self.kinds if request.fits(KINDS[kind][0])]
        if not fitting or chance.random() >= self.share:
            return None
        kind = chance.choices(fitting, [KINDS[kind][1] for kind in fitting])[0]
        if kind in LIES:
            told = self.lies[name] = self.lies.get(name, 0) + 1
            if told > LIES_MOST:
                return None
        pause = self.silence_s if kind == "silence" else chance.choice([0.001, 0.005, 0.02])
        return Fault(kind, chance.random(), pause)


class Always:
    """One kind of fault for each request that a test picks; the others pass."""

    def __init__(self, kind, picked=lambda request: True, times=None, at=0.5, pause_s=0.0):
        self.made, self.picked, self.left = Fault(kind, at, pause_s), picked, times

    def fault(self, request):
        if self.left == 0 or not request.fits(KINDS[self.made.kind][0]) or not self.picked(request):
            return None
        if self.left is not None:
            self.left -= 1
        return self.made


class Ignores(Quiet):
    """A store that passes over some headers of a request, as some do with conditions. It has to be one that checks no
    signatures: the real one never sees those headers."""

    def __init__(self, *names):
        self.names = {name.lower().encode() for name in names}

    def rewrite(self, head):
        return b"\r\n".join(line for line in head.split(b"\r\n") if line.partition(b":")[0].strip().lower() not in self.names)


class Says:
    """Answers what a test wants said instead of asking the server."""

    def __init__(self, status, code, headers=None, picked=lambda request: True, times=None):
        self.status, self.code, self.headers = status, code, headers or {}
        self.picked, self.left = picked, times

    def fault(self, request):
        if self.left == 0 or not self.picked(request):
            return None
        if self.left is not None:
            self.left -= 1
        return self
