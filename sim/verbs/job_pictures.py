"""`report` and `timeline` of a real job: what its checkpoints spent their time on, as a page and as tracks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sim.history.answer import answer
from sim.history.choice import MissingCheckpointError
from sim.history.history import durations_ms
from sim.history.reading import history_of
from sim.report.job_page import job_page
from sim.report.page import Block
from sim.report.results import provenance_text
from sim.timeline.document import WindowError
from sim.timeline.of_job import job_document, job_timeline, window_of
from sim.units import MS, format_duration, parse_duration
from sim.verbs.command_lines import command_line
from sim.verbs.job_place import JobPlace
from sim.verbs.kept import with_provenance, write_page
from sim.verbs.listener import Listener
from sim.verbs.options import OptionError, parsed
from sim.verbs.report import WrittenReport
from sim.verbs.timeline import MOST_EVENTS, WrittenTimeline
from sim.whole_file import replace_text

if TYPE_CHECKING:
    from sim.recordings.reading import RecordingSource


def report_job(
    place: JobPlace, file: Path, *, checkpoint: int | None = None, verify: bool = False, listener: Listener | None = None
) -> WrittenReport:
    """`explain` of the same job as one HTML file.  Errors are those of `explain_job`."""
    listener = listener or Listener()
    source = place.read("60 s" if verify else "0 s", under_way=True, listener=listener)
    options = {"checkpoint": checkpoint, "job": place.job, "verify": verify, "out": file}
    command = command_line("report", [str(name) if place.is_live else Path(str(name)) for name in place.sources], options)
    with place.named():
        return report_source(source, file, checkpoint, verify=verify, command=command, listener=listener)


def report_source(
    source: RecordingSource, file: Path, checkpoint: int | None = None, *, verify: bool = False, command: str = "",
    listener: Listener | None = None,
) -> WrittenReport:  # fmt: skip
    """The page of what was read before.  RecordingError: to verify, and no scenario comes of it."""
    listener = listener or Listener()
    found = answer(history_of(source), checkpoint)
    blocks: list[Block] = []
    if verify:
        from sim.verbs.helped import helped

        changes = helped(source, found.accounts, durations_ms(found.history), listener)
        blocks.append(Block("What would have helped", changes.how_sure, changes.table))
    write_page(job_page(found, blocks, command, provenance_text(with_provenance({}))), file)
    written = WrittenReport(file)
    listener.result(written)
    return written


def draw_job(
    place: JobPlace, file: Path, *, checkpoint: int | None = None, begin: str = "0 s", end: str | None = None, limit: int = MOST_EVENTS,
    listener: Listener | None = None,
) -> WrittenTimeline:  # fmt: skip
    """Draw checkpoints of a job between `begin` and `end` since the first known one, or one of them.  Errors are those of `explain_job`."""
    listener = listener or Listener()
    source = place.read("0 s", under_way=True, listener=listener)
    with place.named():
        return draw_source(source, file, checkpoint, begin=begin, end=end, limit=limit, listener=listener)


def draw_source(
    source: RecordingSource, file: Path, checkpoint: int | None = None, *, begin: str = "0 s", end: str | None = None,
    limit: int = MOST_EVENTS, listener: Listener | None = None,
) -> WrittenTimeline:  # fmt: skip
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
    written = WrittenTimeline(file, history.strategy or "barriers not known", (), len(drawn.events), drawn.left_out, cut)
    (listener or Listener()).result(written)
    return written
