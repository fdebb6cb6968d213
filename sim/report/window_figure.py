"""The figure of a sweep over several windows: a panel per window on one scale, a row per setting, its seeds as a span."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sim.analysis.sweeps.measure import text, unit_of_ticks
from sim.analysis.sweeps.observed import dead, ended
from sim.quantities.results import in_words
from sim.report.charts.chart import Chart, ChartAxis, Panel, chart

if TYPE_CHECKING:
    import pandas as pd

WINDOW = "window"
MOST_WINDOWS, MOST_SETTINGS = 12, 12
_FAILS, _IS_BOUND = "its job fails", "it did not end"
"""Columns beside those of results, whose names have no spaces."""


def per_window(rows: pd.DataFrame, settings: Sequence[str], column: str) -> Chart | None:
    """`rows`: of runs with checkpoints.  None: fewer than two windows, or no value.

    A run without a value is no zero, and one whose job failed has none: the row of its setting says so.  A bound has a ring.
    """
    if WINDOW not in rows:
        return None
    fails = dead(rows)
    rows = rows.assign(**{column: rows[column].astype(float).mask(fails)}).assign(**{_FAILS: fails})
    if not rows[column].notna().any():
        return None
    rows[_IS_BOUND] = rows[column].notna() & ended(rows, column).isna()
    windows = list(dict.fromkeys(rows[WINDOW].dropna()))[:MOST_WINDOWS]
    if len(windows) < 2:
        return None
    names = rows[list(settings)].astype(str).agg(", ".join, axis=1)
    names_drawn = list(dict.fromkeys(names))[:MOST_SETTINGS]
    high = float(rows[column].max())
    ending, size = unit_of_ticks(column, high)
    marks = [
        mark
        for number, window in enumerate(windows)
        for place, name in enumerate(names_drawn)
        for mark in _marks(rows[(rows[WINDOW] == window) & (names == name)], column, size, {"panel": number, "y": place, "series": name})
    ]
    low, top = 0.0 if float(rows[column].min()) >= 0 else None, 1.05 * high / size if high > 0 else None
    titles = [""] * (len(windows) - 1) + [in_words(column)]
    panels = [
        Panel(str(window), ChartAxis(title, ending, low, top), ChartAxis(names=tuple(names_drawn)))
        for window, title in zip(windows, titles, strict=True)
    ]
    return chart(marks, panels)


def _marks(own: pd.DataFrame, column: str, size: float, at: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The marks of one setting in one window: span and mean over seeds, and runs without a value."""
    known = own[column].dropna()
    missing, failed = len(own) - len(known), int(own[_FAILS].sum())
    if len(known):
        bound = "more than " if own[_IS_BOUND].any() else ""
        spread = f" ({text(column, known.min())} to {text(column, known.max())})" if len(known) > 1 else ""
        summary = f"{at['series']}: {bound}{text(column, known.mean())}{spread}, {len(known)} run{'s' if len(known) > 1 else ''}"
        yield {**at, "shape": "span", "x": known.min() / size, "x2": known.max() / size, "text": summary}
        yield {**at, "shape": "ring" if bound else "point", "x": known.mean() / size, "text": summary}
    if missing:
        yield {**at, "shape": "words", "words": f"{'fails' if failed else 'no value'} in {failed or missing} of {len(own)} runs"}
