"""The critical path of one checkpoint as a figure: a bar per part, below its name, from the trigger to the last acknowledgement."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.explain.text import duration
from sim.report.figures import PHASES, SMALL, phase_of
from sim.report.svg import COLOURS, GRID, INK, figure, label

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sim.explain.account import Account

_ROW = 0.36
"""Inches."""
_IN_MS = 1e9
"""A shorter path [ns] is drawn in milliseconds."""
_LONGEST = 62
"""Characters of a row's name that fit."""


def waterfall(account: Account) -> Figure:
    """An account with lines.  What comes after the last acknowledgement is not drawn."""
    begin_ns = account.path.parts[0].begin_ns
    unit_ns = 1e6 if account.path.duration_ns < _IN_MS else 1e9
    rows = account.lines
    drawn = figure(0.75 + _ROW * len(rows))
    axes = drawn.subplots()
    labelled: set[str] = set()
    for number, line in enumerate(rows):
        phase = phase_of(line.name)
        y, name = len(rows) - 1 - number, phase if phase not in labelled else None
        labelled.add(phase)
        left, width = (line.begin_ns - begin_ns) / unit_ns, line.duration_ns / unit_ns
        axes.barh(y, width, height=0.36, left=left, color=COLOURS[list(PHASES).index(phase)], label=name)
        text = f"{number + 1}  {line.name}, {line.place}: {duration(line.duration_ns)}"
        axes.text(0, y + 0.24, label(text, _LONGEST), fontsize=SMALL, color=INK, ha="left", va="bottom")
    axes.set_ylim(-0.4, len(rows) - 0.15)
    axes.set_xlim(0, account.path.duration_ns / unit_ns)
    axes.set_yticks([])
    axes.set_xlabel(f"{'milliseconds' if unit_ns == 1e6 else 'seconds'} since the trigger", fontsize=SMALL, color=INK)
    axes.tick_params(labelsize=SMALL, colors=INK, labelcolor=INK)
    axes.grid(visible=True, axis="x", color=GRID, lw=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(INK)
    drawn.legend(loc="outside lower left", ncols=3, frameon=False, fontsize=SMALL, labelcolor=INK)
    return drawn
