"""The history of an imported job beside its simulation: what `import` compared, as a block of a page."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sim.analysis.number_texts import amount_text
from sim.analysis.section import TextTable
from sim.quantities.observed import of_history
from sim.report.charts.chart import Chart, ChartAxis, Panel, chart
from sim.report.page import Block
from sim.scenario.history.verdict import agreement_text, verdict

if TYPE_CHECKING:
    from sim.model.backtest import Backtest, ComparedQuantity, Quantiles


def history(backtest: Backtest) -> Block:
    """Quantiles of the history and of the simulation, quantity by quantity."""
    header = ["", "observed p50", "observed p90", "observed longest", "predicted p50", "predicted p90", "predicted longest", "off by"]
    rows = [[title(row), *_numbers(row, row.observed), *_numbers(row, row.predicted), _off(row)] for row in backtest.compared]
    if not any(row[-1] for row in rows):
        header, rows = header[:-1], [row[:-1] for row in rows]
    sentence = verdict(backtest)
    return Block(
        "The job as it is, beside its history",
        f"{sentence[0].upper()}{sentence[1:]}. {_causes(backtest)}".strip(),
        TextTable("", header, rows),
        chart=spans(backtest),
        caption="Durations from their median (dot) over the 90th percentile (bar) to the longest, observed and predicted.",
    )


def title(row: ComparedQuantity) -> str:
    own = of_history()[row.quantity]
    named = own[0].title if len(own) == 1 else row.quantity
    named = f"{named[0].upper()}{named[1:]}"
    return f"{named}, {row.vertex}" if row.vertex else named


_ROW = 40.0
"""Pixels: a row has two lines."""


def spans(backtest: Backtest) -> Chart | None:
    """A line per quantity and side.  None: the history has no durations."""
    rows = [row for row in backtest.compared if of_history()[row.quantity][0].kind == "duration" and row.observed.count]
    if not rows:
        return None
    marks: list[dict[str, Any]] = []
    for side, shift in (("observed", -0.16), ("predicted", 0.16)):
        for place, row in enumerate(rows):
            found = row.observed if side == "observed" else row.predicted
            if not found.count:
                continue
            at = {"series": side, "y": place + shift, "text": f"{title(row)}, {side}: {', '.join(_levels(row, found))}"}
            marks += [
                at | {"shape": "span", "x": found.p50 / 1e3, "x2": found.largest / 1e3},
                at | {"shape": "tick", "x": found.p90 / 1e3}, at | {"shape": "point", "x": found.p50 / 1e3},
            ]  # fmt: skip
    return chart(
        marks, [Panel("", ChartAxis("seconds", low=0.0), ChartAxis(names=tuple(title(row) for row in rows)), height=_ROW * len(rows))]
    )


def _levels(row: ComparedQuantity, found: Quantiles) -> Iterator[str]:
    for name, text in zip(("median", "90th percentile", "longest"), _numbers(row, found), strict=True):
        yield f"{name} {text}"


def _numbers(row: ComparedQuantity, quantiles: Quantiles) -> Iterator[str]:
    for value in (quantiles.p50, quantiles.p90, quantiles.largest):
        yield "-" if math.isnan(value) else amount_text(value, of_history()[row.quantity][0].kind)


def _off(row: ComparedQuantity) -> str:
    return "; ".join(agreement_text(row, level).removeprefix(f"{row.quantity} ") for level in row.off)


def _causes(backtest: Backtest) -> str:
    return " ".join(f"{title(row)}: {row.cause.rstrip('.')}." for row in backtest.off if row.cause)
