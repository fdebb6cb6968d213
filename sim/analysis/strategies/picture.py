"""Pictures of strategies: over time (durations of checkpoints, queues, back-pressure), and by the parts of their durations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim.analysis.strategies.side_by_side import StrategyRow
from sim.analysis.strategies.summary import Tables

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["save", "through_time", "where_time_goes"]

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999")
"""Okabe-Ito: distinguishable with any colour vision."""


def through_time(runs: Mapping[str, Tables], title: str, warmup_s: float = 0.0) -> Figure:
    """Three panels over simulated time; `runs`: strategy -> its first run."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 8), dpi=120, layout="constrained")
    durations, queues, waiting = figure.subplots(3, 1, sharex=True)
    for i, (name, tables) in enumerate(runs.items()):
        colour = COLOURS[i % len(COLOURS)]
        _durations(durations, tables, name, colour)
        total = tables["series"].assign(queue=tables["series"]["inputQueueSize"] + tables["series"]["outputQueueSize"]).groupby("time")
        queues.plot(total["queue"].sum() / 1e6, color=colour, lw=1.2)
        waiting.plot(100 * total["backPressured"].max(), color=colour, lw=1.2)
    for axes, text in ((durations, "checkpoint [s]"), (queues, "queued data [MB]"), (waiting, "back-pressure [%]")):
        axes.set_ylabel(text)
        axes.grid(visible=True, alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
        if warmup_s:
            axes.axvspan(0, warmup_s, color="#000000", alpha=0.06, lw=0)
    queues.set_ylim(bottom=0)
    waiting.set_ylim(-2, 102)
    waiting.set_xlabel("simulated time [s]")
    durations.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize="small")
    durations.set_title(title, loc="left", fontsize="medium", wrap=True)
    return figure


def save(figure: Figure, path: Path) -> None:
    """As PNG.  Drawn once: `savefig` draws a figure of constrained layout twice, for the same bytes."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas: Any = FigureCanvasAgg(figure)  # matplotlib has no types for this
    canvas.print_png(path)


def _durations(axes: Axes, tables: Tables, name: str, colour: str) -> None:
    """A dot per completed checkpoint at its trigger, a cross for a failed one."""
    rows = tables["checkpoints"]
    done, failed = rows[rows["status"] == "COMPLETED"], rows[rows["status"] == "FAILED"]
    axes.plot(done["trigger_timestamp"] / 1e3, done["end_to_end_duration"] / 1e3, "o-", color=colour, ms=4, lw=0.8, label=name)
    axes.plot(failed["trigger_timestamp"] / 1e3, failed["end_to_end_duration"] / 1e3, "x", color=colour, ms=7, mew=2)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}")


PARTS = (
    ("waiting behind data", "queue_ms"),
    ("until the timeout", "timeout_ms"),
    ("alignment", "alignment_ms"),
    ("before the barrier", "pre_barrier_ms"),
    ("synchronous", "sync_ms"),
    ("asynchronous", "async_ms"),
    ("messages", "messages_ms"),
)


def where_time_goes(strategies: Sequence[StrategyRow], title: str = "") -> Figure:
    """A bar per strategy: the parts of a checkpoint along the path of its slowest barrier (`sim.analysis.strategies.path`)."""
    from matplotlib.figure import Figure

    lines = [line for line in strategies if line.summary.completed][::-1]
    figure = Figure(figsize=(9, 1.2 + 0.5 * len(lines)), dpi=120, layout="constrained")
    axes = figure.subplots()
    ends = [0.0] * len(lines)
    for (name, field), colour in zip(PARTS, COLOURS, strict=False):
        widths = [getattr(line.summary.path, field) / 1e3 for line in lines]
        axes.barh([line.label for line in lines], widths, left=ends, color=colour, label=name, height=0.6)
        ends = [end + width for end, width in zip(ends, widths, strict=True)]
    axes.set_xlabel("median checkpoint [s]")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize="small")
    axes.set_title(title, loc="left", fontsize="medium", wrap=True)
    return figure
