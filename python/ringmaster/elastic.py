"""A training loop of one's own as part of an elastic job (`launch.mode: Elastic`).

    job = ringmaster.connect(model=model, optimizer=optimizer, scheduler=scheduler, samples=len(data))
    for step in job.steps():
        for x, y in step.lanes(data):
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            step.add(loss)
        optimizer.step()
        scheduler.step()

A step's batch is cut into lanes, and each worker computes some of them. The trainer beside the program adds up all lanes of all
workers, exactly, and whatever happens to workers meanwhile, the program only ever does the next task that it is given:

* LANE: one round of the inner loop. Random numbers (random, numpy, torch) are seeded for the lane, `.grad` are zeros, float and
  integer buffers are as at the step's begin.
* UPDATE: the inner loop ends, `.grad` hold the mean over all lanes, buffers have taken their mean change. What follows it in the
  outer loop, `optimizer.step()` foremost, runs once for each update and at no other time.
* SAVE and LOAD: the state is written to, or read from, what is shared with the trainer. Unseen, between rounds of either loop.
* END: the outer loop ends where the job is complete. Who is told to go in the middle of a step leaves by SystemExit: what follows
  the loops would be done with a state that is not the last.

So: a worker that lost others in a step is asked for lanes of theirs, or for one of its own once more: the inner loop has more
rounds. A worker that is behind finds an update at once: the inner loop has no round, and the outer one is run as ever. A worker
that is new, or that came out of step, is given another's state, in the midst of the inner loop if need be: the rounds that follow
are those of `step.number`, which then changes. A worker without a lane in a step waits in the inner loop for the update. Nothing
of this is raised, and nothing has to be undone: a state changes by an update or by being loaded, both of them whole. A worker that
comes when all is done has no round of either loop: what follows them can't rely on names that they set.

What decides what the loop does next belongs into the state (`state=`): counters, averages of weights. Plain variables that follow
from the number of rounds go wrong with the first repetition.
"""

import operator
import random
import sys

from . import library
from .library import Error

__all__ = ["connect"]


def seed_everything(seed):
    """Whatever of the usual sources of chance is there."""
    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed([seed & 0xffffffff, seed >> 32])
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(seed)


class Step:
    """One round of the outer loop: its lanes, and what is known of it."""

    def __init__(self, job):
        self._job = job
        self._lanes = None  # None before the inner loop, False within, True behind it
        self._added = True
        self.number = job._task.step  # from 1 on
        self.lane = None  # that is under way
        self.seed = None  # of this lane, or of the update
        self.loss = None  # behind the inner loop: mean over all lanes of all workers

    @property
    def gradients(self):
        """{name: array} for connect(parameters=...): zeros at a lane's begin; behind the inner loop the mean."""
        found = getattr(self._job._side, "gradients", None)
        if found is None:
            raise Error("step.gradients is there with connect(parameters=...), within `for ... in step.lanes():` and behind it in that step")
        return found

    def lanes(self, data=None, collate=None):
        """The samples of each lane, as a DataLoader's batches are; without data their indices.

        data: a dataset with indices, a tensor or array, or a tuple of those. collate: makes a batch of a list of samples."""
        if self._lanes is not None:
            raise Error("step.lanes() was called twice in step %d; make another round of job.steps()" % self.number)
        self._lanes = False
        return self._rounds(self._job._side.reader(data, collate, self._job.samples))

    def _rounds(self, read):
        job = self._job
        while True:
            task = job._task
            if task.kind == library.END:
                job._leave(task)
            self.number, self.seed = task.step, task.seed
            if task.kind == library.UPDATE:
                self.lane, self.loss = None, task.loss
                job._side.apply(job._connection.gradients())
                job._side.watch.check(task.step)
                job._first = False
                seed_everything(task.seed)
                self._lanes = True
                return
            self.lane, self._added = task.lane, False
            job._side.begin(job._connection.gradients())
            seed_everything(task.seed)
            yield read(task.samples[:task.count])
            if not self._added:
                raise Error("step.add(loss) was not called for lane %d of step %d; call it after loss.backward()"
                            % (self.lane, self.number))
            job._advance()

    def add(self, loss):
        """The lane's gradient is there, and this is its mean loss."""
        if self._added:
            raise Error("step.add(loss) belongs once into each round of step.lanes()")
        self._job._side.end()
        self._job._connection.add(float(loss.detach() if hasattr(loss, "detach") else loss))
        self._added = True


class Job:
    """What connect gives; steps() is the outer loop."""

    def __init__(self, side, samples, deterministic):
        self.samples = samples
        self._side = side
        self._connection = library.Connection(samples, side.arithmetic(), deterministic)
        self._task = None
        self._begun = False
        self._first = True  # the state is still the one that the program began with
        for name, count in side.shapes():
            self._connection.gradient(name, count)
        side.put(self._connection)
        side.watch.mark()

    @property
    def count(self):
        """Steps of the job; known from the first round on."""
        return self._task.steps if self._task else None

    def steps(self):
        """A round for each update; ends with the job."""
        if self._begun:
            raise Error("job.steps() was called twice: it goes through the whole job, once")
        self._begun = True
        self._side.begin_loops()
        while True:
            self._side.settle()
            self._side.watch.mark()
            task = self._advance()
            if task.kind == library.END:
                if task.why or self._first:  # what follows the loops would be done with first weights, where the job was over before
                    self._leave(task)
                return
            step = Step(self)
            yield step
            if step._lanes is not True:
                raise Error("step %d has no gradient yet: let the loop over step.lanes() run to its own end, without break"
                            % step.number)
            self._side.check_update()

    def report(self, key, value):
        """Puts a number under this name into this worker's log, with the step (level info). The loss needs no report."""
        self._connection.report(key, float(value))

    def _advance(self):
        """The next task that is a loop's; all others are done on the way. Signals' handlers run here, between AGAINs."""
        while True:
            task = self._task = self._connection.next()
            if task.kind == library.SAVE:
                self._side.put(self._connection)
            elif task.kind == library.LOAD:
                self._load()
            elif task.kind != library.AGAIN:
                return task

    def _load(self):
        try:
            self._side.load(self._connection)
        except Exception as why:
            self._connection.fail("the state can't be loaded: %s" % why)
            raise
        self._first = False
        self._side.settle()
        self._side.watch.mark()

    @staticmethod
    def _leave(task):
        raise SystemExit("ringmaster: " + task.why.decode(errors="replace") if task.why else 0)


def connect(*, model=None, optimizer=None, scheduler=None, parameters=None, state=None, samples=None, deterministic=False):
    """The job that runs this program.

    With torch: model, its optimizer, and its scheduler if there is one; all as they are before the first step, the same on every
    worker: seed before building the model. state: {name: whatever has state_dict() and load_state_dict()}, further state.
    With numpy: parameters, {name: array}, and state, a dict of arrays, numbers and strings, which is changed in place.

    samples: how many the data set has. deterministic: the same lane computed twice, here or on another worker, has the same bits, so
    workers audit each other: they compute a lane of another's now and then, and who computes otherwise than most is named.
    """
    try:
        samples = operator.index(samples)
    except TypeError:
        raise Error("tell connect() how many samples the data set has: samples=len(data)") from None
    if (model is None) == (parameters is None):
        raise Error("tell connect() either model=, a torch.nn.Module, or parameters=, a dict of numpy arrays")
    if model is not None:
        from .with_torch import Side
        return Job(Side(model, optimizer, scheduler, state or {}), samples, deterministic)
    if optimizer is not None or scheduler is not None:
        raise Error("optimizer= and scheduler= go with model=; beside parameters= their state belongs into state=")
    from .with_numpy import Side
    return Job(Side(parameters, state if state is not None else {}), samples, deterministic)
