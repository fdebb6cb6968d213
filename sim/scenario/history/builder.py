"""`backtest:` -> the model."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from sim.model.backtest import Backtest, ComparedQuantity, OtherSettings, Quantiles, SeenFailures
from sim.quantities.observed import Kind, of_history
from sim.scenario.history import document as doc

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sim.scenario.text.problems import Reading

_UNIT: dict[Kind, float] = {"duration": 1e6, "size": 1.0, "rate": 1.0}  # in ns, bytes and records per second


def build_backtest(given: doc.Backtest, reading: Reading) -> Backtest:
    """Mistakes go to `reading`."""
    longest = given.longest or []
    if any(after > before for before, after in pairwise(longest)):
        reading.wrong(("backtest", "longest"), "write the longest duration first")
    compared = []
    for quantity, (first, *_) in of_history().items():
        section, kind = getattr(given, doc.field_of(quantity)), first.kind
        if section is None:
            continue
        for side in ("observed", "predicted"):
            _check(getattr(section, side), ("backtest", quantity, side), reading)
        compared.append(
            ComparedQuantity(
                quantity=quantity,
                observed=_quantiles(section.observed, kind),
                predicted=_quantiles(section.predicted, kind),
                vertex=section.vertex or "",
                off=tuple(section.off or ()),
                cause=section.cause or "",
            )
        )
    if given.tail is not None and not given.tail:
        reading.wrong(("backtest", "tail"), "expected more than 0")
    tail = 1.0 if given.tail is None else float(given.tail)
    return Backtest(
        tuple(compared), tuple(duration / 1e6 for duration in longest), tail, given.runs, given.simulated, _other_settings(given, reading),
        _failures(given.failures),
    )  # fmt: skip


def _failures(given: doc.Failures | None) -> SeenFailures | None:
    if given is None:
        return None
    return SeenFailures(
        given.completed, given.failed, given.reason or "", given.predicted_completed, given.predicted_failed, given.job_failures or 0,
        given.ran or 0,
    )  # fmt: skip


def _other_settings(given: doc.Backtest, reading: Reading) -> OtherSettings | None:
    factors = given.other_settings
    if factors is None:
        return None
    p50, p90 = (math.inf if factor is None else float(factor) for factor in (factors.p50, factors.p90))
    if min(p50, p90) < 1:
        reading.wrong(("backtest", "other-settings"), "expected factors of 1 and more")
    return OtherSettings(p50, p90)


def _check(given: Any, path: Sequence[str], reading: Reading) -> None:
    values = [value for value in (given.p50, given.p90, given.max) if value is not None]
    if len(values) != (3 if given.count else 0):
        reading.wrong(tuple(path), "write p50, p90, max and count, or count: 0 alone")
    elif "unlimited" in values or sorted(values) != values:
        reading.wrong(tuple(path), "expected p50 <= p90 <= max")


def _quantiles(given: Any, kind: Kind) -> Quantiles:
    p50, p90, largest = (_number(value, kind) for value in (given.p50, given.p90, given.max))
    return Quantiles(p50, p90, largest, given.count)


def _number(value: Any, kind: Kind) -> float:
    """NaN: there is none, or a mistake that is known already."""
    return math.nan if value is None or value == "unlimited" else float(value) / _UNIT[kind]
