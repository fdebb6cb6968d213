"""The history of an imported job beside its simulation: what `import` compared, as a block of a page."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from sim.analysis.number_texts import amount_text
from sim.analysis.section import TextTable
from sim.quantities.observed import of_history
from sim.report.figures import SMALL, style
from sim.report.page import Block
from sim.report.svg import COLOURS, GRID, INK, figure
from sim.scenario.history.verdict import agreement_text, verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sim.model.backtest import Backtest, ComparedQuantity, Quantiles


def history(backtest: Backtest) -> Block:
    """Quantiles of the history and of the simulation, quantity by quantity."""
    header = ["", "observed p50", "observed p90", "observed longest", "predicted p50", "predicted p90", "predicted longest", "off by"]
    rows = [[title(row), *_numbers(row, row.observed), *_numbers(row, row.predicted), _off(row)] for row in backtest.compared]
    sentence = verdict(backtest)
    return Block(
        "The job as it is, beside its history",
        f"{sentence[0].upper()}{sentence[1:]}. {_causes(backtest)}".strip(),
        TextTable("", header, rows),
        figure=spans(backtest),
        caption="Durations from their median (dot) over the 90th percentile (bar) to the longest, observed and predicted.",
    )


def title(row: ComparedQuantity) -> str:
    own = of_history()[row.quantity]
    named = own[0].title if len(own) == 1 else row.quantity
    named = f"{named[0].upper()}{named[1:]}"
    return f"{named}, {row.vertex}" if row.vertex else named


def spans(backtest: Backtest) -> Figure | None:
    """A line per quantity and side.  None: the history has no durations."""
    rows = [row for row in backtest.compared if of_history()[row.quantity][0].kind == "duration" and row.observed.count]
    if not rows:
        return None
    drawn = figure(1.1 + 0.45 * len(rows))
    axes = drawn.subplots()
    for i, (side, colour, shift) in enumerate((("observed", COLOURS[0], 0.16), ("predicted", COLOURS[1], -0.16))):
        for k, row in enumerate(rows):
            quantiles = row.observed if side == "observed" else row.predicted
            if not quantiles.count:
                continue
            y = len(rows) - 1 - k + shift
            axes.plot(np.array([quantiles.p50, quantiles.largest]) / 1e3, [y, y], "-", color=colour, lw=2, label=side if k == 0 else None)
            axes.plot(quantiles.p50 / 1e3, y, "os"[i], color=colour, ms=5)
            axes.plot(quantiles.p90 / 1e3, y, "|", color=colour, ms=9, mew=2)
    style(axes, "")
    axes.set_yticks(range(len(rows)), [title(row) for row in reversed(rows)])
    axes.set_xlim(left=0)
    axes.set_xlabel("seconds", fontsize=SMALL, color=INK)
    axes.grid(visible=True, axis="x", color=GRID, lw=0.6)
    drawn.legend(loc="outside lower left", ncols=2, frameon=False, fontsize=SMALL, labelcolor=INK)
    return drawn


def _numbers(row: ComparedQuantity, quantiles: Quantiles) -> Iterator[str]:
    for value in (quantiles.p50, quantiles.p90, quantiles.largest):
        yield "-" if math.isnan(value) else amount_text(value, of_history()[row.quantity][0].kind)


def _off(row: ComparedQuantity) -> str:
    return "; ".join(agreement_text(row, level).removeprefix(f"{row.quantity} ") for level in row.off)


def _causes(backtest: Backtest) -> str:
    return " ".join(f"{title(row)}: {row.cause.rstrip('.')}." for row in backtest.off if row.cause)
