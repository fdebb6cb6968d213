"""Closed formulas for the time between checkpoints, to compare with a simulated optimum.  All times share any unit.

`cost`: processing time lost to a checkpoint; `mtbf`: mean time between random failures.  The formulas know neither queues nor recovery
that depends on load; the simulation does.
"""

from __future__ import annotations

from math import exp, sqrt


def young(cost: float, mtbf: float) -> float:
    """First order: sqrt(2 C M) (Young, CACM 17, 1974)."""
    return sqrt(2 * cost * mtbf)


def daly(cost: float, mtbf: float) -> float:
    """Higher order in C / M, without the checkpoint itself (Daly, FGCS 22, 2006); for C >= 2 M the mean time between failures."""
    if cost >= 2 * mtbf:
        return mtbf
    x = cost / (2 * mtbf)
    return sqrt(2 * cost * mtbf) * (1 + sqrt(x) / 3 + x / 9) - cost


def renewal(cost: float, mtbf: float) -> float:
    """The interval, checkpoint included, that maximises (T - c) / (exp(T / M) - 1): work kept per time with exponential failures."""
    from scipy.special import lambertw

    rate = 1 / mtbf
    return float((rate * cost + 1 + lambertw(-exp(-rate * cost - 1)).real) / rate)
