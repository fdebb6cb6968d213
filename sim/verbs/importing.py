"""`import`: a real job becomes a scenario, read off Flink's REST API, what was saved of it, logs, or a recording."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from sim.recordings import Import, Inference, Recording, compared, infer, read_source, to_document
from sim.recordings.source.files import RecordingError
from sim.scenario import ScenarioError, loads, write
from sim.scenario.history.file import Checkpoints, write_parted
from sim.scenario.text.writer import placed
from sim.units import parse_duration
from sim.verbs.listener import Listener, Stopped
from sim.verbs.options import OptionError, parsed

if TYPE_CHECKING:
    from sim.recordings import RestSnapshot
    from sim.recordings.reading import RecordingSource

Draft: TypeAlias = Import | Inference
"""The document of a scenario before it is text: of a recording its configuration, of any other source what was measured."""


@dataclass(frozen=True, slots=True)
class ImportedJob:
    """An import: the scenario of a real job, its unknown inputs, and its backtest."""

    name: str
    text: str  # the scenario with its history in it; every value says where it comes from
    unknown: tuple[str, ...]  # questions that the source does not answer: marked UNKNOWN in the text
    not_modelled: tuple[str, ...]
    backtest: tuple[str, ...]  # the simulation of the job as it is against its own history, in lines
    checkpoints: Checkpoints = field(repr=False)  # that were seen: columns of `sim.scenario.history.file`
    source: RecordingSource = field(repr=False, compare=False)  # what it was read from

    def save(self, file: str | PathLike[str]) -> Path:
        """Write the scenario file and, beside it, the history that it names; returns its path."""
        write_parted(placed(self.text, Path(file).parent), Path(file), self.checkpoints)
        return Path(file)


def import_job(
    sources: Sequence[str | PathLike[str]], *, job: str | None = None, out: Path | None = None, sample: str = "60 s",
    deadline: str | None = None, save: Path | None = None, keep_secrets: bool = False, headers: Mapping[str, str] | None = None,
    compare: bool = False, backtest: bool = True, listener: Listener | None = None,
) -> ImportedJob:  # fmt: skip
    """Read a job; `out` keeps the scenario and, beside it, its history, before its backtest and with it.

    Live jobs: metrics are watched for `sample`, all questions end at the `deadline`, and `save` keeps all answers in a folder.
    RecordingError: not readable, or no scenario comes of it.  OptionError: what does not go together.
    """
    listener = listener or Listener()
    if out is not None and out.is_dir():
        raise OptionError("out", f"{out}: is a folder")
    source = source_of(sources, job, sample, deadline, headers or {}, save, keep_secrets=keep_secrets, listener=listener)
    draft = draft_of(source, compare=compare)
    name = _name(sources[0], source)
    seen = _checkpoints(source, listener)
    found = _imported(name, source, seen, draft)
    if out is not None:
        found.save(out)
    _tell(draft, listener)
    if backtest:
        try:
            found = _imported(name, source, seen, *with_backtest(source, draft, listener))
        except KeyboardInterrupt:
            listener.result(found)
            raise Stopped(f"{'the scenario' if out is None else out} is complete but for its backtest") from None
        if out is not None:
            found.save(out)
    listener.result(found)
    return found


def import_source(source: RecordingSource, name: str, listener: Listener) -> ImportedJob:
    """The import of a source that was read before, with its backtest.  RecordingError: no scenario comes of it."""
    return _imported(name, source, _checkpoints(source, listener), *with_backtest(source, draft_of(source), listener))


def draft_of(source: RecordingSource, *, compare: bool = False) -> Draft:
    """`compare`: under three kinds of barriers instead of its own."""
    if isinstance(source, Recording):
        return to_document(source, compare=compare)
    return compared(infer(source)) if compare else infer(source)


def with_backtest(source: RecordingSource, draft: Draft, listener: Listener) -> tuple[Draft, list[str]]:
    """The scenario with its backtest, and the lines of the backtest; unchanged if nothing can be compared."""
    from sim.evidence.backtest import imports
    from sim.evidence.backtest.runs import RUNS

    with listener.progress("backtest", 100, RUNS, what_each="runs") as watch:
        complete, lines = imports.with_backtest(source, draft, watch=lambda share: watch(int(share * RUNS), round(100 * share)))
    for line in lines:
        listener.message(line)
    return complete, lines


def text_of(draft: Draft) -> str:
    """The text of the scenario, which is checked to run as it is.  RecordingError: it would not."""
    text = write(draft.document, draft.question, draft.comments)
    try:
        loads(text, "imported")
    except ScenarioError as error:
        problems = "; ".join(str(problem).removeprefix("imported:") for problem in error.problems[:3])
        raise RecordingError(f"no valid scenario can be made of the source: {problems}") from None
    return text


def _checkpoints(source: RecordingSource, listener: Listener) -> Checkpoints:
    """The completed checkpoints that a source tells of."""
    from sim.evidence.backtest.imports import checkpoints_of

    try:
        return checkpoints_of(source)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        listener.message(f"no history of checkpoints: they cannot be understood: {error!r}")
        return {}


def _imported(name: str, source: RecordingSource, seen: Checkpoints, draft: Draft, lines: Sequence[str] = ()) -> ImportedJob:
    unknown = tuple(map(str, draft.unknown)) if isinstance(draft, Inference) else ()
    return ImportedJob(name, text_of(draft), unknown, tuple(map(str, draft.not_modelled)), tuple(lines), seen, source)


def _tell(draft: Draft, listener: Listener) -> None:
    """Report what the file does not hold, and what to check in it."""
    for lost in draft.not_modelled:
        listener.message(f"not modelled: {lost}")
    for flow in getattr(draft, "unbalanced", ()):
        listener.message(f"a flow does not balance: {flow}")
    if isinstance(draft, Inference):
        for load in draft.scarce:
            listener.message(f"cores are scarce: {load}")
        listener.message(f"{draft.inferred} values with a source, {len(draft.unknown)} UNKNOWN{':' if draft.unknown else ''}")
        for question in draft.unknown:
            listener.message(f"  {question}")


def source_of(
    sources: Sequence[str | PathLike[str]], job: str | None, sample: str, deadline: str | None, headers: Mapping[str, str],
    save: Path | None = None, *, keep_secrets: bool = False, under_way: bool = False, listener: Listener,
) -> RecordingSource:  # fmt: skip
    """Read what is known of a job.  `under_way`: of a live one, also of a checkpoint that has not ended.

    RecordingError: not readable.  OptionError: what does not go together.
    """
    first = str(sources[0])
    is_live = "://" in first
    for option, is_given in (("save", save is not None), ("headers", bool(headers)), ("deadline", deadline is not None)):
        if is_given and not is_live:
            raise OptionError(option, "is for live jobs (http://HOST:8081)")
    if keep_secrets and save is None:
        raise OptionError("keep_secrets", "is for saved answers: scenarios are written from masked ones")
    if is_live and len(sources) > 1:
        raise OptionError("sources", "one address at a time; only the parts of a log go together")
    if not is_live:
        return read_source([Path(name) for name in sources], job)
    from sim.recordings.source.rest.fetching import NoJobError

    try:
        snapshot = _fetched(first, job, sample, deadline, headers, save, listener, under_way=under_way)
    except NoJobError as error:  # nothing to import, but answers of the cluster
        _keep(error.snapshot, save, listener, keep_secrets=keep_secrets)
        raise
    _keep(snapshot, save, listener, keep_secrets=keep_secrets)
    return snapshot


def _fetched(
    url: str, job: str | None, sample: str, deadline: str | None, headers: Mapping[str, str], save: Path | None, listener: Listener, *,
    under_way: bool,
) -> RestSnapshot:  # fmt: skip
    from sim.recordings import fetch

    sample_s = parsed("sample", sample, parse_duration) / 1e9
    total_s = None if deadline is None else parsed("deadline", deadline, parse_duration) / 1e9
    if total_s is not None and total_s <= 0:
        raise OptionError("deadline", "expected more than nothing")
    if save is not None:
        _make_new(save)  # before the job is watched
    with listener.progress("watching metrics", round(sample_s), round(sample_s), what_each="s") as watch:
        return fetch(
            url, job, sample_s=sample_s, total_s=total_s, headers=dict(headers), under_way=under_way,
            watch=lambda passed: watch(round(passed), round(passed)),
        )  # fmt: skip


def _make_new(folder: Path) -> None:
    from sim.recordings.source.rest.saved import is_free

    try:
        folder.mkdir(parents=True, exist_ok=True)
        empty = is_free(folder)
    except OSError as error:
        raise OptionError("save", f"{folder}: {error.strerror}") from None
    if not empty:
        raise OptionError("save", f"{folder}: is not empty")


def _keep(snapshot: RestSnapshot, folder: Path | None, listener: Listener, *, keep_secrets: bool) -> None:
    from sim.recordings import save
    from sim.recordings.source.rest.snapshot import first_names

    if folder is None:
        return
    count = save(snapshot, folder, keep_secrets=keep_secrets)
    secrets = "secrets included" if keep_secrets else f"{count} secret{'' if count == 1 else 's'} masked"
    but = f" but {len(snapshot.missing)}, {first_names(list(snapshot.missing))}" if snapshot.missing else ""
    advice = "look through them before you send them: they hold the configuration of the cluster"
    listener.message(f"{folder}: all answers{but}, {secrets}; {advice}")


def _name(first: str | PathLike[str], source: RecordingSource) -> str:
    if isinstance(source, Recording):
        return source.name
    return "job" if "://" in str(first) else Path(first).name.partition(".")[0]
