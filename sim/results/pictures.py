"""matplotlib figures of runs and sweeps, for notebooks and PNG files."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from sim.model import units
from sim.model.text import one_line
from sim.results.columns import unit_of_ticks
from sim.results.consequences import first_uploads
from sim.results.rates import Tables
from sim.results.side_by_side import StrategyRow
from sim.results.summary import in_words
from sim.results.sweep_answers import Limit, means

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure


# ---- Ticks: round values in one unit, which each label shows.


def set_ticks(axis: Axis, column: str, max_intervals: int = 6) -> None:
    """Set the ticks of an axis, when everything has been drawn.

    Ticks are placed at round values of the displayed unit: 2.5 min, not 150 s.  Labels are not rounded, because those of
    close ticks would be equal.
    """
    from matplotlib.ticker import MaxNLocator

    low, high = sorted(axis.get_view_interval())
    ending, size = unit_of_ticks(column, max(abs(low), abs(high)))
    places = [
        place
        for place in MaxNLocator(max_intervals, steps=[1, 2, 5, 10]).tick_values(low / size, high / size)
        if low <= place * size <= high
    ]
    axis.set_ticks([place * size for place in places], [f"{place:.6g}{ending}" for place in places])


# ---- Figures of strategies: durations, queues and back-pressure over time; and the phases of the median checkpoint.

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999")
"""Okabe-Ito: distinguishable with any colour vision."""
_MAX_NAMES_CHARS = 110
_LOG_SCALE_RATIO = 12.0
"""The axis is logarithmic if durations differ by more than this factor."""


def plot_strategies_over_time(runs: Mapping[str, Tables], title: str, warmup_s: float = 0.0) -> Figure:
    """Plot a row of panels per strategy over simulated time; panels of a column share their scale.

    `runs`: tables of the first run of each strategy.  Strategies with identical runs share a row.
    """
    from matplotlib.figure import Figure

    drawn = {name: _curves(tables) for name, tables in runs.items()}
    rows = group_identical_curves(drawn)
    figure = Figure(figsize=(11, 1.1 + 1.35 * len(rows)), dpi=120, layout="constrained")
    panels = figure.subplots(len(rows), 3, sharex=True, sharey="col", squeeze=False)
    for (name, names), axes in zip(rows.items(), panels, strict=True):
        _durations(axes[0], runs[name])
        axes[1].plot(drawn[name].loc["queue"], color=COLOURS[0], lw=1.1)
        axes[2].plot(drawn[name].loc["waiting"], color=COLOURS[0], lw=1.1)
        head = one_line(" = ".join(names) + (" (identical)" if len(names) > 1 else ""), _MAX_NAMES_CHARS)
        axes[0].set_title(head.replace("$", r"\$"), loc="left", fontsize="small", fontweight="bold")
        axes[2].set_title(
            f"of {label}" if (label := _most_back_pressured(runs[name])) else "", loc="left", fontsize="small"
        )
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
        "\n".join([title.replace("$", r"\$"), *([", ".join(notes)] if notes else [])]),
        x=0.01,
        ha="left",
        fontsize="medium",
        wrap=True,
    )
    return figure


def group_identical_curves(curves: Mapping[str, pd.Series[float]]) -> dict[str, list[str]]:
    """Group names with identical curves, whose lines would hide each other.  Return {first name: all names}."""
    found: dict[str, list[str]] = {}
    for name, curve in curves.items():
        same = next((other for other in found if curves[other].equals(curve)), name)
        found.setdefault(same, []).append(name)
    return found


def save(figure: Figure, path: Path) -> None:
    """Write a figure as PNG.  `savefig` would draw a figure with constrained layout twice, with the same result."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas: Any = FigureCanvasAgg(figure)  # matplotlib has no types for this
    canvas.print_png(path)


def _curves(tables: Tables) -> pd.Series[float]:
    """Return all curves of a strategy in one Series: checkpoint, failed, queue, waiting."""
    import pandas as pd

    series, checkpoints = tables["series"], tables["checkpoints"].set_index("trigger_timestamp")
    total = series.assign(queue=(series["inputQueueSize"] + series["outputQueueSize"]) / 1e6).groupby("time")
    most = series[series["vertex"] == _most_back_pressured(tables)].groupby("time")["backPressured"].max()
    parts = {
        "checkpoint": checkpoints["end_to_end_duration"],
        "failed": checkpoints["status"].eq("FAILED").astype(float),
        "queue": total["queue"].sum(),
        "waiting": 100 * most,
    }
    found: pd.Series[float] = pd.concat(parts)
    return found


def _most_back_pressured(tables: Tables) -> str:
    """Return the most back-pressured vertex, or "" without samples."""
    means = tables["series"].groupby("vertex", sort=False)["backPressured"].mean()
    return str(means.idxmax()) if len(means) else ""


def _seconds(tables: Tables) -> pd.Series[float]:
    """Return the durations [s] of finished (completed or failed) checkpoints."""
    rows = tables["checkpoints"]
    found: pd.Series[float] = rows["end_to_end_duration"][rows["status"].isin(("COMPLETED", "FAILED"))] / 1e3
    return found


def _durations(axes: Axes, tables: Tables) -> None:
    """Draw a dot per completed checkpoint at its trigger, a diamond per first upload, and a cross per failed one."""
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
    """Set the scales of the three columns; durations are on a logarithmic axis if they differ by a large factor."""
    from matplotlib.ticker import LogLocator, NullFormatter

    durations, queues, waiting = panels
    positive = [value for values in seconds for value in values if value > 0]
    least, most = (min(positive), max(positive)) if positive else (1.0, 1.0)
    if most > _LOG_SCALE_RATIO * least:
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


def plot_phase_breakdown(strategies: Sequence[StrategyRow], title: str = "") -> Figure:
    """Plot a bar per strategy: the phases of a checkpoint on its critical path (`sim.results.not_completed`), medians."""
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


# ---- The figure of a sweep's answer: mean values by setting, with confidence intervals and limits.

_MARKERS = "os^Dv<>P"
_MAX_LABEL_CHARS = 28
_DODGE = 0.02  # share of the axis by which lines are shifted, so that their error bars do not overlap


class _Scale(NamedTuple):
    """The setting on the horizontal axis."""

    name: str
    position: int  # of the setting in a key
    places: dict[str, float]  # value as written -> position on the axis
    is_log: bool
    is_quantity: bool

    def place(self, key: Sequence[str]) -> float:
        return self.places[key[self.position]]

    def without(self, key: Sequence[str]) -> tuple[str, ...]:
        """Return the values of the other settings."""
        return (*key[: self.position], *key[self.position + 1 :])

    def dodged(self, place: float, i: int, count: int) -> float:
        """Return the position, shifted for the i-th of `count` lines."""
        share = _DODGE * (i - (count - 1) / 2)
        low, high = min(self.places.values()), max(self.places.values())
        return place * (high / low) ** share if self.is_log else place + share * ((high - low) or 1)


def plot_sweep_answer(
    groups: Mapping[str, pd.DataFrame],
    settings: Sequence[str],
    columns: Sequence[str],
    limits: Sequence[Limit] = (),
    title: str = "",
) -> Figure:
    """Plot the means of a sweep: a row of panels per result column, a column of panels per group.

    The setting with the most numeric values (``10 s``, ``1 min``) is the horizontal axis; every combination of the other
    settings is a line.  Bars are 95 % confidence intervals, dashed lines are limits, and an upward arrow marks a lower
    bound.

    `groups`: name -> rows of a sweep, as for `sweep_answers.means`.
    """
    from matplotlib.figure import Figure

    tables = {name: means(rows, settings, columns) for name, rows in groups.items()}
    keys = list(dict.fromkeys(key for table in tables.values() for key in _keys(table)))
    scale = _scale(settings, keys)
    lines = list(dict.fromkeys(scale.without(key) for key in keys))
    size = (4.5 + 4.5 * len(tables), 1.2 + 2.6 * len(columns))
    figure = Figure(figsize=size, dpi=120, layout="constrained")
    panels = figure.subplots(len(columns), len(tables), sharex=True, sharey="row", squeeze=False)
    for column, row in zip(columns, panels, strict=True):
        bounds = [limit for limit in limits if limit.column == column]
        for (name, table), axes in zip(tables.items(), row, strict=True):
            for i in range(len(lines)):
                _line(axes, table, column, scale, i, lines)
            _style_axes(axes, column if axes is row[0] else "", bounds)
            axes.set_title(name if column == columns[0] else "", fontsize="medium")
        set_ticks(row[0].yaxis, column)  # shared by the panels of a row
    for axes in panels[-1]:
        _ticks(axes, scale)
    if len(lines) > 1:
        names = ", ".join(scale.without(settings))
        panels[0, -1].legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize="small", title=names)
    figure.suptitle(title, x=0.01, ha="left", fontsize="medium", wrap=True)
    return figure


def _keys(table: pd.DataFrame) -> list[tuple[str, ...]]:
    """Return the values of the settings of each row."""
    return [tuple(map(str, index if isinstance(index, tuple) else (index,))) for index in table.index]


def _line(
    axes: Axes, table: pd.DataFrame, column: str, scale: _Scale, i: int, lines: Sequence[tuple[str, ...]]
) -> None:
    """Draw the line of the i-th combination of the settings that are not on the axis."""
    keys = _keys(table)
    chosen = sorted(
        (k for k, key in enumerate(keys) if scale.without(key) == lines[i]), key=lambda k: scale.place(keys[k])
    )
    places = [scale.dodged(scale.place(keys[k]), i, len(lines)) for k in chosen]
    colour, values = COLOURS[i % len(COLOURS)], table[column].iloc[chosen]
    spread = table[f"{column} ±"].iloc[chosen].replace(np.inf, np.nan).fillna(0.0)
    axes.errorbar(
        places,
        values,
        yerr=spread,
        label=", ".join(lines[i]),
        capsize=3,
        ms=5,
        lw=1.2,
        color=colour,
        marker=_MARKERS[(i + i // len(COLOURS)) % len(_MARKERS)],
        ls="-" if scale.is_quantity else "",
    )
    for place, value, unfinished in zip(places, values, table[f"{column} unfinished"].iloc[chosen], strict=True):
        if unfinished:  # the mean is a lower bound
            axes.annotate(
                "",
                (place, value),
                (0, 14),
                textcoords="offset points",
                arrowprops={"arrowstyle": "<-", "color": colour},
            )


def _scale(settings: Sequence[str], rows: Sequence[tuple[str, ...]]) -> _Scale:
    """Return the axis: the setting with the most numeric values, or else the first one, with its values as categories."""
    values = {name: list(dict.fromkeys(row[i] for row in rows)) for i, name in enumerate(settings)}
    quantities = {name: places for name in settings if (places := _places(values[name]))}
    if not quantities:
        places = {value: float(i) for i, value in enumerate(values[settings[0]])}
        return _Scale(settings[0], 0, places, is_log=False, is_quantity=False)
    name = max(quantities, key=lambda name: len(quantities[name]))
    places = quantities[name]
    is_log = min(places.values()) > 0 and max(places.values()) > 5 * min(places.values())
    return _Scale(name, settings.index(name), places, is_log, is_quantity=True)


def _places(values: Sequence[str]) -> dict[str, float]:
    """Return {value: position}, or {} unless there are at least two values, all quantities of one kind."""
    try:
        read = {value: units.parse_quantity(value) for value in values}
    except units.UnitError:
        return {}
    if (
        len({kind for kind, _ in read.values()}) > 1
        or len(values) < 2
        or any(number is None for _, number in read.values())
    ):
        return {}
    return {value: float(number) for value, (_, number) in read.items() if number is not None}


def _style_axes(axes: Axes, column: str, limits: Sequence[Limit]) -> None:
    for limit in limits:
        bound = limit.at_most if math.isfinite(limit.at_most) else limit.at_least
        axes.axhline(bound, color="#555555", ls="--", lw=1)
    axes.set_ylabel("\n".join(wrap(in_words(column), _MAX_LABEL_CHARS)) if column else "")
    axes.grid(visible=True, alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)


def _ticks(axes: Axes, scale: _Scale) -> None:
    from matplotlib.ticker import NullLocator

    if scale.is_log:
        axes.set_xscale("log")
        axes.xaxis.set_minor_locator(NullLocator())
    turned = sum(map(len, scale.places)) > 90
    axes.set_xticks(
        list(scale.places.values()),
        list(scale.places),
        rotation=30 if turned else 0,
        ha="right" if turned else "center",
    )
    axes.set_xlabel(scale.name)
