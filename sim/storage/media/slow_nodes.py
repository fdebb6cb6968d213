"""Slow nodes, prefixes and disks: random episodes, or a measured trace."""

from __future__ import annotations

from bisect import bisect_right
from fractions import Fraction
from typing import Protocol

from sim.model.job import Distribution
from sim.model.randomness import draw, quantile_table, stream
from sim.model.storage import SlowPlaces, SlowTrace
from sim.storage.network import SCALE, ConstantRateLink, Link

# ---- Random quantities. They are functions of the seed and a name, and so independent of the order of calls.


def sample_distribution(distribution: Distribution, seed: int, *name: str | int, number: int = 0) -> int:
    """Return the random value of a distribution for this name."""
    table = quantile_table(distribution)
    return table[0] if len(table) == 1 else table[uniform(len(table), seed, *name, number=number)]


def uniform(n: int, seed: int, *name: str | int, number: int = 0) -> int:
    """Return a random integer in [0, n) for this name."""
    return draw(stream(seed, *name), number) * n >> 32


# ---- Slowness of a node, prefix or disk over time: alternating healthy and slow episodes, or a measured series.
#
# The history of a node is a function of the seed and the number of the node.  It is drawn only as far as needed.

_FULL_SPEED = Fraction(1)  # divisor of the bandwidth


class Slowness(Protocol):
    """The slowness of one node over time."""

    def at(self, now: int) -> tuple[Fraction, int | None]:
        """Return (divisor of the bandwidth, time of its next change [ns] or None).  Times of calls must not decrease."""


def slowness(options: SlowPlaces, seed: int, node: int) -> Slowness:
    """Return the slowness of one node over time.  If only the first nodes may be slow, others are always at full speed."""
    if options.first is not None and node >= options.first:
        return AtFullSpeed()
    return Episodes(options, seed, node) if options.trace is None else SpeedSeries(options.trace, seed, node)


class AtFullSpeed:
    """A node that is never slow."""

    def at(self, now: int) -> tuple[Fraction, None]:
        return _FULL_SPEED, None


class SlowLink:
    """A link whose bandwidth is divided by the slowness of its node.  `bytes_per_second`: bandwidth at full speed."""

    def __init__(self, bytes_per_second: int, history: Slowness) -> None:
        self._healthy = bytes_per_second * SCALE
        self._history = history

    def bandwidth(self, now: int) -> tuple[int, int | None]:
        factor, until = self._history.at(now)
        return self._healthy * factor.denominator // factor.numerator, until


def node_link(bytes_per_second: int | None, slow: SlowPlaces | None, seed: int, node: int) -> Link | None:
    """Return the link that all reads and writes of a node's disk share, or None if its bandwidth is unlimited."""
    if bytes_per_second is None:
        return None
    return (
        ConstantRateLink(bytes_per_second) if slow is None else SlowLink(bytes_per_second, slowness(slow, seed, node))
    )


class Episodes:
    """Random slow episodes of a node.

    The process is stationary: the node is slow with probability `share` at any time, also at time 0.
    """

    def __init__(self, options: SlowPlaces, seed: int, node: int) -> None:
        self._options = options
        self._key = seed, "slow-node", node
        self._number = 2
        self._slow = uniform(options.share.denominator, *self._key, number=0) < options.share.numerator
        self._until = self._rest() if 0 < options.share < 1 and options.factor > 1 else None

    def at(self, now: int) -> tuple[Fraction, int | None]:
        while self._until is not None and self._until <= now:
            self._slow = not self._slow
            self._until += max(1, sample_distribution(self._distribution(), *self._key, number=self._number))
            self._number += 1
        return (Fraction(self._options.factor) if self._slow else _FULL_SPEED), self._until

    def _distribution(self) -> Distribution:
        """Return the distribution of the length of the current episode.

        Healthy episodes are exponential, with the mean that makes the node slow for `share` of the time.
        """
        if self._slow:
            return self._options.lasts
        share = self._options.share
        return Distribution(round(self._options.lasts.mean * (1 - share) / share), "exponential")

    def _rest(self) -> int:
        """Return the remaining time of the episode at time 0, from the length-biased distribution (inspection paradox)."""
        distribution = self._distribution()
        if distribution.kind == "exponential":  # without memory
            return 1 + sample_distribution(distribution, *self._key, number=1)
        longer = (
            Distribution(round(distribution.mean * (1 + distribution.cv**2)), distribution.kind, distribution.cv)
            if distribution.kind == "lognormal"
            else distribution
        )
        return 1 + uniform(sample_distribution(longer, *self._key, number=1) + 1, *self._key, "rest")


class SpeedSeries:
    """The measured slowness of one machine of a trace, which is repeated from its start at its end.

    If the trace has a given start, nodes are machines in order; otherwise machine and start are random.
    """

    def __init__(self, trace: SlowTrace, seed: int, node: int) -> None:
        machine = trace.machines[self._machine(trace, seed, node)]
        self._starts = [start for start, _ in machine]
        self._factors = [factor for _, factor in machine]
        self._length = trace.length_ns
        self._offset = self._begin(trace, seed, node)

    def at(self, now: int) -> tuple[Fraction, int | None]:
        round_, at = divmod(now + self._offset, self._length)
        i = bisect_right(self._starts, at) - 1
        end = self._starts[i + 1] if i + 1 < len(self._starts) else self._length
        return self._factors[i], round_ * self._length + end - self._offset

    @staticmethod
    def _machine(trace: SlowTrace, seed: int, node: int) -> int:
        machines = len(trace.machines)
        return uniform(machines, seed, "slow-node", node, number=0) if trace.begin_ns is None else node % machines

    @staticmethod
    def _begin(trace: SlowTrace, seed: int, node: int) -> int:
        if trace.begin_ns is not None:
            return trace.begin_ns
        return (uniform(1 << 31, seed, "slow-node", node, number=1) * trace.length_ns) >> 31
