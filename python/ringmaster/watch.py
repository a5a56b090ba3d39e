"""When weights change: behind the inner loop, by every update, and at no other time. A loop that does otherwise would train something,
and the same on all workers or not; it is told so in its first steps.

A tensor of torch counts how often it was written to, so that whoever looks twice knows whether anything happened in between; what is
written past that count (`.data`, numpy's arrays) is seen by some elements of each tensor. Those are looked at in the first steps, and
for a few more where the count moved at a wrong time: to write what is there already is no change.
"""

from .library import Error

CLOSE = 3  # steps of a process in which elements are looked at, too
ELEMENTS = 64  # of each tensor, evenly spread

WITHIN = ("%s was changed in step %d before the inner loop had ended: whatever changes weights, optimizer.step() foremost, belongs behind "
          "the inner loop, and within it only step.add(loss) follows loss.backward()")
BETWEEN = ("%s was changed between connect() and the first round of job.steps(), where nobody looks for it: make or load weights and "
           "states before connect(); what the job goes on from it loads by itself")


class Watch:
    """Of one side's weights. named: [(name, tensor)]; sample(tensor): bytes of some elements; count(): how often any was written to;
    has_gradient(): whether the mean under way is other than zero; patience: updates in a row that may change nothing; advice: for
    who goes beyond that."""

    def __init__(self, named, sample, count, has_gradient, patience, advice):
        self.named, self.sample, self.count, self.has_gradient = named, sample, count, has_gradient
        self.patience, self.advice = patience, advice
        self.close, self.idle, self.counts, self.moved = CLOSE, 0, False, False
        self.mark()

    def mark(self):
        """What is there now is what has to be there at the next look."""
        self.written = self.count()
        self.samples = [self.sample(tensor) for _, tensor in self.named] if self.close or not self.moved else None

    def changed(self):
        """The name of the first that has another value; None."""
        for (name, tensor), sample in zip(self.named, self.samples or []):
            if self.sample(tensor) != sample:
                return name
        return None

    def begin(self):
        name = self.changed()
        if name:
            raise Error(BETWEEN % name)

    def check(self, step):
        """The inner loop ends."""
        written = self.count() != self.written
        if self.samples is None:
            self.close = CLOSE if written else 0  # the next steps tell
            return
        name = self.changed()
        if name:
            raise Error(WITHIN % (name, step))
        self.counts = not self.moved and self.has_gradient()
        self.written = self.count()

    def updated(self):
        """What follows the inner loop has been done."""
        self.close = max(0, self.close - 1)
        if self.moved or self.samples is None:
            return
        self.moved = self.count() != self.written or self.changed() is not None
        self.idle += self.counts and not self.moved
        if self.idle >= self.patience:
            raise Error("%d updates had gradients, and no weight has changed: %s" % (self.idle, self.advice))
