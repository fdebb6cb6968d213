"""The picture of a chart that stands still: for paper, for a browser without scripts, and for notebooks."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from sim.report.charts.chart import INK as INK_COLOUR
from sim.report.charts.svg import COLOURS, GRID, INK, PAPER, figure, label

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from sim.report.charts.chart import Chart, ChartAxis, Panel

SMALL = 9
"""Points: the size of text in figures."""
MARKERS = "os^Dv<>P"
DASHES = ("-", "--", "-.", ":")
_LONG_LABEL = 28
"""Characters: two columns of longer labels are wider than the figure."""
_LONG_NAME = 26
"""Characters: longer names of rows stand above their row, as there would be no room beside it."""
_PIXELS = 96.0
"""In an inch."""


def still(drawn: Chart) -> Figure:
    """A figure of matplotlib, in the colours that a page replaces by its own."""
    heights = [_height(panel) for panel in drawn.panels]
    named = _legend(drawn)
    columns = 1 if max(map(len, named), default=0) > _LONG_LABEL else 2
    picture = figure(sum(heights) + 0.4 + 0.18 * math.ceil(len(named) / columns))
    grid = picture.subplots(len(heights), squeeze=False, gridspec_kw={"height_ratios": heights})[:, 0]
    for number, (axes, panel) in enumerate(zip(grid, drawn.panels, strict=True)):
        _draw_panel(axes, drawn, number, panel)
    handles = {name: handle for axes in grid for handle, name in zip(*axes.get_legend_handles_labels(), strict=True)}
    if len(named) > 1 or any(shape in _SIGNS for shape in drawn.marks["shape"]):
        listed = {label(name, 60): handles[label(name, 60)] for name in named if label(name, 60) in handles}
        picture.legend(
            list(listed.values()), list(listed), loc="outside lower left", ncols=columns, frameon=False, fontsize=SMALL, labelcolor=INK
        )
    return picture


def is_above(axis: ChartAxis) -> bool:
    """Whether names of rows stand above them."""
    return max(map(len, axis.names), default=0) > _LONG_NAME


_SIGNS = {"rule", "tick", "band"}
"""Shapes that nothing but a legend names."""
_UNNAMED = {"cell", "node", "edge", "words"}
"""Shapes that say themselves what they are."""


def _legend(drawn: Chart) -> list[str]:
    found = drawn.marks[~drawn.marks["shape"].isin(_UNNAMED) & (drawn.marks["series"] != "")]
    return list(dict.fromkeys(found["series"]))


def _height(panel: Panel) -> float:
    """Inches, with its title and the axis below."""
    around = (0.22 if panel.title else 0.05) + (0.1 if panel.x.is_hidden else 0.5 if panel.x.heading else 0.3)
    if panel.height:
        return around + panel.height / _PIXELS
    rows = len(panel.y.names)
    return around + ((0.36 if is_above(panel.y) else 0.2) * max(rows, 2) if rows else 1.35)


def _draw_panel(axes: Axes, drawn: Chart, number: int, panel: Panel) -> None:
    own = drawn.marks[drawn.marks["panel"] == number]
    if panel.x.is_log:
        axes.set_xscale("log")
    if panel.y.is_log:
        axes.set_yscale("log")
    names: set[str] = set()
    for (name, shape), rows in own.groupby(["series", "shape"], sort=False):
        order = drawn.series.index(str(name))
        colour = INK if drawn.colours[str(name)] == INK_COLOUR else COLOURS[drawn.colours[str(name)] % len(COLOURS)]
        text = label(name, 60) if str(name) and name not in names and shape not in _UNNAMED else None
        names.add(str(name))
        _DRAW[str(shape)](axes, rows, colour, text, order)
    _style(axes, panel)


def _style(axes: Axes, panel: Panel) -> None:
    axes.set_title(label(panel.title, 90), loc="left", fontsize=SMALL, color=INK)
    axes.tick_params(labelsize=SMALL, colors=INK, labelcolor=INK)
    axes.spines[["top", "right"]].set_visible(False)
    for spine in axes.spines.values():
        spine.set_color(INK)
    axes.set_axisbelow(True)
    axes.set_xlim(panel.x.low, panel.x.high)
    axes.set_ylim(panel.y.low, panel.y.high)
    axes.set_xlabel(label(panel.x.heading, 60), fontsize=SMALL, color=INK)
    axes.set_ylabel(label(panel.y.heading, 40), fontsize=SMALL, color=INK)
    axes.grid(visible=True, axis="x" if panel.y.names else "both" if panel.x.is_log or panel.y.is_log else "y", color=GRID, lw=0.6)
    _ticks(axes, panel)
    if panel.x.is_hidden:
        axes.set_axis_off()


def _ticks(axes: Axes, panel: Panel) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

    for axis, own, most in ((axes.xaxis, panel.x, 5), (axes.yaxis, panel.y, 6)):
        if own.names:
            continue
        if own.is_log:
            low, high = axis.get_view_interval()
            axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 300 * low else (1.0,), numticks=7))
            axis.set_minor_locator(NullLocator())
        else:
            axis.set_major_locator(MaxNLocator(most, steps=[1, 2, 5, 10]))
        axis.set_major_formatter(FuncFormatter(lambda value, _, ending=own.ending: f"{value:g}{ending}"))
    if panel.x.names:
        axes.set_xlim(-0.5, len(panel.x.names) - 0.5)
        axes.set_xticks(range(len(panel.x.names)), [label(name, 20) for name in panel.x.names])
    if not panel.y.names:
        return
    above = is_above(panel.y)
    axes.set_ylim(len(panel.y.names) - 0.45, -0.9 if above else -0.6)
    if above:
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        for place, name in enumerate(panel.y.names):
            axes.text(0, place - 0.27, label(name, 62), transform=axes.get_yaxis_transform(), fontsize=SMALL, color=INK, va="bottom")
    else:
        axes.set_yticks(range(len(panel.y.names)), [label(name, _LONG_NAME) for name in panel.y.names])


# ---------------------------------------------------------------------------------- a function per shape


def _line(axes: Axes, rows: pd.DataFrame, colour: str, text: str | None, order: int) -> None:
    dash = DASHES[(order + order // len(COLOURS)) % len(DASHES)]  # no pair of colour and dash comes twice among 32
    axes.plot(rows["x"], rows["y"], dash, color=colour, lw=1.4, label=text)


def _point(axes: Axes, rows: pd.DataFrame, colour: str, text: str | None, order: int) -> None:
    marker = MARKERS[order % len(MARKERS)]
    axes.plot(rows["x"], rows["y"], marker, color=colour, ms=6, mfc="none", mew=1.6, label=text)


def _ring(axes: Axes, rows: pd.DataFrame, colour: str, text: str | None, order: int) -> None:
    axes.plot(rows["x"], rows["y"], "so"[order % 2], color=colour, ms=12, mfc="none", mew=1.4, ls="none", label=text)


def _box(axes: Axes, rows: pd.DataFrame, colour: str, text: str | None, order: int) -> None:
    del order
    axes.bar(rows["x"], rows["y2"] - rows["y"], rows["x2"] - rows["x"], rows["y"], align="edge", color=colour, lw=0, label=text)


def _span(axes: Axes, rows: pd.DataFrame, colour: str, text: str | None, order: int) -> None:
    del order
    axes.hlines(rows["y"], rows["x"], rows["x2"], color=colour, lw=2, label=text or "")


def _band(axes: Axes, rows: pd.DataFrame, colour: str, text: str | None, order: int) -> None:
    del colour, order
    for row in rows.to_dict("records"):
        is_across = math.isnan(row["x"])
        span, low, high = (axes.axhspan, row["y"], row["y2"]) if is_across else (axes.axvspan, row["x"], row["x2"])
        edge = axes.get_ylim()[1] if is_across else axes.get_xlim()[1]
        span(low, max(edge, low) * 1e3 if math.isnan(high) else high, color=GRID, alpha=0.35, lw=0, label=text)


def _rule(axes: Axes, rows: pd.DataFrame, colour: str, text: str | None, order: int) -> None:
    del order
    for number, x in enumerate(rows["x"]):
        axes.axvline(x, color=colour, lw=1, ls=(0, (2, 2)), label=text if number == 0 else None)


def _tick(axes: Axes, rows: pd.DataFrame, colour: str, text: str | None, order: int) -> None:
    del order
    axes.plot(rows["x"], rows["y"].fillna(0.0), "|", color=colour, ms=7, mew=1.5, clip_on=False, label=text)


def _cell(axes: Axes, rows: pd.DataFrame, colour: str, text: str | None, order: int) -> None:
    """Faint colours: text stands on them."""
    from matplotlib.patches import Rectangle

    del text, order
    for row in rows.to_dict("records"):
        width, height = row["x2"] - row["x"], row["y2"] - row["y"]
        alpha = 0.0 if math.isnan(row["shade"]) else 0.06 + 0.4 * row["shade"]
        axes.add_patch(Rectangle((row["x"], row["y"]), width, height, facecolor=colour, alpha=alpha, edgecolor=PAPER, lw=1))
        axes.text(row["x"] + width / 2, row["y"] + height / 2, label(row["words"]), fontsize=SMALL, color=INK, ha="center", va="center")


def _node(axes: Axes, rows: pd.DataFrame, colour: str, text: str | None, order: int) -> None:
    from matplotlib.patches import Rectangle

    del text, order
    for row in rows.to_dict("records"):
        width, height = row["x2"] - row["x"], row["y2"] - row["y"]
        alpha = 0.0 if math.isnan(row["shade"]) else 0.4 * row["shade"]
        axes.add_patch(Rectangle((row["x"], row["y"]), width, height, facecolor=colour, alpha=alpha, lw=0))
        axes.add_patch(Rectangle((row["x"], row["y"]), width, height, facecolor="none", edgecolor=INK, lw=1))
        lines = "\n".join(label(line, 50) for line in row["words"].split("\n"))
        axes.text(row["x"] + width / 2, row["y"] + height / 2, lines, fontsize=SMALL, color=INK, ha="center", va="center")


def _edge(axes: Axes, rows: pd.DataFrame, colour: str, text: str | None, order: int) -> None:
    del text, order
    for row in rows.to_dict("records"):
        start, end = (row["x"], row["y"]), (row["x2"], row["y2"])
        axes.annotate("", xy=end, xytext=start, arrowprops={"arrowstyle": "-|>", "color": colour, "lw": 1, "shrinkA": 0, "shrinkB": 0})


def _note(axes: Axes, rows: pd.DataFrame, colour: str, name: str | None, order: int) -> None:
    """At the right edge where no place is given."""
    del colour, name, order
    for row in rows.to_dict("records"):
        text = label(row["words"], 60)
        if math.isnan(row["x"]):
            axes.text(0.99, row["y"], text, transform=axes.get_yaxis_transform(), ha="right", va="center", fontsize=SMALL, color=INK)
        else:
            axes.text(row["x"], row["y"], text, ha="left", va="center", fontsize=SMALL, color=INK)


_DRAW: dict[str, Callable[[Axes, pd.DataFrame, str, str | None, int], None]] = {
    "band": _band, "box": _box, "cell": _cell, "edge": _edge, "line": _line, "node": _node, "point": _point, "ring": _ring, "rule": _rule,
    "span": _span, "tick": _tick, "words": _note,
}  # fmt: skip
