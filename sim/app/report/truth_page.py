"""The page of `validate`: predictions compared with recordings, and the error of each quantity."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from sim.model.quantities import QUANTITIES
from sim.results.charts import INK, Chart, ChartAxis, Panel, chart
from sim.results.formats import TextTable, bare_text
from sim.results.page import Block, Page

if TYPE_CHECKING:
    import pandas as pd

_LARGEST = 100.0
"""Error [%] at the edge of the chart; larger errors are drawn there."""
_MAX_ROWS = 400


def truth_page(table: pd.DataFrame, units: Mapping[str, str], notes: list[str], command: str) -> Page:
    """Return the page.

    `table`: a row per recording, quantity and vertex, from `sim.jobs.evidence`.  `units`: unit of each quantity.
    """
    nonzero = table[(table["observed_p50"] != 0) | (table["predicted_p50"] != 0)]
    known = nonzero[np.isfinite(nonzero["relative_error"])]
    recordings = list(dict.fromkeys(table["recording"]))
    per_quantity = known.assign(size=known["relative_error"].abs()).groupby("quantity", sort=False)["size"]
    rows = [
        [
            quantity_words(str(name)),
            str(len(sizes)),
            f"{100 * sizes.median():.1f} %",
            f"{100 * sizes.quantile(0.9):.1f} %",
        ]
        for name, sizes in per_quantity
    ]
    duration = known[known["quantity"] == "end_to_end_duration"]["relative_error"].abs()
    verdict = (
        f"{len(recordings)} recording{'s' if len(recordings) > 1 else ''}, {len(known)} quantities. "
        + (f"Checkpoint durations are off by {100 * duration.median():.1f} % in the median." if len(duration) else "")
    ).strip()
    blocks = [
        Block("How far off, by quantity", table=TextTable("", ["", "values", "median error", "90 % quantile"], rows)),
        Block(
            "Every error",
            chart=errors(known),
            caption="A mark per recording and vertex. Right of the middle: predicted too much.",
        ),
        Block("Observed and predicted values", table=_rows(nonzero, units), text=_left_out(len(nonzero))),
    ]
    return Page(
        "Predictions compared with recordings",
        "How far off are predictions from recordings of real jobs?",
        verdict,
        blocks,
        notes,
        command,
    )


def errors(known: pd.DataFrame) -> Chart | None:
    """Chart relative errors: a row per quantity, a mark per recording and vertex.  Returns None without values."""
    names = list(dict.fromkeys(known["quantity"]))
    if not names:
        return None
    marks: list[dict[str, Any]] = [{"series": "no error", "shape": "rule", "x": 0.0}]
    for row in known.to_dict("records"):
        title, percent = quantity_words(str(row["quantity"])), 100 * float(row["relative_error"])
        text = f"{row['recording']}, {title} {row['vertex'] or ''}: {percent:+.1f} %"
        marks.append(
            {
                "series": "value",
                "x": float(np.clip(percent, -_LARGEST, _LARGEST)),
                "y": names.index(row["quantity"]),
                "text": text,
            }
        )
    axis = ChartAxis("error [%], larger ones at the edge", low=-1.06 * _LARGEST, high=1.06 * _LARGEST)
    rows = ChartAxis(names=tuple(quantity_words(str(name)) for name in names))
    return chart(marks, [Panel("", axis, rows)], colours={"no error": INK, "value": 0})


def quantity_words(name: str) -> str:
    """Return the title of a quantity, e.g. "records out per second" for numRecordsOutPerSecond; a note in brackets is kept."""
    stem, _, note = name.partition(" ")
    return f"{QUANTITIES[stem].title} {note}".strip()


def _rows(nonzero: pd.DataFrame, units: Mapping[str, str]) -> TextTable:
    header = [
        "recording",
        "quantity",
        "vertex",
        "unit",
        "observed median",
        "predicted median",
        "predicted 10 % to 90 %",
        "error",
    ]
    rows = [
        [
            str(row["recording"]),
            quantity_words(str(row["quantity"])),
            str(row["vertex"] or ""),
            units[str(row["quantity"])],
            bare_text(row["observed_p50"]),
            bare_text(row["predicted_p50"]),
            f"{bare_text(row['predicted_p10'])} to {bare_text(row['predicted_p90'])}",
            _percent(row["relative_error"]),
        ]
        for row in nonzero.head(_MAX_ROWS).to_dict("records")
    ]
    return TextTable("", header, rows)


def _left_out(count: int) -> str:
    return f"The first {_MAX_ROWS} of {count} rows; --json gives all." if count > _MAX_ROWS else ""


def _percent(value: float) -> str:
    return f"{100 * value:+.1f} %" if np.isfinite(value) else "-"
