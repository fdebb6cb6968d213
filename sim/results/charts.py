"""Charts: their description, and its two renderings: data for the browser, and a static matplotlib figure or SVG."""

from __future__ import annotations

import io
import math
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from sim.model.frozen import frozen
from sim.model.text import one_line

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# ---- matplotlib figures as SVG in a page. Colours are replaced by CSS variables, because the page has a dark mode.

SVG_INK, GRID = "#010203", "#c0c1c2"
"""Placeholders for the colours of text and grid lines."""
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f5f00", "#8a8a8a")
"""Okabe-Ito colours, distinguishable with any colour vision.  The page has a lighter set for dark mode."""
_WIDTH_INCHES = 5.2
"""Width of figures in inches.  On a phone, text is scaled to three quarters and is still readable."""


def figure(height: float) -> Figure:
    """Return an empty figure with the width of reports."""
    from matplotlib.figure import Figure

    return Figure(figsize=(_WIDTH_INCHES, height), layout="constrained")


def label(text: object, max_chars: int = 40) -> str:
    """Return a text for a figure, of at most `max_chars` characters.

    "$" is escaped.  A leading "_" gets a space before it, because matplotlib would hide the text in legends.
    """
    name = one_line(text, max_chars).replace("$", r"\$")
    return f" {name}" if name.startswith("_") else name


def svg(figure: Figure, name: str) -> str:
    """Return a figure as an SVG element without a size.  `name`: prefix that makes its ids unique on the page."""
    import matplotlib as mpl

    file = io.StringIO()
    style = mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": name, "font.family": "sans-serif"})
    with style, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # the browser uses its own fonts
        figure.savefig(
            file, format="svg", transparent=True, metadata={"Date": None, "Creator": None, "Format": None, "Type": None}
        )
    text = file.getvalue()
    # without what comes before the element, and without metadata
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    # ids of the page
    text = re.sub(r'(\bid="|url\(#|href="#)', rf"\1{name}-", text)
    # without sizes, which the page sets
    text = re.sub(
        r'(<svg [^>]*?)width="[^"]*" height="[^"]*"',
        r'\1aria-hidden="true"',
        re.sub(r'(<svg) height="([^"]*)"', r"\1", text),
        count=1,
    )
    text = re.sub(r' (?:width|height)="[\d.]+pt"', "", text)
    # without a font family
    text = re.sub(r"font: ([\d.]+)px [^;\"]*", r"font-size: \1px", text)
    for i, colour in enumerate(COLOURS):
        text = text.replace(colour, f"var(--c{i})")
    return text.replace(SVG_INK, "var(--ink)").replace(GRID, "var(--line)").strip()


# ---- The description of a chart, from which both renderings are made.

SHAPES = ("band", "box", "line", "point", "ring", "rule", "span", "tick")
"""Shapes of marks.

* band: shaded stripe in the background, from x to x2
* box: filled rectangle
* line: connection of the marks of a series
* point: symbol
* ring: large symbol around a point
* rule: vertical line
* span: horizontal line from x to x2
* tick: short line on the axis
"""
_TEXTS = ("series", "shape", "text")
_NUMBERS = ("x", "y", "x2", "y2")
_COLUMNS = ("panel", *_TEXTS, *_NUMBERS)
TEXT_COLOUR = -1
"""Colour number that means the text colour, instead of an index in COLOURS."""
_SIGNIFICANT_DIGITS = 6
"""Significant digits of numbers in the data for the browser."""
_MAX_NAME_CHARS, _MAX_TOOLTIP_CHARS = 80, 400


@frozen
class ChartAxis:
    """An axis of a panel."""

    title: str = ""
    suffix: str = ""  # of each number, e.g. its unit
    low: float | None = None  # start of the axis; None if the marks determine it
    high: float | None = None  # end of the axis; None if the marks determine it
    names: tuple[str, ...] = ()  # names of rows: the first is at position 0, at the top

    @property
    def heading(self) -> str:
        """Return the title, followed by the start of the axis if that is above zero, so that readers notice it."""
        is_cut = self.low is not None and self.low > 0 and not self.names
        return ", ".join(filter(None, [self.title, f"from {self.low:.4g}{self.suffix}"])) if is_cut else self.title


@frozen
class Panel:
    """A pair of axes with a title.  The panels of a chart are stacked vertically."""

    title: str
    x: ChartAxis
    y: ChartAxis


@frozen
class Chart:
    """The description of a chart.

    `marks` has a row per mark, with the columns that `make_chart` describes.  Numbers are in the units of their axes.
    """

    panels: tuple[Panel, ...]
    marks: pd.DataFrame
    colours: Mapping[str, int]  # series -> index in COLOURS, or TEXT_COLOUR
    zoom_group: str = ""  # charts with the same name here are zoomed together; "" if it is zoomed alone

    @property
    def series(self) -> list[str]:
        return list(self.colours)


def make_chart(
    marks: pd.DataFrame | Iterable[Mapping[str, object]],
    panels: Sequence[Panel],
    *,
    colours: Mapping[str, int] | None = None,
    zoom_group: str = "",
) -> Chart:
    """Return the description of a chart.

    `marks` has a row per mark, with any of these columns:

    * panel: index of the panel (default: 0)
    * series: name in the legend
    * shape: one of SHAPES (default: point)
    * x, y: position or start
    * x2, y2: end
    * text: tooltip

    `colours`: series -> index in COLOURS, or TEXT_COLOUR; by default, series get colours in order of appearance.  `zoom_group`: see
    `Chart`.

    Raises ValueError if a shape is unknown.
    """
    import pandas as pd

    table = pd.DataFrame(marks if isinstance(marks, pd.DataFrame) else list(marks))
    table = table.reindex(columns=list(_COLUMNS))
    table["panel"] = table["panel"].fillna(0).astype(int)
    table["shape"] = table["shape"].fillna("point")
    for name in _TEXTS:
        table[name] = table[name].fillna("")
    for name in _NUMBERS:
        table[name] = table[name].astype(float)
    if other := set(table["shape"]) - set(SHAPES):
        raise ValueError(f"unknown shape {', '.join(sorted(other))}: expected {', '.join(SHAPES)}")
    table["series"] = [one_line(str(text), _MAX_NAME_CHARS) for text in table["series"]]
    table["text"] = [one_line(str(text), _MAX_TOOLTIP_CHARS) for text in table["text"]]
    names = dict.fromkeys(table["series"])
    given_colours = {one_line(name, _MAX_NAME_CHARS): index for name, index in (colours or {}).items()}
    colour_of = {name: given_colours.get(name, index) for index, name in enumerate(names)}
    return Chart(tuple(panels), table, colour_of, zoom_group)


def to_json(chart: Chart) -> dict[str, Any]:
    """Return the chart as JSON-ready data for the browser."""
    groups = chart.marks.groupby(["panel", "series", "shape"], sort=False)
    series = [
        {
            "panel": int(str(panel)),
            "name": str(name),
            "shape": str(shape),
            "colour": chart.colours[str(name)],
            "order": chart.series.index(str(name)),
            "marks": [_mark(row) for row in rows.to_dict("records")],
        }
        for (panel, name, shape), rows in groups
    ]
    panels = [{"title": row.title, "x": _axis(row.x), "y": _axis(row.y)} for row in chart.panels]
    return {"panels": panels, "series": series, "zoomGroup": chart.zoom_group}


def _mark(row: Mapping[Any, Any]) -> list[Any]:
    """Return a mark as the list [x, y, x2, y2, tooltip].  Empty values at the end are omitted."""
    values: list[Any] = [_rounded(row[name]) for name in _NUMBERS] + [row["text"]]
    while values and values[-1] in (None, ""):
        values.pop()
    return values


def _axis(axis: ChartAxis) -> dict[str, Any]:
    """Return an axis as JSON-ready data for the browser."""
    return {
        "title": axis.heading,
        "suffix": axis.suffix,
        "low": _rounded(axis.low),
        "high": _rounded(axis.high),
        "names": list(axis.names),
    }


def _rounded(value: float | None) -> float | int | None:
    """Return a number with `_SIGNIFICANT_DIGITS` significant digits, as an int if possible; None if it is missing or not finite."""
    if value is None or not math.isfinite(value):
        return None
    short = float(f"{value:.{_SIGNIFICANT_DIGITS}g}")
    return int(short) if short == int(short) else short


# ---- The static rendering, for paper, for browsers without scripts, and for notebooks.

SMALL_TEXT_POINTS = 9
"""Font size of all texts in figures."""
MARKERS = "os^Dv<>P"
DASHES = ("-", "--", "-.", ":")
_MAX_LABEL_CHARS = 28
"""Maximum characters of labels for a legend with two columns; with longer ones it has one."""
_MAX_ROW_NAME_CHARS_LEFT = 26
"""Maximum characters of row names to the left of rows; if one is longer, names are above their rows."""


def to_figure(chart: Chart) -> Figure:
    """Return the chart as a matplotlib figure in the placeholder colours that `svg` replaces."""
    heights = [_height(panel) for panel in chart.panels]
    legend_names = [name for name in chart.series if name]
    columns = 1 if max(map(len, legend_names), default=0) > _MAX_LABEL_CHARS else 2
    picture = figure(sum(heights) + 0.4 + 0.18 * math.ceil(len(legend_names) / columns))
    grid = picture.subplots(len(heights), squeeze=False, gridspec_kw={"height_ratios": heights})[:, 0]
    for number, (axes, panel) in enumerate(zip(grid, chart.panels, strict=True)):
        _draw_panel(axes, chart, number, panel)
    handles = {name: handle for axes in grid for handle, name in zip(*axes.get_legend_handles_labels(), strict=True)}
    if len(legend_names) > 1 or any(shape in _SHAPES_WITH_LEGEND for shape in chart.marks["shape"]):
        listed = {label(name, 60): handles[label(name, 60)] for name in legend_names if label(name, 60) in handles}
        picture.legend(
            list(listed.values()),
            list(listed),
            loc="outside lower left",
            ncols=columns,
            frameon=False,
            fontsize=SMALL_TEXT_POINTS,
            labelcolor=SVG_INK,
        )
    return picture


def has_names_above_rows(axis: ChartAxis) -> bool:
    """Return True if row names are written above their rows."""
    return max(map(len, axis.names), default=0) > _MAX_ROW_NAME_CHARS_LEFT


_SHAPES_WITH_LEGEND = {"rule", "tick", "band"}
"""Shapes that need a legend even if there is only one series."""


def _height(panel: Panel) -> float:
    """Return the height of a panel in inches, including its title and axis labels."""
    around = (0.22 if panel.title else 0.05) + (0.5 if panel.x.heading else 0.3)
    rows = len(panel.y.names)
    return around + ((0.36 if has_names_above_rows(panel.y) else 0.2) * max(rows, 2) if rows else 1.35)


def _draw_panel(axes: Axes, chart: Chart, number: int, panel: Panel) -> None:
    """Draw the marks of a panel, and its axes."""
    marks = chart.marks[chart.marks["panel"] == number]
    names: set[str] = set()
    for (name, shape), rows in marks.groupby(["series", "shape"], sort=False):
        order = chart.series.index(str(name))
        colour = (
            SVG_INK if chart.colours[str(name)] == TEXT_COLOUR else COLOURS[chart.colours[str(name)] % len(COLOURS)]
        )
        text = label(name, 60) if str(name) and name not in names else None
        names.add(str(name))
        _DRAW[str(shape)](axes, rows, Pen(colour, text, order))
    _style(axes, panel)


def _style(axes: Axes, panel: Panel) -> None:
    """Set the title, limits, colours and grid of a panel."""
    axes.set_title(label(panel.title, 90), loc="left", fontsize=SMALL_TEXT_POINTS, color=SVG_INK)
    axes.tick_params(labelsize=SMALL_TEXT_POINTS, colors=SVG_INK, labelcolor=SVG_INK)
    axes.spines[["top", "right"]].set_visible(False)
    for spine in axes.spines.values():
        spine.set_color(SVG_INK)
    axes.set_axisbelow(True)
    axes.set_xlim(panel.x.low, panel.x.high)
    axes.set_ylim(panel.y.low, panel.y.high)
    axes.set_xlabel(label(panel.x.heading, 60), fontsize=SMALL_TEXT_POINTS, color=SVG_INK)
    axes.set_ylabel(label(panel.y.heading, 40), fontsize=SMALL_TEXT_POINTS, color=SVG_INK)
    axes.grid(visible=True, axis="x" if panel.y.names else "y", color=GRID, lw=0.6)
    _ticks(axes, panel)


def _ticks(axes: Axes, panel: Panel) -> None:
    """Set the ticks of both axes, or the names of rows."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    for axis, own, max_ticks in ((axes.xaxis, panel.x, 5), (axes.yaxis, panel.y, 6)):
        if own.names:
            continue
        axis.set_major_locator(MaxNLocator(max_ticks, steps=[1, 2, 5, 10]))
        axis.set_major_formatter(FuncFormatter(lambda value, _, suffix=own.suffix: f"{value:g}{suffix}"))
    if not panel.y.names:
        return
    above = has_names_above_rows(panel.y)
    axes.set_ylim(len(panel.y.names) - 0.45, -0.9 if above else -0.6)
    if above:
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        for row, name in enumerate(panel.y.names):
            text = axes.text(0, row - 0.27, label(name, 62), va="bottom", transform=axes.get_yaxis_transform())
            text.set(fontsize=SMALL_TEXT_POINTS, color=SVG_INK)
    else:
        axes.set_yticks(range(len(panel.y.names)), [label(name, _MAX_ROW_NAME_CHARS_LEFT) for name in panel.y.names])


# ---- Drawing functions, one per shape.


class Pen(NamedTuple):
    """How the marks of a series are drawn."""

    colour: str
    label: str | None  # text in the legend; None if the series is there already
    order: int  # index of the series, which determines its dashes and marker


_PLOT_STYLES: dict[str, Callable[[int], dict[str, Any]]] = {
    # 32 series have distinct colours and dashes
    "line": lambda order: {"ls": DASHES[(order + order // len(COLOURS)) % len(DASHES)], "lw": 1.4},
    "point": lambda order: {"marker": MARKERS[order % len(MARKERS)], "ms": 6, "mfc": "none", "mew": 1.6},
    "ring": lambda order: {"marker": "so"[order % 2], "ms": 12, "mfc": "none", "mew": 1.4},
    "tick": lambda _: {"marker": "|", "ms": 7, "mew": 1.5, "clip_on": False},
}
"""Shape -> style of its marks, which are drawn by `Axes.plot`, by index of the series."""


def _plot(axes: Axes, rows: pd.DataFrame, pen: Pen, shape: str) -> None:
    """Draw symbols, or a line that connects the marks."""
    style = {"ls": "none", **_PLOT_STYLES[shape](pen.order)}
    axes.plot(
        rows["x"], rows["y"].fillna(0.0) if shape == "tick" else rows["y"], color=pen.colour, label=pen.label, **style
    )


def _box(axes: Axes, rows: pd.DataFrame, pen: Pen) -> None:
    width, height = rows["x2"] - rows["x"], rows["y2"] - rows["y"]
    axes.bar(rows["x"], height, width, rows["y"], align="edge", color=pen.colour, lw=0, label=pen.label)


def _span(axes: Axes, rows: pd.DataFrame, pen: Pen) -> None:
    axes.hlines(rows["y"], rows["x"], rows["x2"], color=pen.colour, lw=2, label=pen.label or "")


def _band(axes: Axes, rows: pd.DataFrame, pen: Pen) -> None:
    for row in rows.to_dict("records"):
        # without an end: far beyond the axis, whose limits are set later
        end = max(axes.get_xlim()[1], row["x"]) * 1e3 if math.isnan(row["x2"]) else row["x2"]
        axes.axvspan(row["x"], end, color=GRID, alpha=0.35, lw=0, label=pen.label)


def _rule(axes: Axes, rows: pd.DataFrame, pen: Pen) -> None:
    for number, x in enumerate(rows["x"]):
        axes.axvline(x, color=pen.colour, lw=1, ls=(0, (2, 2)), label=None if number else pen.label)


_DRAW: dict[str, Callable[[Axes, pd.DataFrame, Pen], None]] = {
    "band": _band,
    "box": _box,
    "rule": _rule,
    "span": _span,
    **{shape: partial(_plot, shape=shape) for shape in _PLOT_STYLES},
}
