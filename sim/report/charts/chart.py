"""A tidy table -> the description of a chart, from which a browser and a printer draw the same."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sim.foreign import one_line, printable

if TYPE_CHECKING:
    import pandas as pd

SHAPES = ("band", "box", "cell", "edge", "line", "node", "point", "ring", "rule", "span", "tick", "words")
"""What a mark is drawn as.

band: a shaded rectangle behind the others; a side that is not known reaches the edge.  box: a filled rectangle.  cell: one with its words,
darker for more.  edge: an arrow.  line: the marks of a series, joined.  node: a rectangle with several lines of words.  point: a symbol.
ring: a large one around a point.  rule: a vertical line.  span: a line between two places.  tick: a short line on the axis.  words: a note.
"""
_TEXTS = ("series", "shape", "text", "words")
_NUMBERS = ("x", "y", "x2", "y2", "shade")
_COLUMNS = ("panel", *_TEXTS, *_NUMBERS)
INK = -1
"""A colour: that of text."""
_DIGITS = 6
"""Significant ones of a number in a page."""
_LONGEST, _LONGEST_TEXT = 80, 400
"""Characters of a name, and of what is read when a mark is pointed at."""


@dataclass(frozen=True, slots=True)
class ChartAxis:
    """An axis; its numbers are in the unit of its title, or of `ending`, which stands behind each."""

    title: str = ""
    ending: str = ""
    low: float | None = None  # None: where the marks begin
    high: float | None = None
    names: tuple[str, ...] = ()  # of rows; the first is place 0, at the top or at the left
    is_log: bool = False
    is_hidden: bool = False

    @property
    def heading(self) -> str:
        """The title, with where the axis begins if that is above zero."""
        is_cut = self.low is not None and self.low > 0 and not (self.is_log or self.is_hidden or self.names)
        return ", ".join(filter(None, [self.title, f"from {self.low:.4g}{self.ending}"])) if is_cut else self.title


@dataclass(frozen=True, slots=True)
class Panel:
    """Axes with a title; panels stand below each other."""

    title: str
    x: ChartAxis
    y: ChartAxis
    height: float = 0.0  # pixels; 0: by its rows


@dataclass(frozen=True, slots=True)
class Chart:
    """What a chart shows.  `marks`: a row per mark, with the columns of `chart`; numbers are in units of their axes."""

    panels: tuple[Panel, ...]
    marks: pd.DataFrame
    colours: Mapping[str, int]  # by series
    linked: str = ""  # charts of one name are zoomed and read together
    scrub: Mapping[str, Any] = field(default_factory=dict)  # what a slider moves through, for the browser

    @property
    def series(self) -> list[str]:
        return list(self.colours)

    def of(self, panel: int, shape: str) -> pd.DataFrame:
        """The marks of one shape in a panel."""
        return self.marks[(self.marks["panel"] == panel) & (self.marks["shape"] == shape)]


def chart(
    marks: pd.DataFrame | Iterable[Mapping[str, object]], panels: Sequence[Panel], *, colours: Mapping[str, int] | None = None,
    linked: str = "", scrub: Mapping[str, Any] | None = None,
) -> Chart:  # fmt: skip
    """The description of a chart.  `marks`: a row per mark, with any of these columns.

    panel: its number.  series: what it belongs to, as the legend has it.  shape: one of SHAPES.  x, y: where it stands, or begins;
    x2, y2: where it ends.  shade: 0 to 1.  text: what is read when it is pointed at.  words: what stands in it.
    ValueError: another shape.
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
        raise ValueError(f"{', '.join(sorted(other))}: no shape; there are {', '.join(SHAPES)}")
    for name in ("series", "text", "words"):
        table[name] = [_one_line_or_more(str(text), name) for text in table[name]]
    names = dict.fromkeys(table["series"])
    given = {one_line(name, _LONGEST): number for name, number in (colours or {}).items()}
    drawn = {name: given.get(name, number) for number, name in enumerate(names)}
    return Chart(tuple(panels), table, drawn, linked, scrub or {})


def _one_line_or_more(text: str, column: str) -> str:
    if column == "words":  # several lines
        return printable(text)
    return one_line(text, _LONGEST_TEXT if column == "text" else _LONGEST)


def described(drawn: Chart) -> dict[str, Any]:
    """The chart for a browser, as JSON can carry it."""
    groups = drawn.marks.groupby(["panel", "series", "shape"], sort=False)
    series = [
        {
            "panel": int(str(panel)), "name": str(name), "shape": str(shape), "colour": drawn.colours[str(name)],
            "order": drawn.series.index(str(name)), "marks": [_mark(row) for row in rows.to_dict("records")],
        }
        for (panel, name, shape), rows in groups
    ]  # fmt: skip
    panels = [{"title": row.title, "height": row.height, "x": _axis(row.x), "y": _axis(row.y)} for row in drawn.panels]
    return {"panels": panels, "series": series, "linked": drawn.linked, "scrub": dict(drawn.scrub)}


def _mark(row: Mapping[Any, Any]) -> list[Any]:
    """Numbers, the text, and the words inside; what is empty at the end is left out."""
    values: list[Any] = [_rounded(row[name]) for name in _NUMBERS] + [row["text"], row["words"]]
    while values and values[-1] in (None, ""):
        values.pop()
    return values


def _axis(axis: ChartAxis) -> dict[str, Any]:
    return {
        "title": axis.heading, "ending": axis.ending, "low": _rounded(axis.low), "high": _rounded(axis.high), "names": list(axis.names),
        "log": axis.is_log, "hidden": axis.is_hidden,
    }  # fmt: skip


def _rounded(value: float | None) -> float | int | None:
    if value is None or not math.isfinite(value):
        return None
    short = float(f"{value:.{_DIGITS}g}")
    return int(short) if short == int(short) else short
