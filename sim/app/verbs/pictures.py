"""`timeline` and `report`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from sim.app.report.job_page import job_page
from sim.app.report.results_page import page_of, provenance_text
from sim.app.verbs import run as running
from sim.app.verbs import sweep as sweeping
from sim.app.verbs.common import Listener, OptionError, Stopped, command_line, parsed
from sim.app.verbs.explain import chosen_of, watched
from sim.app.verbs.findings import with_provenance, write_page
from sim.app.verbs.importing import JobPlace
from sim.explain.timeline import WindowError, document, samples_in, timeline
from sim.jobs.history.explanation import answer
from sim.jobs.history.history import MissingCheckpointError, durations_ms
from sim.jobs.history.reading import history_of
from sim.jobs.history.timeline import job_document, job_timeline, window_of
from sim.model.files import replace_text
from sim.model.units import MS, format_duration, parse_duration
from sim.results.page import Block
from sim.studies.sweeps.sweep_file import define

if TYPE_CHECKING:
    from sim.explain.timeline import Samples
    from sim.jobs.reading import RecordingSource
    from sim.plane import Engine
    from sim.studies.run_folder import Runs


# ---- `timeline`: a simulated run is run again and written as Trace Event JSON, which viewers of timelines open.

MOST_EVENTS = 300_000
"""Viewers open about a million."""


@dataclass(frozen=True, slots=True, repr=False)
class WrittenTimeline:
    """A file for ui.perfetto.dev, and what it shows."""

    file: Path
    strategy: str
    others: tuple[str, ...]  # strategies that it does not show
    events: int
    left_out: int  # events behind `end`, beyond the limit
    end: str  # such as "3 s"

    def __repr__(self) -> str:
        rest = f", {self.left_out} events behind it are left out" if self.left_out else ""
        return (
            f"{self.file}: {self.strategy} until {self.end}, {self.events} events{rest}; open it with ui.perfetto.dev"
        )


def write_timeline(
    runs: Runs,
    file: Path,
    *,
    strategy: str | None = None,
    begin: str = "0 s",
    end: str | None = None,
    step: str | None = None,
    limit: int = MOST_EVENTS,
    engine: Engine = "compiled",
    listener: Listener | None = None,
) -> WrittenTimeline:
    """Draw the strategy, or the first, between `begin` and `end` with a look at threads and queues every `step` (a thousandth).

    OptionError: no such strategy, or a window that shows nothing.  NoCheckpointError: none takes checkpoints.
    """
    listener = listener or Listener()
    (name, scenario), *others = chosen_of(runs, strategy, listener).items()
    samples = _samples(scenario.run.duration_ns, begin, end, step)
    close_up = watched(name, scenario, engine, listener, samples.attach)
    drawn = timeline(close_up.instances, samples, limit)
    replace_text(file, document(name, scenario, samples, drawn))
    cut = format_duration(drawn.end_ns // MS * MS)
    written = WrittenTimeline(file, name, tuple(other for other, _ in others), len(drawn.events), drawn.left_out, cut)
    listener.result(written)
    return written


def _samples(run_ns: int, begin: str, end: str | None, step: str | None) -> Samples:
    begin_ns = parsed("begin", begin, parse_duration)
    end_ns = None if end is None else parsed("end", end, parse_duration)
    step_ns = None if step is None else parsed("step", step, parse_duration)
    try:
        return samples_in(run_ns, begin_ns, end_ns, step_ns)
    except WindowError as error:
        raise OptionError(error.part, f"{begin}: {error.reason}" if error.part == "begin" else error.reason) from None


# ---- `report`: results as one HTML file, of a folder that a verb kept or of a file that is run first.

Made: TypeAlias = running.RunOutcome | sweeping.Sweep


@dataclass(frozen=True, slots=True)
class WrittenReport:
    """A page that was written, and the results that were made for it."""

    file: Path | None  # None: cells failed, and a page would show less than was asked for
    made: Made | None = None  # None: the results were there


def write_report(
    results: Path, file: Path, *, engine: Engine = "compiled", jobs: int | None = None, listener: Listener | None = None
) -> WrittenReport:
    """`results`: what `run`, `sweep` or `advise` kept; or a scenario or a sweep, which is run first and kept.

    FolderError: no results, or none that can be read.  ScenarioError: mistakes in a file.
    """
    listener = listener or Listener()
    made = _made(results, engine, jobs, listener) if results.is_file() else None
    folder = results if made is None else made.folder
    assert folder is not None
    if made is not None and _has_failed(made):
        return WrittenReport(None, made)
    try:
        write_page(page_of(folder), file)
    except KeyboardInterrupt:
        raise Stopped(
            "nothing is kept" if made is None else f"no page is written; the results are in {folder}"
        ) from None
    written = WrittenReport(file, made)
    listener.result(written)
    return written


def _made(file: Path, engine: Engine, jobs: int | None, listener: Listener) -> Made:
    """The results of a scenario or a sweep, as `run` and `sweep` keep them."""
    definition = define(file)
    if definition.question is not None:
        return sweeping.sweep(
            sweeping.read_request(file, definition=definition), engine=engine, jobs=jobs, listener=listener
        )
    request = running.read_request(running.origin_of(file))
    return running.run(request, running.default_folder(request.study), engine=engine, jobs=jobs, listener=listener)


def _has_failed(made: Made) -> bool:
    return bool(made.comparison.errors) if isinstance(made, running.RunOutcome) else not made.failed.empty


# ---- `report` and `timeline` of a real job: what its checkpoints spent their time on, as a page and as tracks.


def report_job(
    place: JobPlace,
    file: Path,
    *,
    checkpoint: int | None = None,
    verify: bool = False,
    listener: Listener | None = None,
) -> WrittenReport:
    """`explain` of the same job as one HTML file.  Errors are those of `explain_job`."""
    listener = listener or Listener()
    source = place.read("60 s" if verify else "0 s", under_way=True, listener=listener)
    options = {"checkpoint": checkpoint, "job": place.job, "verify": verify, "out": file}
    command = command_line(
        "report", [str(name) if place.is_live else Path(str(name)) for name in place.sources], options
    )
    with place.named():
        return report_source(source, file, checkpoint, verify=verify, command=command, listener=listener)


def report_source(
    source: RecordingSource,
    file: Path,
    checkpoint: int | None = None,
    *,
    verify: bool = False,
    command: str = "",
    listener: Listener | None = None,
) -> WrittenReport:
    """The page of what was read before.  RecordingError: to verify, and no scenario comes of it."""
    listener = listener or Listener()
    found = answer(history_of(source), checkpoint)
    blocks: list[Block] = []
    if verify:
        from sim.app.verbs.explain import helped

        changes = helped(source, found.accounts, durations_ms(found.history), listener)
        blocks.append(Block("What would have helped", changes.how_sure, changes.table))
    write_page(job_page(found, blocks, command, provenance_text(with_provenance({}))), file)
    written = WrittenReport(file)
    listener.result(written)
    return written


def draw_job(
    place: JobPlace,
    file: Path,
    *,
    checkpoint: int | None = None,
    begin: str = "0 s",
    end: str | None = None,
    limit: int = MOST_EVENTS,
    listener: Listener | None = None,
) -> WrittenTimeline:
    """Draw checkpoints of a job between `begin` and `end` since the first known one, or one of them.  Errors are those of `explain_job`."""
    listener = listener or Listener()
    source = place.read("0 s", under_way=True, listener=listener)
    with place.named():
        return draw_source(source, file, checkpoint, begin=begin, end=end, limit=limit, listener=listener)


def draw_source(
    source: RecordingSource,
    file: Path,
    checkpoint: int | None = None,
    *,
    begin: str = "0 s",
    end: str | None = None,
    limit: int = MOST_EVENTS,
    listener: Listener | None = None,
) -> WrittenTimeline:
    """The timeline of what was read before.  OptionError: a window that shows nothing."""
    history = history_of(source)
    if not history.detailed:
        raise MissingCheckpointError("no statistics of subtasks are known: there is nothing to draw")
    begin_ns = parsed("begin", begin, parse_duration)
    end_ns = None if end is None else parsed("end", end, parse_duration)
    try:
        window = window_of(history, checkpoint, begin_ns, end_ns)
    except WindowError as error:
        raise OptionError(error.part, f"{begin}: {error.reason}") from None
    drawn = job_timeline(history, window, limit)
    replace_text(file, job_document(history, drawn))
    cut = format_duration(drawn.end_ns // MS * MS)
    written = WrittenTimeline(
        file, history.strategy or "barriers not known", (), len(drawn.events), drawn.left_out, cut
    )
    (listener or Listener()).result(written)
    return written
