"""The critical path of one checkpoint as a chart: a bar per part, from the trigger to the last acknowledgement."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.explain.text import duration
from sim.report.charts.chart import Chart, ChartAxis, Panel, chart
from sim.report.figures import PHASE_COLOURS, phase_of

if TYPE_CHECKING:
    from sim.explain.account import Account

_IN_MS = 1e9
"""A shorter path [ns] is drawn in milliseconds."""


def time_axis(longest_ns: float) -> tuple[ChartAxis, float]:
    """An axis since the trigger, and the ns of its unit."""
    unit_ns, word = (1e6, "milliseconds") if longest_ns < _IN_MS else (1e9, "seconds")
    return ChartAxis(f"{word} since the trigger", low=0.0, high=max(longest_ns, 1) / unit_ns), unit_ns


def waterfall(account: Account) -> Chart:
    """An account with lines.  What comes after the last acknowledgement is not drawn."""
    begin_ns = account.path.begin_ns
    x, unit_ns = time_axis(account.path.duration_ns)
    names = [f"{number}  {line.name}, {line.place}: {duration(line.duration_ns)}" for number, line in enumerate(account.lines, 1)]
    marks = [
        {
            "series": phase_of(line.name), "shape": "box", "x": (line.begin_ns - begin_ns) / unit_ns,
            "x2": (line.begin_ns - begin_ns + line.duration_ns) / unit_ns, "y": place - 0.2, "y2": place + 0.2,
            "text": f"{names[place]}. {line.cause}",
        }
        for place, line in enumerate(account.lines)
    ]  # fmt: skip
    return chart(marks, [Panel("", x, ChartAxis(names=tuple(names)))], colours=PHASE_COLOURS)
