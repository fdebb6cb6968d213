"""`report`: results as one HTML file, of a folder that a verb kept or of a file that is run first."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from sim.report.folders import page_of
from sim.sweeps.file.definition import define
from sim.verbs import run as running
from sim.verbs import sweep as sweeping
from sim.verbs.kept import write_page
from sim.verbs.listener import Listener, Stopped

if TYPE_CHECKING:
    from sim.plane import Engine

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
    assert folder is not None  # noqa: S101 - it was given to the run
    if made is not None and _has_failed(made):
        return WrittenReport(None, made)
    try:
        write_page(page_of(folder), file)
    except KeyboardInterrupt:
        raise Stopped("nothing is kept" if made is None else f"no page is written; the results are in {folder}") from None
    written = WrittenReport(file, made)
    listener.result(written)
    return written


def _made(file: Path, engine: Engine, jobs: int | None, listener: Listener) -> Made:
    """The results of a scenario or a sweep, as `run` and `sweep` keep them."""
    definition = define(file)
    if definition.question is not None:
        return sweeping.sweep(sweeping.read_request(file, definition=definition), engine=engine, jobs=jobs, listener=listener)
    request = running.read_request(running.origin_of(file))
    return running.run(request, running.default_folder(request.study), engine=engine, jobs=jobs, listener=listener)


def _has_failed(made: Made) -> bool:
    return bool(made.comparison.errors) if isinstance(made, running.RunOutcome) else not made.failed.empty
