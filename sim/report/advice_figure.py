"""The figure of an advice: what every setting that was tried gives for checkpoints and for recovery, against the limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sim.analysis.number_texts import ms_text
from sim.analysis.sweeps.axis_ticks import set_ticks
from sim.report.figures import SMALL, style
from sim.report.page import Block
from sim.report.svg import COLOURS, GRID, INK, figure, label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

X, Y = "recovery_ms", "checkpoint_ms"
_MARKERS = "os^Dv<>P"
_WIDE = 20
"""A quantity whose values differ by a larger factor has a logarithmic axis."""
_FEW_DECADES = 300
"""Below this factor there is room for ticks between powers of ten."""


def advice_block(data: Mapping[str, Any]) -> Block | None:
    """`data`: what `ckptsim advise --json` gives.  None: fewer than two settings have both values."""
    drawn = trade(data)
    if drawn is None:
        return None
    settings = list(data["settings"])
    lost = len(settings) - len(_drawn(settings))
    not_drawn = f" Not drawn: {lost} without a completed checkpoint or a recovery that ends within its run." if lost else ""
    limits = [f"{name} at most {ms_text(bound)}" for name, key in (("recovery", X), ("checkpoints", Y)) if (bound := _limit(data, key))]
    shaded = f" Shaded: beyond the limits ({', '.join(limits)})." if limits else ""
    return Block(
        "Checkpoints against recovery", figure=drawn,
        caption=f"A point per setting that was tried: 99th percentile of checkpoints over the time of a recovery.{shaded}{not_drawn}",
    )  # fmt: skip


def trade(data: Mapping[str, Any]) -> Figure | None:
    """A point per setting, coloured by what it sets beside the interval; limits are shaded, today and the advised one are circled."""
    points = _drawn(list(data.get("settings", ())))
    if len(points) < 2:
        return None
    drawn = figure(3.6)
    axes = drawn.subplots()
    for i, protocol in enumerate(dict.fromkeys(row["protocol"] for row in points)):
        own = [row for row in points if row["protocol"] == protocol]
        axes.plot(
            [row[X] for row in own], [row[Y] for row in own], _MARKERS[i % len(_MARKERS)], color=COLOURS[i % len(COLOURS)], ms=6,
            mfc="none", mew=1.6, label=label(protocol),
        )  # fmt: skip
    for key, title, marker, size in (("today", "today", "s", 12), ("advised", "advised", "o", 11)):
        row = data.get(key)
        if row and row.get(X) and row.get(Y):
            text = label(f"{title}: {row['protocol']}, every {row['interval']}", 60)
            axes.plot(row[X], row[Y], marker, color=INK, ms=size, mfc="none", mew=1.4, ls="none", label=text)
    style(axes, "checkpoints, p99")
    axes.set_xlabel("recovery", fontsize=SMALL, color=INK)
    for side, key in (("x", X), ("y", Y)):
        _scale(axes, side, key, [row[key] for row in points], _limit(data, key))
    drawn.legend(loc="outside lower left", ncols=1, frameon=False, fontsize=SMALL, labelcolor=INK)
    return drawn


def _drawn(settings: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [row for row in settings if row.get(X) and row.get(Y)]


def _limit(data: Mapping[str, Any], key: str) -> float | None:
    bound = data.get("limits", {}).get(key)
    return None if bound is None else float(bound)


def _scale(axes: Axes, side: str, key: str, values: Sequence[float], limit: float | None) -> None:
    """The limit is on the axis only where it is near: a far one would push all points together, and breaks nothing."""
    axis = axes.xaxis if side == "x" else axes.yaxis
    set_scale, set_limits, span = (
        (axes.set_xscale, axes.set_xlim, axes.axvspan) if side == "x" else (axes.set_yscale, axes.set_ylim, axes.axhspan)
    )
    low, high = min(values), max(values)
    near = [limit] if limit is not None and limit < 3 * high else []
    low, high = min(low, *near, low), max(high, *near, high)
    is_wide = high > _WIDE * low
    ends = (low / 1.5, high * 1.5) if is_wide else (0.0, high * 1.1)
    if is_wide:
        set_scale("log")
    set_limits(*ends)
    if near:
        span(near[0], ends[1], color=GRID, alpha=0.35, lw=0)
    if is_wide:
        _log_ticks(axis)
    else:
        set_ticks(axis, key, 5)
    axes.grid(visible=True, axis="both", color=GRID, lw=0.6)


def _log_ticks(axis: Any) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    low, high = axis.get_view_interval()
    subs = (1.0, 2.0, 5.0) if high < _FEW_DECADES * low else (1.0,)
    axis.set_major_locator(LogLocator(subs=subs, numticks=7))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: ms_text(value)))
