"""A page as values, and the page as HTML: text that others wrote is escaped by the template engine, figures are drawn inside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import TYPE_CHECKING

from sim.foreign import printable
from sim.report.svg import svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sim.analysis.section import TextTable

_SHORT_CELL = 18  # characters: "17 s ± 9.3 s"
_PROSE = 60
"""Characters of a cell from which on its column is read as sentences."""


@dataclass(frozen=True, slots=True)
class Block:
    """A block of a page: a heading, and what stands below it."""

    title: str
    text: str = ""
    table: TextTable | None = None
    figure: Figure | None = None
    caption: str = ""  # the figure in words, for those who do not see it
    code: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """A page as values: title, blocks and figures."""

    title: str
    question: str
    verdict: str
    blocks: Sequence[Block]
    assumptions: Sequence[str] = field(default=())
    command: str = ""
    findings: Sequence[str] = ()  # what was known of the job before it ran
    made: str = ""  # by which version, when


def html(page: Page) -> str:
    """One file: styles and figures are in it, and nothing is fetched."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"text": printable, "tight": _tight, "prose_columns": _prose_columns}
    template = environment.from_string((files("sim.report") / "page.html").read_text(encoding="utf-8"))
    drawn = {i: Markup(svg(block.figure, f"f{i}")) for i, block in enumerate(page.blocks) if block.figure is not None}  # noqa: S704 - ours
    return template.render(page=page, figures=drawn) + "\n"


def colours() -> str:
    """The style sheet's colours by name, light and dark: for a figure outside of a page."""
    sheet = (files("sim.report") / "page.html").read_text(encoding="utf-8")
    return sheet[sheet.index(":root {") : sheet.index("* { box-sizing")].strip()


def _prose_columns(table: TextTable) -> list[int]:
    """Columns of sentences stand at the left, and on a phone below the name of their row.  The first one is that name."""
    return [i for i in range(1, len(table.header)) if any(len(row[i]) >= _PROSE for row in table.rows)]


def _tight(text: str) -> str:
    """A short cell stays on one line: a number is not parted from its unit."""
    return text.replace(" ", "\u00a0") if len(text) <= _SHORT_CELL else text
