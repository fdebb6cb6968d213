"""`timeline`: write a checkpoint as an animation.  `report`: write results as an HTML page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Unpack

from sim.app.report.job_page import job_page
from sim.app.report.results_page import page_of, provenance_text
from sim.app.verbs.common import SILENT, Listener, OptionError, stoppable
from sim.app.verbs.explain import choose_strategies, is_real, rerun_observed
from sim.app.verbs.findings import with_provenance, write_page
from sim.app.verbs.importing import place_of
from sim.app.verbs.options import (
    FilePath,
    ReportOptions,
    TimelineOptions,
    changes_as_lines,
    command_line,
    refuse_others,
    with_all_options,
)
from sim.explain.player import choose_checkpoints, describe
from sim.jobs.history.explanation import answer
from sim.jobs.history.reading import history_of
from sim.model.text import without_credentials
from sim.results.page import Block, Page
from sim.studies.run_folder import FolderError, Runs, runs_of

# ---- `timeline`: one checkpoint as an animation.


@with_all_options(TimelineOptions)
def animate(name: str, file: Path, *, listener: Listener = SILENT, **given: Unpack[TimelineOptions]) -> Path:
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
    runs = runs_of(Path(name), changes_as_lines(given["changes"]))
    command = command_line("timeline", [Path(name), "-o", file], TimelineOptions, given)
    page = player_page(runs, given["checkpoint"], given["strategy"], command=command, listener=listener)
    write_page(page, file)
    listener.result(file)
    return file


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


# ---- `report` of a results folder, or of a real job.


@with_all_options(ReportOptions)
def write_report(
    source: FilePath, file: FilePath, *, listener: Listener = SILENT, **given: Unpack[ReportOptions]
) -> Path:
    """Write the page of a results folder or of a real job as a self-contained HTML file, and return its path.

    `source`: a folder written by `run`, `sweep`, `advise` or `diff`, or a source that `import_job` reads.

    FolderError (a ValueError): no readable results.  OptionError (a ValueError): an option does not apply to this kind of
    source.  RecordingError, LookupError: as of `explain_job`.
    """
    name, file, checkpoint = str(source), Path(file), given["checkpoint"]
    if is_real(name):
        place = place_of([name], given, given["deadline"])
        read = place.read("0 s", under_way=True, listener=listener)
        command = command_line("report", [name if place.is_live else Path(name), "-o", file], ReportOptions, given)
        with place.named():
            page = job_page(answer(history_of(read), checkpoint), command, provenance_text(with_provenance({})))
    else:
        refuse_others(ReportOptions, given, "simulated runs")
        with stoppable("nothing is kept"):
            page = page_of(Path(name))
            if checkpoint is not None:
                player = player_page(runs_of(Path(name)), checkpoint, listener=listener)
                page = replace(page, blocks=[*page.blocks, *player.blocks])
    write_page(page, file)
    listener.result(file)
    return file
