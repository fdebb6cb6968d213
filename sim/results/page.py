"""A page as values, and the page as HTML: text that others wrote is escaped by the template engine, charts are drawn inside."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from textwrap import shorten
from typing import TYPE_CHECKING

from sim.model.text import one_line, printable
from sim.results.charts import described, still, svg

if TYPE_CHECKING:
    from jinja2 import Template
    from markupsafe import Markup

    from sim.results.charts import Chart
    from sim.results.formats import TextTable

_SHORT_CELL = 18  # characters: "17 s ± 9.3 s"
_BEFORE_UNIT = r"(?<=\d) (?=%|(?:[numkMGT]?[sB]|min|h)\b)"
_PROSE = 36
"""Characters of a cell from which on its column is read as sentences."""
_MAX_ENTRY = 60
"""Characters of an entry in the table of contents."""
_CONTENTS_FROM = 4
"""A page with fewer headings needs no table of contents."""


@dataclass(frozen=True, slots=True)
class Block:
    """A block of a page: a heading, and what stands below it."""

    title: str
    text: str = ""
    table: TextTable | None = None
    chart: Chart | None = None
    caption: str = ""  # the chart in words, for those who do not see it
    code: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """A page as values: title, blocks and charts."""

    title: str
    question: str
    verdict: str
    blocks: Sequence[Block]
    assumptions: Sequence[str] = field(default=())
    command: str = ""
    findings: Sequence[str] = ()  # what was known of the job before it ran
    made: str = ""  # by which version, when


def html(page: Page) -> str:
    """One file: styles, charts and what draws them are in it, and nothing is fetched.

    Without scripts and on paper it is complete: every chart has a picture that stands still.
    """
    from markupsafe import Markup

    charts = {i: block.chart for i, block in enumerate(page.blocks) if block.chart is not None}
    pictures = {i: Markup(svg(still(drawn), f"f{i}")) for i, drawn in charts.items()}
    scripts = {}
    if charts:
        scripts = {
            "charts": Markup(_in_script({str(i): described(drawn) for i, drawn in charts.items()})),
            "library": b64encode((files("sim.results") / "echarts.min.js.gz").read_bytes()).decode(),
            "draw": Markup((files("sim.results") / "browser.js").read_text(encoding="utf-8")),
        }
    titled = [(f"s{i}", _entry(block.title)) for i, block in enumerate(page.blocks) if block.title]
    contents = titled if len(titled) >= _CONTENTS_FROM else []
    return _template().render(page=page, pictures=pictures, charts=charts, scripts=scripts, contents=contents) + "\n"


@cache
def _template() -> Template:
    """The page without its values: a watch renders it at every look."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"text": printable, "tight": _tight, "parted": _parted, "prose_columns": _prose_columns}
    return environment.from_string((files("sim.results") / "page.html").read_text(encoding="utf-8"))


def _entry(title: str) -> str:
    """A heading as an entry of the contents: its beginning, up to a word."""
    entry = shorten(one_line(title, 4 * _MAX_ENTRY), _MAX_ENTRY, placeholder=" …")
    return one_line(title, _MAX_ENTRY) if entry == "…" else entry  # its first word is longer


def _in_script(values: object) -> str:
    """JSON that ends no script element, whatever others named their vertices."""
    return re.sub(
        "[<>&\u2028\u2029]",
        lambda found: f"\\u{ord(found[0]):04x}",
        json.dumps(values, ensure_ascii=False, separators=(",", ":")),
    )


def colours() -> str:
    """The style sheet's colours by name, light and dark: for a figure outside of a page."""
    sheet = (files("sim.results") / "page.html").read_text(encoding="utf-8")
    return sheet[sheet.index(":root {") : sheet.index("* { box-sizing")].strip()


def _prose_columns(table: TextTable) -> list[int]:
    """Columns of sentences stand at the left, and on a phone below the name of their row.  The first one is that name."""
    return [i for i in range(1, len(table.header)) if any(len(row[i]) >= _PROSE for row in table.rows)]


def _tight(text: str) -> str:
    """A short cell stays on one line, and in a long one no number is parted from its unit."""
    between = " " if len(text) <= _SHORT_CELL else _BEFORE_UNIT
    return re.sub(between, "\u00a0", text)


def _parted(text: str) -> Markup:
    """A heading, which may be broken after the points of a key's name."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"(?<=[a-z])\.(?=[a-z])", ".<wbr>", str(escape(text))))
