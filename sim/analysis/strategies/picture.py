"""Pictures of strategies: over time (durations of checkpoints, queues, back-pressure), and by the parts of their durations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim.analysis.strategies.kinds_of_checkpoints import first_uploads
from sim.analysis.strategies.side_by_side import StrategyRow
from sim.analysis.strategies.summary import Tables
from sim.foreign import one_line

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999")
"""Okabe-Ito: distinguishable with any colour vision."""
_LONGEST = 110
"""Characters of the names above a row."""
_LOG_FROM = 12.0
"""Durations that differ by a larger factor have a logarithmic axis."""


def through_time(runs: Mapping[str, Tables], title: str, warmup_s: float = 0.0) -> Figure:
    """A row of panels per strategy over simulated time, each column on one scale; `runs`: strategy -> its first run.

    Strategies whose runs are identical share a row.
    """
    from matplotlib.figure import Figure

    drawn = {name: _drawn(tables) for name, tables in runs.items()}
    rows = alike(drawn)
    figure = Figure(figsize=(11, 1.1 + 1.35 * len(rows)), dpi=120, layout="constrained")
    panels = figure.subplots(len(rows), 3, sharex=True, sharey="col", squeeze=False)
    for (name, names), axes in zip(rows.items(), panels, strict=True):
        _durations(axes[0], runs[name])
        axes[1].plot(drawn[name].loc["queue"], color=COLOURS[0], lw=1.1)
        axes[2].plot(drawn[name].loc["waiting"], color=COLOURS[0], lw=1.1)
        head = one_line(" = ".join(names) + (" (identical)" if len(names) > 1 else ""), _LONGEST)
        axes[0].set_title(head.replace("$", r"\$"), loc="left", fontsize="small", fontweight="bold")
        axes[2].set_title(f"of {label}" if (label := _most_pressed(runs[name])) else "", loc="left", fontsize="small")
        for axis in axes:
            axis.grid(visible=True, alpha=0.3)
            axis.spines[["top", "right"]].set_visible(False)
            axis.tick_params(labelsize="small")
            if warmup_s:
                axis.axvspan(0, warmup_s, color="#000000", alpha=0.08, lw=0)
    _scales(panels[0], [_seconds(tables) for tables in runs.values()])
    for axis in panels[-1]:
        axis.set_xlabel("simulated time [s]", fontsize="small")
    for row in panels:
        for axis, what in zip(row, ("checkpoint [s]", "in queues [MB]", "back-pressure [%]"), strict=True):
            axis.set_ylabel(what, fontsize="small")
    notes = ["× failed"] if any((tables["checkpoints"]["status"] == "FAILED").any() for tables in runs.values()) else []
    notes += ["◇ first upload"] if any(first_uploads(tables["checkpoints"]).any() for tables in runs.values()) else []
    notes += ["grey: warm-up"] if warmup_s else []
    figure.suptitle(
        "\n".join([title.replace("$", r"\$"), *([", ".join(notes)] if notes else [])]), x=0.01, ha="left", fontsize="medium", wrap=True
    )
    return figure


def alike(curves: Mapping[str, pd.Series[float]]) -> dict[str, list[str]]:
    """Name -> names of the same curve, itself first: a line that lies below another is invisible."""
    found: dict[str, list[str]] = {}
    for name, curve in curves.items():
        same = next((other for other in found if curves[other].equals(curve)), name)
        found.setdefault(same, []).append(name)
    return found


def save(figure: Figure, path: Path) -> None:
    """Write a figure as PNG.  It is drawn once: `savefig` draws one of constrained layout twice, for the same bytes."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas: Any = FigureCanvasAgg(figure)  # matplotlib has no types for this
    canvas.print_png(path)


def _drawn(tables: Tables) -> pd.Series[float]:
    """The curves of a strategy, one after the other."""
    import pandas as pd

    series, checkpoints = tables["series"], tables["checkpoints"].set_index("trigger_timestamp")
    total = series.assign(queue=(series["inputQueueSize"] + series["outputQueueSize"]) / 1e6).groupby("time")
    most = series[series["vertex"] == _most_pressed(tables)].groupby("time")["backPressured"].max()
    parts = {
        "checkpoint": checkpoints["end_to_end_duration"], "failed": checkpoints["status"].eq("FAILED").astype(float),
        "queue": total["queue"].sum(), "waiting": 100 * most,
    }  # fmt: skip
    found: pd.Series[float] = pd.concat(parts)
    return found


def _most_pressed(tables: Tables) -> str:
    """The vertex that waits for its readers longest."""
    means = tables["series"].groupby("vertex", sort=False)["backPressured"].mean()
    return str(means.idxmax()) if len(means) else ""


def _seconds(tables: Tables) -> pd.Series[float]:
    """Durations of all checkpoints that are over."""
    rows = tables["checkpoints"]
    found: pd.Series[float] = rows["end_to_end_duration"][rows["status"].isin(("COMPLETED", "FAILED"))] / 1e3
    return found


def _durations(axes: Axes, tables: Tables) -> None:
    """A dot per completed checkpoint at its trigger, a diamond for a first upload, a cross for a failed one."""
    rows = tables["checkpoints"]
    is_first = first_uploads(rows)
    kinds = (
        ((rows["status"] == "COMPLETED") & ~is_first, "o", COLOURS[0], 3.5),
        (is_first, "D", COLOURS[2], 6),
        (rows["status"] == "FAILED", "x", COLOURS[1], 6),
    )
    for of_kind, mark, colour, size in kinds:
        chosen = rows[of_kind]
        axes.plot(chosen["trigger_timestamp"] / 1e3, chosen["end_to_end_duration"] / 1e3, mark, color=colour, ms=size)


def _scales(panels: Sequence[Axes], seconds: Sequence[pd.Series[float]]) -> None:
    """Durations on a logarithmic axis where they differ by far, with ticks that can be told apart."""
    from matplotlib.ticker import LogLocator, NullFormatter

    durations, queues, waiting = panels
    positive = [value for values in seconds for value in values if value > 0]
    least, most = (min(positive), max(positive)) if positive else (1.0, 1.0)
    if most > _LOG_FROM * least:
        durations.set_yscale("log")
        durations.yaxis.set_major_locator(LogLocator(subs=(1.0, 3.0) if most < 100 * least else (1.0,), numticks=6))
        durations.yaxis.set_minor_formatter(NullFormatter())
        durations.set_ylim(least / 1.6, most * 1.6)
        durations.yaxis.set_major_formatter("{x:g}")
    else:
        durations.set_ylim(0, 1.15 * most)
    queues.set_ylim(bottom=0)
    waiting.set_ylim(-4, 104)


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
