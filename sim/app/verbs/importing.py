"""`import`: read a real Flink job and turn it into a scenario."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, Unpack

from sim.app.verbs.common import (
    SILENT,
    Displayed,
    Listener,
    OptionError,
    Stopped,
    Work,
    parse_option,
    parse_positive_seconds,
)
from sim.app.verbs.findings import issue_remarks, known_issues_json, report_remarks
from sim.app.verbs.options import (
    Changes,
    FilePath,
    ImportOptions,
    JobPlaceOptions,
    changes_as_lines,
    path_of,
    with_all_options,
)
from sim.jobs.history.history import MissingCheckpointError
from sim.jobs.reading import RecordingSource, infer, read_source, to_document
from sim.jobs.source.recorded_job import ConfiguredJob, ImportedScenario, RecordingError
from sim.jobs.source.rest_answers import RestSnapshot, list_names
from sim.jobs.source.saved import LoneAnswer, is_free, read_lone_answer, save
from sim.model.frozen import frozen
from sim.model.scenario import Scenario
from sim.model.schema.flink_file import flink_change
from sim.model.schema.history_file import Checkpoints, write_scenario_and_history
from sim.model.schema.study import load, loads
from sim.model.schema.text import ScenarioError, with_schema_line
from sim.model.text import Address
from sim.model.units import parse_duration

# ---- Reading a job from an address, saved REST responses, a history server archive, JobManager logs, or a recording.


@frozen
class JobPlace:
    """Source of a real job, and how to read it."""

    sources: Sequence[str | PathLike[str] | Address]  # one source, or the parts of a log
    job: str | None = None  # job id; needed if the source has several jobs
    deadline: str | None = None  # live jobs: total time limit for REST requests, a duration
    headers: Mapping[str, str] = field(default_factory=dict)  # HTTP headers of every request

    def __post_init__(self) -> None:
        sources = tuple(
            Address(str(source)) if isinstance(source, str) and Address.is_address(source) else source
            for source in self.sources
        )
        object.__setattr__(self, "sources", sources)

    @property
    def is_live(self) -> bool:
        return isinstance(self.sources[0], Address)

    def read(
        self,
        sample: str,
        save: Path | None = None,
        *,
        under_way: bool = False,
        listener: Listener,
    ) -> RecordingSource:
        """Read the job.

        `sample`: how long to sample the metrics of a live job.  `save`: folder in which its REST responses are stored.
        `under_way`: also read a checkpoint in progress.

        RecordingError: not readable.  OptionError: options that conflict.
        """
        live_only = (
            ("save", save is not None),
            ("headers", bool(self.headers)),
            ("deadline", self.deadline is not None),
        )
        for option, is_given in live_only:
            if is_given and not self.is_live:
                raise OptionError(option, "is for live jobs (http://HOST:8081)")
        if self.is_live and len(self.sources) > 1:
            raise OptionError("sources", "expected one address; several sources must be parts of one log")
        if not self.is_live:
            return read_source([Path(str(name)) for name in self.sources], self.job)
        from sim.jobs.source.fetching import NoJobError

        try:
            snapshot = self._fetched(sample, save, listener, under_way=under_way)
        except NoJobError as error:  # nothing to import, but the responses of the cluster are saved
            _keep(error.snapshot, save, listener)
            raise
        _keep(snapshot, save, listener)
        return snapshot

    def lone_answer(self) -> LoneAnswer | None:
        """Return the single saved REST response that the source is, or None.  RecordingError: not readable."""
        if self.is_live or len(self.sources) > 1:
            return None
        return read_lone_answer(Path(str(self.sources[0])))

    @contextmanager
    def named(self) -> Iterator[None]:
        """Return a context that prepends the source to the message of a MissingCheckpointError."""
        try:
            yield
        except MissingCheckpointError as error:
            raise MissingCheckpointError(f"{self.sources[0]}: {error}") from None

    def _fetched(self, sample: str, save: Path | None, listener: Listener, *, under_way: bool) -> RestSnapshot:
        from sim.jobs.source.fetching import fetch

        sample_s = parse_option("sample", sample, parse_duration) / 1e9
        total_s = None if self.deadline is None else parse_positive_seconds("deadline", self.deadline)
        if save is not None:
            _create_empty_folder(save)  # fail before metrics are sampled
        address = self.sources[0]
        with _progress(listener, round(sample_s)) as (passed, answered):
            return fetch(
                address.url if isinstance(address, Address) else str(address),
                self.job,
                sample_s=sample_s,
                total_s=total_s,
                headers=dict(self.headers),
                under_way=under_way,
                watch=passed,
                answered=answered,
            )


def place_of(sources: Sequence[FilePath], options: JobPlaceOptions, deadline: str | None = None) -> JobPlace:
    """Return the job that is selected by these sources and options."""
    if not sources:
        raise TypeError("a source is needed: an address, a folder, or files")
    return JobPlace(sources, options["job"], deadline, options["headers"] or {})


@contextmanager
def _progress(listener: Listener, whole_s: int) -> Iterator[tuple[Callable[[float], None], Callable[[int], None]]]:
    """Show progress.  Yield functions to call with the sampled time [s] and with the number of REST responses."""
    seen_s = answers = 0

    def passed(seconds: float) -> None:
        nonlocal seen_s
        seen_s = round(seconds)
        watch(seen_s, seen_s)

    def answered(count: int) -> None:
        nonlocal answers
        answers = count
        watch(seen_s, seen_s)

    with listener.progress(Work("watching metrics", whole_s, whole_s, "s", lambda: f"{answers:,} answers")) as watch:
        yield passed, answered


def _create_empty_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        empty = is_free(folder)
    except OSError as error:
        raise OptionError("save", f"{folder}: {error.strerror}") from None
    if not empty:
        raise OptionError("save", f"{folder}: is not empty")


def _keep(snapshot: RestSnapshot, folder: Path | None, listener: Listener) -> None:
    if folder is None:
        return
    save(snapshot, folder)
    but = f" but {len(snapshot.missing)}, {list_names(list(snapshot.missing))}" if snapshot.missing else ""
    advice = "review them before you send them: names of operators and messages of failures are the job's own"
    listener.message(f"{folder}: all answers{but}, without the fields that ckptsim does not read; {advice}")


# ---- `import`: turning the job into a scenario.


@dataclass(frozen=True, repr=False)
class ImportedJob(Displayed):
    """The result of `import`: the scenario of a real job, its unknown inputs, and its backtest."""

    name: str
    text: str  # the scenario with its history inline; each value has a comment that names its origin
    unknown: tuple[str, ...]  # questions about the values that are marked UNKNOWN in the text
    not_modelled: tuple[str, ...]  # features of the job that the simulator lacks
    backtest: tuple[str, ...]  # lines that compare a simulation of the unchanged job with its history
    checkpoints: Checkpoints = field(repr=False)  # completed checkpoints: columns of `sim.model.schema.history_file`

    @property
    def scenarios(self) -> Sequence[Scenario]:
        return loads(self.text, self.name).scenarios

    @property
    def placed_text(self) -> str:
        """Return the scenario as `import` prints it, without a separate history file."""
        return with_schema_line(self.text, None)

    @property
    def facts(self) -> dict[str, Any]:
        """JSON-ready."""
        found = {"scenario": self.placed_text, "unknown": self.unknown, "not_modelled": self.not_modelled}
        return {**found, "known_issues": known_issues_json(self.scenarios)}

    def save(self, file: str | PathLike[str]) -> Path:
        """Write the scenario file, and next to it the history file that it names.  Return the path of the scenario."""
        write_scenario_and_history(with_schema_line(self.text, Path(file).parent), Path(file), self.checkpoints)
        return Path(file)

    def _parts(self) -> list[str]:
        lost = [f"not modelled: {line}" for line in self.not_modelled]
        lines = [*lost, *(f"UNKNOWN: {question}" for question in self.unknown), *self.backtest]
        return [f"{self.name}, {len(self.text.splitlines())} lines", "\n".join(lines)]


@with_all_options(ImportOptions)
def import_job(*sources: FilePath, listener: Listener = SILENT, **given: Unpack[ImportOptions]) -> ImportedJob:
    """Turn a real Flink job into a scenario.

    `sources`: an address (``"http://jobmanager:8081"``), a folder or zip of saved REST responses, a history server
    archive, JobManager logs, or a recording.  `out`: scenario file to write, before the backtest and again after it; the
    job's history (checkpoints, residuals, backtest) is written next to it.

    RecordingError: not readable, or no scenario can be made of it.  OptionError (a ValueError): options that conflict.
    """
    place, out = place_of(sources, given, given["deadline"]), path_of(given["out"])
    if out is not None and out.is_dir():
        raise OptionError("out", f"{out}: is a folder")
    source = place.read(given["sample"], path_of(given["save"]), listener=listener)
    draft = draft_of(source)
    name = _name(place.sources[0], source)
    checkpoints = _checkpoints(source, listener)
    imported = _imported(name, checkpoints, draft)
    if out is not None:
        imported.save(out)
    _report_gaps(draft, listener)
    report_remarks(issue_remarks(name, imported.scenarios), listener)
    if given["backtest"]:
        try:
            imported = _imported(name, checkpoints, *with_backtest(source, draft, listener))
        except KeyboardInterrupt:
            listener.result(imported)
            raise Stopped(f"{'the scenario' if out is None else out} is complete but for its backtest") from None
        if out is not None:
            imported.save(out)
    listener.result(imported)
    return imported


def scenarios_of(place: JobPlace, flink: Path | None = None, changes: Changes = ()) -> Sequence[Scenario]:
    """Return the scenarios of a file, or that of a real job.

    `flink`: a file of Flink's configuration that the scenario file is read with.  `changes`: ``key=value`` lines.  ScenarioError,
    RecordingError: a file cannot be read.  OptionError: one of them is given for a real job, whose own configuration is read.
    """
    name = str(place.sources[0])
    if name.endswith((".yaml", ".yml")):
        deployed = [] if flink is None else [flink_change(flink, Path(name))]
        return load(name, [*deployed, *changes_as_lines(changes)]).scenarios
    for option, given in (("flink", flink), ("changes", changes)):
        if given:
            raise OptionError(option, "is for scenario files: the configuration of a real job is read from the job")
    return scenarios_of_source(place.read("0 s", listener=Listener()))


def scenarios_of_source(source: RecordingSource) -> Sequence[Scenario]:
    """Return the scenarios of a source that was read already.  RecordingError: no scenario can be made of it."""
    return loads(text_of(draft_of(source))).scenarios


def import_source(source: RecordingSource, name: str, listener: Listener) -> ImportedJob:
    """Import a source that was read already, with its backtest.  RecordingError: no scenario can be made of it."""
    return _imported(name, _checkpoints(source, listener), *with_backtest(source, draft_of(source), listener))


def draft_of(source: RecordingSource) -> ImportedScenario:
    """Return the scenario document of a source."""
    return to_document(source) if isinstance(source, ConfiguredJob) else infer(source)


def with_backtest(
    source: RecordingSource, draft: ImportedScenario, listener: Listener
) -> tuple[ImportedScenario, list[str]]:
    """Return the draft with its backtest, and the lines of the backtest.  Unchanged if nothing can be compared."""
    from sim.jobs.evidence import backtest as imports
    from sim.jobs.evidence.backtest import RUNS

    with listener.progress(Work("backtest", 100, RUNS, "runs")) as watch:
        complete, lines = imports.with_backtest(
            source, draft, watch=lambda share: watch(int(share * RUNS), round(100 * share))
        )
    for line in lines:
        listener.message(line)
    return complete, lines


def text_of(draft: ImportedScenario) -> str:
    """Return the draft as the text of a scenario file, after validation.  RecordingError: the scenario is invalid."""
    try:
        loads(draft.text, "imported")
    except ScenarioError as error:
        problems = "; ".join(str(problem).removeprefix("imported:") for problem in error.problems[:3])
        raise RecordingError(f"no valid scenario can be made of the source: {problems}") from None
    return draft.text


def _checkpoints(source: RecordingSource, listener: Listener) -> Checkpoints:
    """Return the completed checkpoints of a source; {} after a message if they are malformed."""
    from sim.jobs.evidence.backtest import checkpoints_of

    try:
        return checkpoints_of(source)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        listener.message(f"no checkpoint history: the checkpoint statistics are malformed: {error!r}")
        return {}


def _imported(name: str, checkpoints: Checkpoints, draft: ImportedScenario, lines: Sequence[str] = ()) -> ImportedJob:
    return ImportedJob(name, text_of(draft), draft.unknown, draft.not_modelled, tuple(lines), checkpoints)


def _report_gaps(draft: ImportedScenario, listener: Listener) -> None:
    """Report what the scenario leaves out, and what to check in it."""
    for lost in draft.not_modelled:
        listener.message(f"not modelled: {lost}")
    for warning in draft.warnings:
        listener.message(warning)
    if draft.counts_text:
        listener.message(f"{draft.counts_text}{':' if draft.unknown else ''}")
        for question in draft.unknown:
            listener.message(f"  {question}")


def _name(first: str | PathLike[str] | Address, source: RecordingSource) -> str:
    if isinstance(source, ConfiguredJob):
        return source.name
    return "job" if isinstance(first, Address) else Path(first).name.partition(".")[0]
