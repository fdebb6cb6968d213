"""``ckptsim report``: results as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sim.cli.console.errors import print_message, speaking, stoppable

__all__ = ["write_report"]


def write_report(
    results: Annotated[Path, typer.Argument(metavar="FOLDER", help="What run, sweep or advise kept.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write (.html).", show_default=False)],
) -> None:
    """Write results as one HTML file, to be read anywhere and handed on."""
    with speaking(), stoppable("nothing is kept"):
        from sim.report.folders import page_of
        from sim.report.page import html
        from sim.whole_file import replace_text

        replace_text(out, html(page_of(results)))
        print_message(str(out))
