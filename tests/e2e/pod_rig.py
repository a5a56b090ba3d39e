"""A job's programs as a cluster runs them, without the cluster: a coordinator and workers started one by one, each
with an address of its own on this machine, and one name that stands for the coordinator.

The name is looked up in a hosts file that is bound over /etc/hosts in a mount namespace of each process, so
that it may stand for another address from one moment to the next, as a Service does."""

import contextlib
import http.client
import itertools
import json
import os
import queue
import re
import secrets
import signal
import subprocess
import threading
import time
import uuid
from pathlib import Path

import rig

NAME = "tiny-coordinator"
PORT = 7070
PAGES = 7071
METRICS = 7072  # of the coordinator, which has nothing else there
NETS = itertools.count(os.getpid() % 200 * 100)


def can_be():
    """Whether this machine lets a test have mount namespaces."""
    return subprocess.run(["unshare", *namespace_flags(), "true"], capture_output=True, check=False).returncode == 0


def namespace_flags():
    return ["--mount"] if os.geteuid() == 0 else ["--map-root-user", "--mount"]


def spec_told_by(run):
    """The effective spec of a job file as `ringmaster run` hands it to its coordinator."""
    pid = run.read_until("started")["coordinatorPid"]
    words = Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8").split("\0")
    text = Path(words[words.index("--job") + 1]).read_text(encoding="utf-8")
    assert run.wait() == 0, run.tail()
    return text


def spec_of(launch, job, env=None):
    """The same, and the weights' hash."""
    run = launch(job, env=env)
    return spec_told_by(run), run.the("complete")["weightsSha256"]


SPECS = {}  # by the number of steps: text, weights' hash, uri


@contextlib.contextmanager
def made_pods(launch, tmp_path, tmp_path_factory, steps):
    """make(steps): programs of a job, none started yet, cleaned up in the end; `sha256` is of the run that nobody disturbed.

    That run has `steps` steps and is made once a process; of any other number of them there is none."""
    made = []

    def make(wanted=steps):
        if steps not in SPECS:
            job = rig.make_job(tmp_path_factory.mktemp("alone"), workers__min=2, workers__max=4, workers__target=3,
                               trainer__steps=steps, elasticity__joinWindow="2s", elasticity__lostAfter="5s")
            SPECS[steps] = *spec_of(launch, job), f"file://{job.parent}/checkpoints"
        text, sha256, uri = SPECS[steps]
        assert uri in text
        spec = json.loads(text.replace(uri, f"file://{tmp_path}/checkpoints"))
        spec["spec"]["trainer"]["steps"] = wanted
        group = Pods(tmp_path / "pods", json.dumps(spec))
        group.sha256 = sha256 if wanted == steps else None
        made.append(group)
        return group

    try:
        yield make
    finally:
        for group in made:
            group.clean_up()


class Program:
    """One process as its container would be: what it logged, what it left behind, how it ended."""

    flags = staticmethod(namespace_flags)  # of unshare

    def __init__(self, pods, title, words, hosts, more=None, log_level="info", over=(), image=None):
        """image: another root (stranger_rig.Image) with a bundle in it, instead of this machine's own and the build's programs."""
        self.title, self.lines, self.queue = title, [], queue.Queue()
        self.word_file = word = pods.folder / f"{title}.word"
        env = {k: v for k, v in os.environ.items() if not k.startswith("RINGMASTER_")}
        env.update({rig.MARK: pods.mark, "RINGMASTER_LOG": log_level, **pods.env, **(more or {})})
        binds = [(hosts, "/etc/hosts"), *over]
        mounts, agent = [f"mount --bind {what} {where}" for what, where in binds], [str(rig.BIN / "ringmaster-agent")]
        if image:
            self.word_file, word = image.out / self.word_file.name, f"/out/{self.word_file.name}"
            mounts, agent = image.mounts(binds), image.enter()
        inside = " && ".join([*mounts, "exec \"$@\""])
        self.process = subprocess.Popen(
            ["unshare", *self.flags(), "sh", "-c", inside, "sh", *agent, *words, "--termination-log", str(word)],
            env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.threads = [threading.Thread(target=self._read, args=(stream,), daemon=True)
                        for stream in (self.process.stdout, self.process.stderr)]
        for thread in self.threads:
            thread.start()

    def _read(self, stream):
        for line in stream:
            self.lines.append(line.decode(errors="replace"))

    @property
    def pid(self):
        return self.process.pid  # unshare and sh have become the program

    def signal(self, number):
        self.process.send_signal(number)

    def wait(self):
        try:
            code = self.process.wait(timeout=rig.DEADLINE_S)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.title} does not end: {self.text()[-6000:]}") from None
        for thread in self.threads:
            thread.join(timeout=10)
        for word in ("Sanitizer", "runtime error:"):
            assert word not in self.text(), self.text()[-6000:]
        return code

    def text(self):
        return "".join(self.lines)

    def last_word(self):
        text = self.word_file.read_text(encoding="utf-8")
        assert len(text.encode()) <= 4096
        return json.loads(text)


class Pods:
    """Programs of one job. Addresses are 127.x.y.z of a range of its own, so that several tests may run at a time."""

    kinds = {}  # "worker": another class than Program

    def __init__(self, folder, spec, env=None):
        self.folder, self.mark, self.env = Path(folder), uuid.uuid4().hex, env or {}
        self.folder.mkdir(parents=True, exist_ok=True)
        self.spec, self.key = self.folder / "spec.json", self.folder / "key"
        self.spec.write_text(spec, encoding="utf-8")
        self.key.write_text(secrets.token_hex(32), encoding="ascii")
        self.hosts = self.folder / "hosts"
        self.programs = []
        net = next(NETS)
        self.net = f"127.{100 + net // 250 % 100}.{1 + net % 250}"
        self.hosts.write_text("127.0.0.1 localhost\n", encoding="ascii")
        self.next_host = 1
        self.coordinator_ip = None

    def new_ip(self):
        self.next_host += 1
        return f"{self.net}.{self.next_host}"

    def point_name_at(self, ip):
        # in place: the file is bound into namespaces
        self.hosts.write_text(f"127.0.0.1 localhost\n{ip} {NAME}\n", encoding="ascii")

    def start(self, title, *words, hosts=None, env=None, over=(), image=None):
        program = self.kinds.get(title.split("-")[0], Program)(self, title, list(map(str, words)), hosts or self.hosts, env, over=over, image=image)
        self.programs.append(program)
        return program

    def coordinator(self, term=1, named=True, **more):
        ip = self.new_ip()
        program = self.start(f"coordinator-{term}", "coordinate", "--pod", "--term", term, "--job", self.spec,
                             "--key-file", more.get("key", self.key), "--listen", ip, "--port", PORT,
                             "--coordinator", f"{NAME}:{PORT}", *more.get("words", ()),
                             env={"RINGMASTER_POD_JOB": "the-job-k2v4x", "RINGMASTER_POD_METRICS_PORT": str(METRICS), **more.get("env", {})})
        program.ip = ip
        if named:
            self.point_name_at(ip)
            self.coordinator_ip = ip
        return program

    def worker(self, index, attempt=1, key=None, grace=120, env=None, over=(), image=None):
        """over: (folder, path) of what stands at a path for this one alone."""
        ip = self.new_ip()
        program = self.start(f"worker-{index}-{attempt}", "work", "--pod", "--worker", index, "--attempt", attempt,
                             "--coordinator", f"{NAME}:{PORT}", "--key-file", key or self.key, "--listen", ip,
                             "--grace", grace, env=env, over=over, image=image)
        program.ip, program.index, program.attempt = ip, index, attempt
        return program

    def get(self, path, ip=None, port=PORT):
        connection = http.client.HTTPConnection(ip or self.coordinator_ip, port, timeout=60)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            body = answer.read().decode()
            assert answer.status == 200, (answer.status, body)
            return body
        finally:
            connection.close()

    def status(self, after=None, ip=None):
        return json.loads(self.get("/v1/status" + (f"?after={after}" if after is not None else ""), ip))

    def until(self, condition, what):
        """Follows the status by its revisions to the first one of which the condition holds."""
        end = time.monotonic() + rig.DEADLINE_S
        status, after = None, None
        while time.monotonic() < end:
            try:
                status = self.status(after)
            except (OSError, http.client.HTTPException):  # it is not up, or is about to be another one
                coordinators = [p for p in self.programs if p.title.startswith("coordinator")]
                assert coordinators[-1].process.poll() is None, f"never: {what}; it has ended\n{self.tail()}"
                time.sleep(0.05)
                after = None
                continue
            if condition(status):
                return status
            after = status["revision"]
        raise AssertionError(f"never: {what}; newest status: {json.dumps(status)[:3000]}\n{self.tail()}")

    def until_step(self, step):
        def reached(status):
            return status["progress"]["step"] >= step
        end = time.monotonic() + rig.DEADLINE_S
        while time.monotonic() < end:  # steps are not news each time: asked for in turn
            status = self.until(lambda _: True, "a status")
            if reached(status):
                return status
            time.sleep(0.01)
        raise AssertionError(f"never: step {step}\n{self.tail()}")

    def ring(self, *members):
        """Waits until a ring of these (worker, attempt) trains."""
        wanted = sorted(members)

        def stands(status):
            return sorted((m["worker"], m["attempt"]) for m in status["ring"]["members"]) == wanted
        return self.until(stands, f"a ring of {wanted}")

    def trainers(self):
        """Pids of living trainers, by worker index."""
        found = {}
        for pid in rig.marked_processes(self.mark):
            try:
                words = Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8").split("\0")
                parent = int(re.search(r"PPid:\s+(\d+)", Path(f"/proc/{pid}/status").read_text(encoding="utf-8")).group(1))
            except (OSError, AttributeError):
                continue
            for program in self.programs:
                if words[0] == "ringmaster-trainer" and program.pid == parent:
                    found[(program.index, program.attempt)] = pid
        return found

    def tail(self):
        return "\n".join(f"--- {p.title} (exit {p.process.poll()})\n{p.text()[-2000:]}" for p in self.programs)

    def clean_up(self):
        for program in self.programs:
            if program.process.poll() is None:
                program.process.send_signal(signal.SIGKILL)
        for pid in rig.marked_processes(self.mark):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        for program in self.programs:
            program.process.wait(timeout=30)
