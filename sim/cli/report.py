"""``ckptsim report``: results as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sim.cli.console.errors import Code, print_message, speaking, stoppable
from sim.cli.console.listener import Console
from sim.cli.console.overview import Purpose, Verb
from sim.cli.console.terminal import put
from sim.cli.explain import refuse
from sim.cli.options import DeadlineOption, HeaderOption, JobOption, job_place
from sim.cli.run import show_run
from sim.cli.sweep import show_sweep

if TYPE_CHECKING:
    from sim.verbs.report import Made, WrittenReport

WHAT = "What run, sweep or advise kept; or a file, which is run first.  Of a real job: http(s)://HOST:8081, or whatever else import reads."


def write_report(
    results: Annotated[str, typer.Argument(metavar="FOLDER|FILE|URL", help=WHAT, show_default=False)],
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write (.html).", show_default=False)],
    checkpoint: Annotated[
        int | None, typer.Option(min=1, help="Of a real job, its id. (Default: the slow ones.)", show_default=False)
    ] = None,
    verify: Annotated[bool, typer.Option("--verify", help="Of a real job: simulate what would have helped.")] = False,
    job: JobOption = None,
    deadline: DeadlineOption = None,
    header: HeaderOption = None,
) -> None:
    """Write results, or what a real job's checkpoints spent their time on, as one HTML file."""
    with speaking():
        from sim.verbs.explain import is_real
        from sim.verbs.job_pictures import report_job
        from sim.verbs.report import write_report as write

        console = Console(_show)
        if is_real(results):
            with stoppable("nothing is kept"):
                place = job_place([results], job, deadline, header)
                written = report_job(place, out, checkpoint=checkpoint, verify=verify, listener=console)
        else:
            given = {"checkpoint": checkpoint is not None, "verify": verify, "job": job is not None}
            refuse("is for real jobs", **given, deadline=deadline is not None, header=bool(header))
            written = write(Path(results), out, listener=console)
        console.finish()
        if written.file is None:
            raise typer.Exit(Code.CELLS_FAILED)


def _show(found: WrittenReport | Made) -> None:
    """Print the results that were made for the page, as their verb does."""
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


VERB = Verb("report", Purpose.WHY, 3, "Write results as one HTML file.", write_report)
