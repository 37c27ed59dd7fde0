"""What a phase that comes again and again does: each time it is held against the phases right before and after it.

    time      0      20      40      60      80      100
              closed  open    closed  open    closed
    cycle 1   |---------------------|
    cycle 2                   |---------------------|

A cycle's ratio is the value of the open phase to the mean of its two closed neighbours, so what drifts over minutes has no
part in it. Two cycles share a closed phase, so their ratios are not quite independent.
"""

import statistics
from math import comb
from typing import NamedTuple


class Phase(NamedTuple):
    """What a load did in a phase."""

    seconds: float
    count: float
    cpu_us: float

    @property
    def rate(self):
        return self.count / self.seconds if self.seconds else 0.0

    @property
    def cpu_us_each(self):
        return self.cpu_us / self.count if self.count else 0.0


class Cycle(NamedTuple):
    """A value in an open phase and in the closed ones around it."""

    before: float
    open: float
    after: float

    @property
    def closed(self):
        return (self.before + self.after) / 2

    @property
    def ratio(self):
        return self.open / self.closed if self.closed else 0.0


class Typical(NamedTuple):
    """A median, and bounds between which it lies."""

    median: float
    low: float
    high: float

    def __str__(self):
        return f"{self.median:.3f} ({self.low:.3f} to {self.high:.3f})"


def spans(opened, settling, end):
    """The phases of a run, closed ones and open ones in turn: (since, until). `opened`: when the open ones were."""
    edges = [settling, *(at for pair in opened for at in pair), end]
    return list(zip(edges, edges[1:]))


def phase(points, since, until):
    """Points are (time, rate since the one before, nanoseconds of CPU up to now). A second that is not whole between the two
    times belongs to no phase."""
    seconds, count, nanoseconds = 0.0, 0.0, 0.0
    for (began, _, cpu_before), (at, rate, cpu) in zip(points, points[1:]):
        if since <= began and at <= until:
            seconds += at - began
            count += rate * (at - began)
            nanoseconds += cpu - cpu_before
    return Phase(seconds, count, nanoseconds / 1000)


def in_cycles(values):
    """Of the values of closed, open, closed, …, closed phases: the cycles."""
    return [Cycle(*values[at:at + 3]) for at in range(0, len(values) - 2, 2)]


def typical(values):
    """The median, and the two of the values between which the median of all such runs lies with a probability of at least
    95 %, whatever their distribution. Fewer than six cannot say that: then the least and the greatest."""
    ordered = sorted(values)
    count = len(ordered)
    # The median is below the value number `skipped`, from 0 on, if at most so many of the values are below the median.
    skipped, beyond = 0, 1
    while 2 * (beyond + comb(count, skipped + 1)) <= 0.05 * 2**count:
        skipped += 1
        beyond += comb(count, skipped)
    # `beyond` of 2**count outcomes leave it outside on one side.
    return Typical(statistics.median(ordered), ordered[skipped], ordered[count - 1 - skipped])
