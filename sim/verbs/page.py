"""A page is written as a whole or not at all."""

from __future__ import annotations

from pathlib import Path

from sim.report.page import Page, html
from sim.whole_file import replace_text


def write_page(page: Page, file: Path) -> None:
    """One HTML file that needs no network."""
    replace_text(file, html(page))
