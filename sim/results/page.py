"""HTML pages: their content as dataclasses, and the rendering as HTML.  The template engine escapes all texts."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cache
from importlib.resources import files
from textwrap import shorten
from typing import TYPE_CHECKING

from sim.model.frozen import frozen
from sim.model.text import one_line, printable
from sim.results.charts import Chart, svg, to_figure, to_json

if TYPE_CHECKING:
    from jinja2 import Template
    from markupsafe import Markup

    from sim.results.formats import TextTable

_MAX_UNBROKEN_CHARS = 18  # characters: cells up to the length of "17 s ± 9.3 s" are not broken
_BEFORE_UNIT = r"(?<=\d) (?=%|(?:[numkMGT]?[sB]|min|h)\b)"
_MIN_PROSE_CHARS = 36
"""A column with a cell of at least this number of characters counts as sentences."""
_MAX_ENTRY_CHARS = 60
"""Maximum characters of an entry in the table of contents."""
_MIN_HEADINGS_FOR_CONTENTS = 4
"""Minimum number of headings for a table of contents."""


@frozen
class Block:
    """A block of a page: a heading and its content."""

    title: str
    text: str = ""
    table: TextTable | None = None
    chart: Chart | None = None
    caption: str = ""  # description of the chart, also for screen readers
    code: str = ""
    player: Mapping[str, object] | None = None  # a checkpoint as an animation, see `sim.explain.player.describe`


@frozen
class Page:
    """The content of a page."""

    title: str
    question: str
    verdict: str
    blocks: Sequence[Block]
    assumptions: Sequence[str] = field(default=())
    command: str = ""
    findings: Sequence[str] = ()  # remarks about the job
    made: str = ""  # version and date
    cells: Mapping[tuple[int, int], tuple[int, int, int]] = field(default_factory=dict)  # begin and end of a number of
    # the verdict -> its cell: block, row, column


def html(page: Page) -> str:
    """Return the page as one HTML file that includes styles, scripts and charts, and loads nothing.

    Every chart is also included as SVG, so that the page is complete on paper and in browsers without scripts.
    """
    from markupsafe import Markup

    charts = {i: block.chart for i, block in enumerate(page.blocks) if block.chart is not None}
    pictures = {i: Markup(svg(to_figure(drawn), f"f{i}")) for i, drawn in charts.items()}
    scripts = {}
    if charts:
        scripts = {
            "charts": Markup(_in_script({str(i): to_json(drawn) for i, drawn in charts.items()})),
            "library": b64encode((files("sim.results") / "echarts.min.js.gz").read_bytes()).decode(),
            "draw": Markup(_asset("browser.js")),
        }
    players = {i: Markup(player_html(block.player)) for i, block in enumerate(page.blocks) if block.player}
    titled = [(f"s{i}", _entry(block.title)) for i, block in enumerate(page.blocks) if block.title]
    contents = titled if len(titled) >= _MIN_HEADINGS_FOR_CONTENTS else []
    rendered = _template().render(
        page=page,
        verdict=_linked(page),
        marked=set(page.cells.values()),
        pictures=pictures,
        charts=charts,
        scripts=scripts,
        contents=contents,
        players=players,
    )
    return rendered + "\n"


def _linked(page: Page) -> Markup:
    """Return the verdict with a link from each number to its cell."""
    from markupsafe import Markup

    text, at, parts = page.verdict, 0, list[str]()
    for (begin, end), cell in sorted(page.cells.items()):
        link = Markup('<a href="#c{}-{}-{}">{}</a>').format(*cell, printable(text[begin:end]))
        parts += [Markup.escape(printable(text[at:begin])), link]
        at = end
    return Markup("").join([*parts, Markup.escape(printable(text[at:]))])


def _asset(name: str) -> str:
    """Return the text of a file next to this module."""
    return (files("sim.results") / name).read_text(encoding="utf-8")


def player_html(description: Mapping[str, object]) -> str:
    """Return a checkpoint as an animation: an HTML element with its style and script, which loads nothing."""
    text = _asset("player.html")
    return text.replace("{data}", _in_script(description))


@cache
def _template() -> Template:
    """Return the compiled template.  Cached, because `watch` renders the page often."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"text": printable, "tight": _tight, "parted": _parted, "prose_columns": _prose_columns}
    return environment.from_string(_asset("page.html"))


def _entry(title: str) -> str:
    """Return a heading for the table of contents, shortened between words."""
    entry = shorten(one_line(title, 4 * _MAX_ENTRY_CHARS), _MAX_ENTRY_CHARS, placeholder=" …")
    return one_line(title, _MAX_ENTRY_CHARS) if entry == "…" else entry  # the first word is too long


def _in_script(values: object) -> str:
    """Return values as JSON in which no text, such as the name of a vertex, can end the script element."""
    return re.sub(
        "[<>&\u2028\u2029]",
        lambda found: f"\\u{ord(found[0]):04x}",
        json.dumps(values, ensure_ascii=False, separators=(",", ":")),
    )


def colours() -> str:
    """Return the CSS variables for colours, light and dark, for a figure outside of a page."""
    sheet = _asset("page.html")
    return sheet[sheet.index(":root {") : sheet.index("* { box-sizing")].strip()


def _prose_columns(table: TextTable) -> list[int]:
    """Return the indices of columns with sentences.

    They are aligned left.  On narrow screens they are below the name of the row.
    """
    return [i for i in range(1, len(table.header)) if any(len(row[i]) >= _MIN_PROSE_CHARS for row in table.rows)]


def _tight(text: str) -> str:
    """Replace spaces by no-break spaces: all in a short cell, those between number and unit in a long one."""
    between = " " if len(text) <= _MAX_UNBROKEN_CHARS else _BEFORE_UNIT
    return re.sub(between, "\u00a0", text)


def _parted(text: str) -> Markup:
    """Return a heading in which lines may be broken after the dots of option names."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"(?<=[a-z])\.(?=[a-z])", ".<wbr>", str(escape(text))))
