"""When faults happen: a law of the time between them, drawn as a function of the seed (`sim.model.randomness.streams`)."""

from __future__ import annotations

from math import exp, gamma, log, sqrt
from statistics import NormalDist

from sim.model.faults import FaultLaw
from sim.model.randomness.streams import Stream, draw

_SQUARE = 1 << 64


def gap_ns(law: FaultLaw, key: Stream, k: int) -> int:
    """The time from fault k - 1 (or the start) to fault k [ns], at least 1 ns; its mean over k is the law's."""
    u = ((draw(key, 2 * k) << 32) + draw(key, 2 * k + 1) + 0.5) / _SQUARE  # in (0, 1): two draws reach far into the tail
    match law.kind:
        case "constant":
            factor = 1.0
        case "exponential":
            factor = -log(u)
        case "weibull":
            factor = (-log(u)) ** (1 / law.shape) / gamma(1 + 1 / law.shape)
        case "lognormal":
            variance = log(1 + law.cv**2)
            factor = exp(sqrt(variance) * NormalDist().inv_cdf(u) - variance / 2)
    return max(1, round(law.mean_ns * factor))
