"""When faults happen: a law of the time between them, drawn as a function of the seed (`sim.model.randomness.streams`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, gamma, log, sqrt
from statistics import NormalDist

from sim.model.catalogs.catalog import Catalog
from sim.model.faults import FaultLaw
from sim.model.randomness.streams import Stream, draw

_SQUARE = 1 << 64


@dataclass(frozen=True, slots=True)
class FaultKind:
    """A law of the time from one fault to the next.  The section `every:`, its schema and the times read the record."""

    name: str  # as a scenario writes it
    sentence: str
    factor: Callable[[float, FaultLaw], float]  # the time at a share of the law, as a multiple of its mean
    parameter: str = ""  # the field of FaultLaw that is written beside the mean


def _weibull(u: float, law: FaultLaw) -> float:
    return float((-log(u)) ** (1 / law.shape) / gamma(1 + 1 / law.shape))


def _lognormal(u: float, law: FaultLaw) -> float:
    variance = log(1 + law.cv**2)
    return exp(sqrt(variance) * NormalDist().inv_cdf(u) - variance / 2)


FAULT_KINDS: Catalog[FaultKind] = Catalog(
    FaultKind("exponential", "Mean.", lambda u, _: -log(u)),
    FaultKind("weibull", "Faults that come in bursts, or wear out.", _weibull, "shape"),
    FaultKind("lognormal", "A long tail.", _lognormal, "cv"),
)
"""A constant time is none of them: it is written alone."""


def gap_ns(law: FaultLaw, key: Stream, k: int) -> int:
    """The time from fault k - 1 (or the start) to fault k [ns], at least 1 ns; its mean over k is the law's."""
    u = ((draw(key, 2 * k) << 32) + draw(key, 2 * k + 1) + 0.5) / _SQUARE  # in (0, 1): two draws reach far into the tail
    factor = 1.0 if law.kind == "constant" else FAULT_KINDS[law.kind].factor(u, law)
    return max(1, round(law.mean_ns * factor))
