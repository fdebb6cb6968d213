"""Observed and predicted quantiles of each quantity, and where they differ by more than repetitions of one run do."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import bdtr

from sim.model.backtest import ComparedQuantity, Quantiles
from sim.quantities.observed import QUANTITIES, Level, Quantity, of_history

LEVELS: dict[Level, float] = {"p50": 0.5, "p90": 0.9}
ENOUGH = 100
"""Checkpoints that show that a tail is shorter than predicted."""
_DOUBT = 0.025
"""On either side of the range in which a quantile of the history lies."""

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Values:
    """Values of one quantity and vertex, sorted."""

    observed: Numbers
    predicted: Numbers


def agreements(observed: pd.DataFrame, predicted: pd.DataFrame) -> list[ComparedQuantity]:
    """A row per quantity and vertex, in the order of reading.  What is 0 on both sides is left out."""
    return [row for own in of_history().values() for quantity in own for row in _of_quantity(quantity, observed, predicted)]


def row_per_quantity(rows: list[ComparedQuantity]) -> list[ComparedQuantity]:
    """A row per quantity: that of the vertex which is off by most or, if none is, where the quantity is largest."""
    by_quantity = groupby(rows, key=lambda row: row.quantity)
    return [max(group, key=lambda row: (bool(row.off), _gap(row) if row.off else 0.0, row.observed.p90)) for _, group in by_quantity]


def tail_of(rows: list[ComparedQuantity]) -> float:
    """Observed / predicted in the tail of checkpoints; 1: no further apart than repetitions are, or too few to show a shorter one."""
    row = next((row for row in rows if row.quantity == "end-to-end"), None)
    if row is None or not row.predicted.count:
        return 1.0
    quantity = QUANTITIES["end_to_end_duration"]
    ratios = [row.observed.p90 / row.predicted.p90] if "p90" in row.off and row.predicted.p90 > 0 else []
    if _differ(quantity, row.observed.largest, row.predicted.largest) and row.predicted.largest > 0:
        ratios.append(row.observed.largest / row.predicted.largest)
    ratio = max(ratios, default=1.0)
    return ratio if ratio > 1 or row.observed.count >= ENOUGH else 1.0


def _of_quantity(quantity: Quantity, observed: pd.DataFrame, predicted: pd.DataFrame) -> Iterator[ComparedQuantity]:
    ours, theirs = (side[(side["quantity"] == quantity.name) & ~side["first"]] for side in (observed, predicted))
    for vertex, rows in ours.groupby("vertex", sort=False):
        values = _Values(_sorted(rows["value"]), _sorted(theirs[theirs["vertex"] == vertex]["value"]))
        if values.observed.any() or values.predicted.any():
            off = tuple(level for level in LEVELS if _is_judged(quantity, level, values) and _is_off(quantity, values, LEVELS[level]))
            yield ComparedQuantity(quantity.history, _quantiles(values.observed), _quantiles(values.predicted), str(vertex), off)


def _is_judged(quantity: Quantity, level: Level, values: _Values) -> bool:
    """A number of the complete history is its own 90 % quantile."""
    return quantity.is_judged and (level == "p50" or len(values.observed) > 1)


def _sorted(values: pd.Series[float]) -> Numbers:
    return np.sort(values.to_numpy(dtype=float))


def _quantiles(values: Numbers) -> Quantiles:
    if not len(values):
        return Quantiles()
    p50, p90, largest = np.quantile(values, [0.5, 0.9, 1.0])
    return Quantiles(float(p50), float(p90), float(largest), len(values))


def _is_off(quantity: Quantity, values: _Values, share: float) -> bool:
    """Whether a predicted quantile lies outside of what the history allows, by more than repetitions differ."""
    if not len(values.predicted):
        return True
    observed, predicted = (float(np.quantile(side, share)) for side in (values.observed, values.predicted))
    low, high = _range(values.observed, share)
    return not low <= predicted <= high and _differ(quantity, observed, predicted)


def _differ(quantity: Quantity, observed: float, predicted: float) -> bool:
    """Whether values lie further apart than those of repetitions, and than the noise of a machine."""
    if abs(predicted - observed) < quantity.noise:
        return False
    if quantity.factor is not None:
        return not observed / quantity.factor <= predicted <= observed * quantity.factor
    return abs(predicted - observed) > quantity.spread * observed


def _range(values: Numbers, share: float) -> tuple[float, float]:
    """Where a quantile lies with 95 % confidence, whatever the distribution; a value that is no sample is exact."""
    count = len(values)
    if count == 1:
        return float(values[0]), float(values[0])
    below = bdtr(np.arange(count), count, share)  # chance that the quantile lies below the next value
    low, high = int(np.searchsorted(below, _DOUBT, side="right")), int(np.searchsorted(below, 1 - _DOUBT))
    return float(values[low - 1]) if low else -math.inf, float(values[high]) if high < count else math.inf


def _gap(row: ComparedQuantity) -> float:
    return max(abs(row.observed.at(level) - row.predicted.at(level)) if row.predicted.count else math.inf for level in row.off)
