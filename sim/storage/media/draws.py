"""Random quantities of storage: functions of the seed and of names, for any caller and in any order."""

from __future__ import annotations

from sim.model.job import Distribution
from sim.model.randomness.quantiles import quantile_table
from sim.model.randomness.streams import draw, stream


def drawn(law: Distribution, seed: int, *name: str | int, number: int = 0) -> int:
    """The value of a law for this name."""
    table = quantile_table(law)
    return table[0] if len(table) == 1 else table[uniform(len(table), seed, *name, number=number)]


def uniform(n: int, seed: int, *name: str | int, number: int = 0) -> int:
    """One of 0 .. n - 1."""
    return draw(stream(seed, *name), number) * n >> 32
