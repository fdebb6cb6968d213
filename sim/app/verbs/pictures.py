"""`timeline`: write a checkpoint as an animation.  `report`: write results as an HTML page."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from sim.app.report.job_page import job_page
from sim.app.report.results_page import page_of, provenance_text
from sim.app.verbs.common import SILENT, Listener, OptionError, stoppable
from sim.app.verbs.explain import choose_strategies, is_real, rerun_observed
from sim.app.verbs.findings import with_provenance, write_page
from sim.app.verbs.importing import place_of
from sim.app.verbs.options import (
    ReportOptions,
    TimelineOptions,
    command_line,
    lines_of,
    refuse_others,
    with_all_options,
)
from sim.explain.player import choose_checkpoints, describe
from sim.jobs.history.explanation import answer
from sim.jobs.history.reading import history_of
from sim.model.text import without_credentials
from sim.results.page import Block, Page
from sim.studies.run_folder import FolderError, runs_of

if TYPE_CHECKING:
    from sim.jobs.reading import RecordingSource
    from sim.studies.run_folder import Runs


# ---- `timeline`: one checkpoint as an animation.


@with_all_options(TimelineOptions)
def animate(name: str, file: Path, *, listener: Listener = SILENT, **given: Unpack[TimelineOptions]) -> WrittenReport:
    """Write one checkpoint of a scenario file or a results folder as an animation.

    FolderError: `name` is a real job, or has no results.  OptionError: `file` is not an HTML file.  Other errors are those of
    `player_page`.
    """
    if is_real(name):
        raise FolderError(
            f"{without_credentials(name)}: timelines show simulated runs only: ckptsim report and ckptsim explain show the checkpoints of a "
            "real job, and ckptsim import turns it into a scenario"
        )
    if file.suffix.lower() != ".html":
        raise OptionError(
            "out", f"{file}: expected a file that ends in .html: one checkpoint is written as an animation"
        )
    runs = runs_of(Path(name), lines_of(given["changes"]))
    command = command_line("timeline", [Path(name), "-o", file], TimelineOptions, given)
    page = player_page(runs, given["checkpoint"], given["strategy"], command=command, listener=listener)
    return _written(page, file, listener)


# ---- The animation of one checkpoint, for `timeline`, `report` and notebooks: two more runs of each strategy.


def player_page(
    runs: Runs,
    checkpoint: int | None = None,
    strategy: str | None = None,
    *,
    command: str = "",
    listener: Listener = SILENT,
) -> Page:
    """Return a page that animates a checkpoint of the first strategy (default: its slowest), and of the others at that time.

    `strategy`: only this one.  OptionError: no such strategy.  NoCheckpointError: no such checkpoint.
    """
    scenarios = choose_strategies(runs, strategy, listener)
    again = {name: rerun_observed(name, scenario, listener) for name, scenario in scenarios.items()}
    with stoppable("nothing is kept"):
        player = describe(choose_checkpoints(again, checkpoint))
    title = f"Checkpoint {player['runs'][0]['checkpoint']}"
    return Page(
        f"{title} of {runs.name}", runs.question, "", [Block(f"{title} as it ran", player=player)], command=command
    )


# ---- `report` of a results folder.


@dataclass(frozen=True, slots=True)
class WrittenReport:
    """The result of `report`."""

    file: Path


@with_all_options(ReportOptions)
def report(name: str, *, listener: Listener = SILENT, **given: Unpack[ReportOptions]) -> WrittenReport:
    """Write the page of a results folder, or of a real job.

    OptionError: an option does not apply to this kind of input.  Other errors are those of `write_report` and `explain`.
    """
    file, checkpoint = Path(given["out"]), given["checkpoint"]
    if not is_real(name):
        refuse_others(ReportOptions, given, "simulated runs")
        return write_report(Path(name), file, checkpoint, listener=listener)
    place = place_of([name], given, given["deadline"])
    source = place.read("0 s", under_way=True, listener=listener)
    command = command_line("report", [name if place.is_live else Path(name)], ReportOptions, {**given, "out": file})
    with place.named():
        return report_source(source, file, checkpoint, command=command, listener=listener)


def write_report(
    folder: Path, file: Path, checkpoint: int | None = None, *, listener: Listener = SILENT
) -> WrittenReport:
    """Write the page of a results folder.

    `checkpoint`: animate it, see `player_page`.  FolderError: no readable results.
    """
    with stoppable("nothing is kept"):
        page = page_of(folder)
        if checkpoint is not None:
            page = replace(
                page, blocks=[*page.blocks, *player_page(runs_of(folder), checkpoint, listener=listener).blocks]
            )
        return _written(page, file, listener)


def _written(page: Page, file: Path, listener: Listener) -> WrittenReport:
    write_page(page, file)
    written = WrittenReport(file)
    listener.result(written)
    return written


# ---- `report` of a real job.


def report_source(
    source: RecordingSource,
    file: Path,
    checkpoint: int | None = None,
    *,
    command: str = "",
    listener: Listener = SILENT,
) -> WrittenReport:
    """Write the page of a source that was read already."""
    found = answer(history_of(source), checkpoint)
    return _written(job_page(found, command, provenance_text(with_provenance({}))), file, listener)
