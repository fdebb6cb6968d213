"""What differs between two scenarios, jobs or folders of results, and what that does to the answer."""

from __future__ import annotations

from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from sim.api.changes import Changes, lines_of
from sim.api.progress import Notebook
from sim.api.study import Study
from sim.verbs import diff as verb
from sim.verbs.diff import REPLICATIONS, Diff, DiffRequest
from sim.verbs.run import StudySource

if TYPE_CHECKING:
    from sim.plane import Engine


def diff(
    a: Study | str | PathLike[str], b: Study | str | PathLike[str], *, changes: Changes = (), changes_b: Changes = (),
    strategy: str | None = None, replications: int = REPLICATIONS, prices: str | PathLike[str] | None = None,
    folder: str | PathLike[str] | None = None, jobs: int | None = None, engine: Engine = "compiled", progress: bool = True,
) -> Diff:  # fmt: skip
    """Say what differs in the inputs of `a` and `b`, and which change accounts for how much of the difference of their answers.

    Studies, scenario files, what `import_job` reads, or folders of `run`, `sweep`, `advise` or `watch`.
    `changes` apply to both sides, `changes_b` to `b` only; `strategy` chooses one of several combinations.
    `replications`: runs of each side and each change.
    `prices`: a price list of an object store (YAML).
    `folder` keeps the answer and all rows.  Raises ScenarioError, RecordingError, FolderError, OptionError (the two cannot be compared).
    """
    listed = None if prices is None else Path(prices)
    request = DiffRequest(_given(a), _given(b), tuple(lines_of(changes)), (), tuple(lines_of(changes_b)), strategy, replications, listed)
    place = None if folder is None else Path(folder)
    return verb.diff(request, place, engine=engine, jobs=jobs, listener=Notebook(show=progress))


def _given(what: Study | str | PathLike[str]) -> Path | StudySource:
    """A study with its changes and its chosen combination, or a place."""
    return replace(what.origin, changes=what.pinned) if isinstance(what, Study) else Path(what)
