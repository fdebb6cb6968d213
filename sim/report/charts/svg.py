"""A figure of matplotlib as SVG inside a page: its colours are the page's variables, so that it is dark when the page is."""

from __future__ import annotations

import io
import re
import warnings
from typing import TYPE_CHECKING

from sim.foreign import one_line

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK, GRID, PAPER = "#010203", "#c0c1c2", "#fdfefd"
"""Stand for the text, the lines behind the data and the background of the page."""
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f5f00", "#8a8a8a")
"""Okabe-Ito: told apart with any colour vision.  The page has a lighter set for dark screens."""
_WIDTH = 5.2
"""Inches: on a phone, text is shrunk to three quarters and can still be read."""


def figure(height: float) -> Figure:
    """An empty figure in the style of reports."""
    from matplotlib.figure import Figure

    return Figure(figsize=(_WIDTH, height), layout="constrained")


def label(text: object, longest: int = 40) -> str:
    """A name in a figure: no formula, and no entry that a legend leaves out."""
    name = one_line(text, longest).replace("$", r"\$")
    return f" {name}" if name.startswith("_") else name


def svg(drawn: Figure, name: str) -> str:
    """`name` sets its ids apart from those of other figures on the page."""
    import matplotlib as mpl

    file = io.StringIO()
    style = mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": name, "font.family": "sans-serif"})
    with style, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # the reader's browser has it
        drawn.savefig(file, format="svg", transparent=True, metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = file.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'(\bid="|url\(#|href="#)', rf"\1{name}-", text)
    text = re.sub(
        r'(<svg [^>]*?)width="[^"]*" height="[^"]*"', r'\1aria-hidden="true"', re.sub(r'(<svg) height="([^"]*)"', r"\1", text), count=1
    )
    text = re.sub(r' (?:width|height)="[\d.]+pt"', "", text)
    text = re.sub(r"font: ([\d.]+)px [^;\"]*", r"font-size: \1px", text)
    for i, colour in enumerate(COLOURS):
        text = text.replace(colour, f"var(--c{i})")
    return text.replace(INK, "var(--ink)").replace(GRID, "var(--line)").replace(PAPER, "var(--paper)").strip()
