"""``ckptsim report``: results as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sim.cli.console.errors import Code, print_message, speaking, stoppable
from sim.cli.run import run_scenarios
from sim.cli.sweep import run_sweep


def write_report(
    results: Annotated[
        Path,
        typer.Argument(metavar="FOLDER|FILE", help="What run, sweep or advise kept; or a file, which is run first.", show_default=False),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write (.html).", show_default=False)],
) -> None:
    """Write results as one HTML file, to be read anywhere and handed on."""
    with speaking():
        folder = _run(results) if results.is_file() else results
        with stoppable("nothing is kept" if folder == results else f"no page is written; the results are in {folder}"):
            from sim.report.folders import page_of
            from sim.report.page import html
            from sim.whole_file import replace_text

            replace_text(out, html(page_of(folder)))
            print_message(str(out))


def _run(file: Path) -> Path:
    """The folder of the results of a scenario or a sweep, run as `run` or `sweep` does; what was found to be wrong is on the page, too."""
    from sim.cells.folder_name import run_folder
    from sim.sweeps.file.definition import define

    definition = define(file)
    folder = Path("runs") / run_folder(definition.name, definition.scenarios)
    try:
        if definition.question is None:
            run_scenarios([file], out=folder)
        else:
            run_sweep(file, out=folder)
    except typer.Exit as end:
        if end.exit_code not in {Code.FINE, Code.EXPECTATION_FAILED, Code.VIOLATED}:
            raise
    return folder
