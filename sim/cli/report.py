"""``ckptsim report``: results as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sim.cli.console.errors import Code, print_message, speaking
from sim.cli.console.listener import Console
from sim.cli.console.terminal import put
from sim.cli.run import show_run
from sim.cli.sweep import show_sweep

if TYPE_CHECKING:
    from sim.verbs.report import Made, WrittenReport


def write_report(
    results: Annotated[
        Path,
        typer.Argument(metavar="FOLDER|FILE", help="What run, sweep or advise kept; or a file, which is run first.", show_default=False),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write (.html).", show_default=False)],
) -> None:
    """Write results as one HTML file, to be read anywhere and handed on."""
    with speaking():
        from sim.verbs.report import write_report as write

        console = Console(_show)
        written = write(results, out, listener=console)
        console.finish()
        if written.file is None:
            raise typer.Exit(Code.CELLS_FAILED)


def _show(found: WrittenReport | Made) -> None:
    """What is run for the page, as its verb shows it."""
    from sim.verbs.report import WrittenReport
    from sim.verbs.sweep import Sweep

    if isinstance(found, WrittenReport):
        print_message(str(found.file))
    elif isinstance(found, Sweep):
        show_sweep(found)
        put(found.counted)
    else:
        show_run(found)
        print_message(str(found.folder))
