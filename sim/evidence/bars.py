"""The bars that predictions must meet, and whether they do: a row per bar.

A row of the truth table is a recording and a vertex.  Durations that are noise on both sides are left out: they would count as exact and
hide the others.  `sim.quantities.observed` has the bars.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pandas as pd

from sim.evidence.errors import noise, relative_errors
from sim.quantities.observed import QUANTITIES, Bar, Level, Quantity
from sim.recordings.source.graph import RecordedVertex, is_read

_HIGH = 500.0
"""Flink's web UI calls a task back-pressured HIGH from half of the time on [ms/s]."""
_WORST = 2.5
"""The 90 % quantile of an error may be this many times the bar of its median."""
_ABSENT = 1e6
"""The error if only one of prediction and observation is 0."""
_ENOUGH = 0.9
"""Share of recordings that must agree, for errors without a meaningful median."""


Expected = Mapping[Bar, tuple[str, ...]]
"""Bar -> the quantities that it is about."""


def _collected(bars_of: Callable[[Quantity], tuple[Bar, ...]]) -> Expected:
    found: dict[Bar, tuple[str, ...]] = {}
    for quantity in QUANTITIES.values():
        for bar in bars_of(quantity):
            found[bar] = (*found.get(bar, ()), quantity.name)
    return found


BARS = _collected(lambda quantity: quantity.bars)
MEASURED_BARS = _collected(lambda quantity: quantity.measured_bars)
"""Measured jobs have wider bars: work, records and state vary, the machine is not quiet, and all was inferred."""


def back_pressured(table: pd.DataFrame) -> set[str]:
    """Recordings with a vertex that was back-pressured for half of the time."""
    shares = table[table["quantity"] == "backPressuredTimeMsPerSecond"]
    return set(shares[shares["observed_p50"] >= _HIGH]["recording"])


def bars(table: pd.DataFrame, graphs: Mapping[str, Sequence[RecordedVertex]], expected: Expected = BARS) -> pd.DataFrame:
    """A row per bar that applies: what, where, bar, rows, reached (median error, or share of rows), p90 (of errors), met.

    `graphs`: the vertices of each recording of the truth table.
    """
    waiting, found = back_pressured(table), []
    for bar, names in expected.items():
        rows = table[table["quantity"].isin(names)]
        if bar.runs == "back-pressured":
            rows = rows[rows["recording"].isin(waiting)]
        chosen = _VERTICES[bar.vertices]
        kept = [chosen(graphs[name], vertex) for name, vertex in rows[["recording", "vertex"]].itertuples(index=False, name=None)]
        rows = _telling(rows[pd.Series(kept, index=rows.index, dtype=bool)], bar.level)
        if len(rows):
            found.append((bar.what, _where(bar), _limit(bar), len(rows), *_reached(bar, rows)))
    return pd.DataFrame(found, columns=["what", "where", "bar", "rows", "reached", "p90", "met"])


def _telling(rows: pd.DataFrame, level: Level) -> pd.DataFrame:
    """The rows that are neither 0 nor noise on both sides."""
    largest = rows[[f"observed_{level}", f"predicted_{level}"]].max(axis=1)
    return rows[(largest > 0) & (largest >= noise(rows))]


def _reached(bar: Bar, rows: pd.DataFrame) -> tuple[float, float, bool]:
    """(median error or share of rows that agree, 90 % quantile of errors or NaN, whether the bar is met)."""
    if bar.kind in ("error", "median"):
        errors = relative_errors(rows, bar.level).abs().fillna(_ABSENT)
        if bar.kind == "median":
            errors = errors.groupby(rows["recording"]).median()  # of its vertices
            return float(errors.median()), float(errors.quantile(0.9)), bool(errors.median() <= bar.limit)
        median, p90 = float(errors.median()), float(errors.quantile(0.9))
        return median, p90, median <= bar.limit and p90 <= _WORST * bar.limit
    difference = (rows["predicted_p50"] - rows["observed_p50"]).abs()
    if bar.kind == "factor":
        ratio = rows["predicted_p50"] / rows["observed_p50"]
        agrees = ratio.between(1 / bar.limit, bar.limit) | (difference < noise(rows))
        per_recording = agrees.groupby(rows["recording"]).mean()  # share of the recording's vertices
        return float(per_recording.mean()), float("nan"), bool(per_recording.mean() >= _ENOUGH)
    agrees = difference <= bar.limit
    return float(agrees.mean()), float("nan"), bool(agrees.mean() >= (1.0 if bar.kind == "exact" else _ENOUGH))


def _limit(bar: Bar) -> str:
    if bar.kind == "error":
        return f"median <= {bar.limit:.0%}, p90 <= {_WORST * bar.limit:.1%}"
    if bar.kind == "median":
        return f"median over runs <= {bar.limit:.0%}"
    if bar.kind == "exact":
        return "exact"
    return f"{_ENOUGH:.0%} within {f'a factor of {bar.limit:g}' if bar.kind == 'factor' else f'{bar.limit:g}'}"


def _where(bar: Bar) -> str:
    """'back-pressured runs', 'ends', 'all runs'."""
    return {"all": f"{bar.runs} runs", "ends": "vertices without readers", "symmetric": "vertices of one even input"}[bar.vertices]


def _symmetric(graph: Sequence[RecordedVertex], name: str | None) -> bool:
    """Whether all barriers take equal paths: one input, and equal shares of all subtasks, here and upstream."""
    inputs = next(len(vertex.inputs) for vertex in graph if vertex.id == (name or ""))
    return inputs == 1 and all(vertex.is_even for vertex in graph)


_VERTICES: Mapping[str, Callable[[Sequence[RecordedVertex], str | None], bool]] = {
    "all": lambda _graph, _vertex: True,
    "ends": lambda graph, vertex: not is_read(graph, vertex or ""),
    "symmetric": _symmetric,
}
