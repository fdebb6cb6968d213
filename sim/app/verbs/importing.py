"""`import`: where a job is found, and its scenario."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack

from sim.app.verbs.common import Listener, OptionError, Stopped, parsed
from sim.app.verbs.findings import issue_remarks, known_issues_json, tell
from sim.app.verbs.options import ImportOptions, JobPlaceOptions, path_of, with_defaults
from sim.jobs.history.history import MissingCheckpointError
from sim.jobs.infer.draft import Inference
from sim.jobs.infer.options import with_flink_file
from sim.jobs.observations import compared
from sim.jobs.reading import infer, read_source, to_document
from sim.jobs.source.recorded_job import ConfiguredJob, Import, RecordingError
from sim.jobs.source.saved import LoneAnswer, read_lone_answer
from sim.model.schema.flink_file import FILE, FlinkFile, flink_change, read_flink_file
from sim.model.schema.flink_text import option_values
from sim.model.schema.history_file import Checkpoints, write_scenario_and_history
from sim.model.schema.study import load, loads
from sim.model.schema.text import ScenarioError
from sim.model.schema.writer import placed, write
from sim.model.text import Address
from sim.model.units import parse_duration

if TYPE_CHECKING:
    from sim.app.verbs.options import FilePath
    from sim.jobs.reading import RecordingSource
    from sim.jobs.source.rest_answers import RestSnapshot
    from sim.model.scenario import Scenario


# ---- A real job and how it is read: an address, a folder or zip of saved answers, an archive, logs of a JobManager, or a recording.


@dataclass(frozen=True, slots=True)
class JobPlace:
    """Where a job is read, and how it is asked for."""

    sources: Sequence[str | PathLike[str] | Address]
    job: str | None = None  # its id, where there are several
    deadline: str | None = None  # of a live one: the end of all questions, a duration
    headers: Mapping[str, str] = field(default_factory=dict)  # sent with every question

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
        keep_secrets: bool = False,
        under_way: bool = False,
        listener: Listener,
    ) -> RecordingSource:
        """Read what is known of the job.  Of a live one metrics are watched for `sample`, and `save` keeps the answers in a folder.

        `under_way`: also of a checkpoint that has not ended.
        RecordingError: not readable.  OptionError: what does not go together.
        """
        live_only = (
            ("save", save is not None),
            ("headers", bool(self.headers)),
            ("deadline", self.deadline is not None),
        )
        for option, is_given in live_only:
            if is_given and not self.is_live:
                raise OptionError(option, "is for live jobs (http://HOST:8081)")
        if keep_secrets and save is None:
            raise OptionError("keep_secrets", "is for saved answers: scenarios are written from masked ones")
        if self.is_live and len(self.sources) > 1:
            raise OptionError("sources", "one address at a time; only the parts of a log go together")
        if not self.is_live:
            return read_source([Path(str(name)) for name in self.sources], self.job)
        from sim.jobs.source.fetching import NoJobError

        try:
            snapshot = self._fetched(sample, save, listener, under_way=under_way)
        except NoJobError as error:  # nothing to import, but answers of the cluster
            _keep(error.snapshot, save, listener, keep_secrets=keep_secrets)
            raise
        _keep(snapshot, save, listener, keep_secrets=keep_secrets)
        return snapshot

    def lone_answer(self) -> LoneAnswer | None:
        """The one answer of Flink that the source is; None: it is something else.  RecordingError: not readable."""
        if self.is_live or len(self.sources) > 1:
            return None
        return read_lone_answer(Path(str(self.sources[0])))

    @contextmanager
    def named(self) -> Iterator[None]:
        """A checkpoint that is missed is missed at this place."""
        try:
            yield
        except MissingCheckpointError as error:
            raise MissingCheckpointError(f"{self.sources[0]}: {error}") from None

    def _fetched(self, sample: str, save: Path | None, listener: Listener, *, under_way: bool) -> RestSnapshot:
        from sim.jobs.source.fetching import fetch

        sample_s = parsed("sample", sample, parse_duration) / 1e9
        total_s = None if self.deadline is None else parsed("deadline", self.deadline, parse_duration) / 1e9
        if total_s is not None and total_s <= 0:
            raise OptionError("deadline", "expected more than nothing")
        if save is not None:
            _make_new(save)  # before the job is watched
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
    """The job that all options are about."""
    return JobPlace(sources, options["job"], deadline, options["headers"] or {})


@contextmanager
def _progress(listener: Listener, whole_s: int) -> Iterator[tuple[Callable[[float], None], Callable[[int], None]]]:
    """Receivers of the seconds that metrics were watched, and of the number of answers."""
    seen_s = answers = 0

    def passed(seconds: float) -> None:
        nonlocal seen_s
        seen_s = round(seconds)
        watch(seen_s, seen_s)

    def answered(count: int) -> None:
        nonlocal answers
        answers = count
        watch(seen_s, seen_s)

    with listener.progress(
        "watching metrics", whole_s, whole_s, what_each="s", details=lambda: f"{answers:,} answers"
    ) as watch:
        yield passed, answered


def _make_new(folder: Path) -> None:
    from sim.jobs.source.saved import is_free

    try:
        folder.mkdir(parents=True, exist_ok=True)
        empty = is_free(folder)
    except OSError as error:
        raise OptionError("save", f"{folder}: {error.strerror}") from None
    if not empty:
        raise OptionError("save", f"{folder}: is not empty")


def _keep(snapshot: RestSnapshot, folder: Path | None, listener: Listener, *, keep_secrets: bool) -> None:
    from sim.jobs.source.rest_answers import first_names
    from sim.jobs.source.saved import save

    if folder is None:
        return
    count = save(snapshot, folder, keep_secrets=keep_secrets)
    secrets = "secrets included" if keep_secrets else f"{count} secret{'' if count == 1 else 's'} masked"
    but = f" but {len(snapshot.missing)}, {first_names(list(snapshot.missing))}" if snapshot.missing else ""
    advice = "look through them before you send them: they hold the configuration of the cluster"
    listener.message(f"{folder}: all answers{but}, {secrets}; {advice}")


# ---- `import`: a real job becomes a scenario, read off Flink's REST API, what was saved of it, logs, or a recording.

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
    checkpoints: Checkpoints = field(repr=False)  # that were seen: columns of `sim.model.schema.history_file`
    source: RecordingSource = field(repr=False, compare=False)  # what it was read from

    @property
    def scenarios(self) -> Sequence[Scenario]:
        return loads(self.text, self.name).scenarios

    @property
    def placed_text(self) -> str:
        """The scenario as it is printed, without a file beside it."""
        return placed(self.text, None)

    @property
    def facts(self) -> dict[str, Any]:
        """JSON-ready."""
        found = {"scenario": self.placed_text, "unknown": self.unknown, "not_modelled": self.not_modelled}
        return {**found, "known_issues": known_issues_json(self.scenarios)}

    def save(self, file: str | PathLike[str]) -> Path:
        """Write the scenario file and, beside it, the history that it names; returns its path."""
        write_scenario_and_history(placed(self.text, Path(file).parent), Path(file), self.checkpoints)
        return Path(file)


def import_job(
    sources: Sequence[FilePath], *, listener: Listener | None = None, **options: Unpack[ImportOptions]
) -> ImportedJob:
    """Read a job; `out` keeps the scenario and, beside it, its history, before its backtest and with it.

    RecordingError: not readable, or no scenario comes of it.  ScenarioError: the file is not.  OptionError: what does
    not go together.
    """
    listener, given = listener or Listener(), with_defaults(ImportOptions, options)
    place, out, compare = place_of(sources, given, given["deadline"]), path_of(given["out"]), given["compare"]
    deployed = None if given["flink"] is None else read_flink_file(Path(given["flink"]))
    if out is not None and out.is_dir():
        raise OptionError("out", f"{out}: is a folder")
    source = place.read(given["sample"], path_of(given["save"]), keep_secrets=given["keep_secrets"], listener=listener)
    if deployed is not None and isinstance(source, ConfiguredJob):
        raise OptionError(
            "flink", "is for running jobs, saved answers and logs: a recording has all of its configuration"
        )
    draft = draft_of(source, compare=compare, deployed=deployed)
    if deployed is not None:
        _tell_conflicts(draft, deployed, listener)
    name = _name(place.sources[0], source)
    seen = _checkpoints(source, listener)
    found = _imported(name, source, seen, draft)
    if out is not None:
        found.save(out)
    _tell(draft, listener)
    tell(issue_remarks(name, found.scenarios), listener)
    if given["backtest"]:
        try:
            found = _imported(name, source, seen, *with_backtest(source, draft, listener))
        except KeyboardInterrupt:
            listener.result(found)
            raise Stopped(f"{'the scenario' if out is None else out} is complete but for its backtest") from None
        if out is not None:
            found.save(out)
    listener.result(found)
    return found


def scenarios_of(place: JobPlace, flink: Path | None = None) -> Sequence[Scenario]:
    """Return the scenarios of a file, or that of a real job.

    `flink`: a file of Flink's configuration that the scenario file is read with.  ScenarioError, RecordingError: one cannot be read.
    OptionError: `flink` is given for a real job, whose own configuration is read.
    """
    name = str(place.sources[0])
    if name.endswith((".yaml", ".yml")):
        return load(name, [] if flink is None else [flink_change(flink, Path(name))]).scenarios
    if flink is not None:
        raise OptionError("flink", "is for scenario files: the configuration of a real job is read from the job")
    return scenarios_of_source(place.read("0 s", listener=Listener()))


def scenarios_of_source(source: RecordingSource) -> Sequence[Scenario]:
    """The scenario of a real job.  RecordingError: no scenario comes of it."""
    return loads(text_of(draft_of(source))).scenarios


def import_source(source: RecordingSource, name: str, listener: Listener) -> ImportedJob:
    """The import of a source that was read before, with its backtest.  RecordingError: no scenario comes of it."""
    return _imported(name, source, _checkpoints(source, listener), *with_backtest(source, draft_of(source), listener))


def draft_of(source: RecordingSource, *, compare: bool = False, deployed: FlinkFile | None = None) -> Draft:
    """`compare`: under three kinds of barriers instead of its own.  `deployed`: says what the source does not."""
    if isinstance(source, ConfiguredJob):
        return to_document(source, compare=compare)
    draft = infer(source) if deployed is None else with_flink_file(infer(source), deployed, source)
    return compared(draft) if compare else draft


def with_backtest(source: RecordingSource, draft: Draft, listener: Listener) -> tuple[Draft, list[str]]:
    """The scenario with its backtest, and the lines of the backtest; unchanged if nothing can be compared."""
    from sim.jobs.evidence import backtest as imports
    from sim.jobs.evidence.backtest import RUNS

    with listener.progress("backtest", 100, RUNS, what_each="runs") as watch:
        complete, lines = imports.with_backtest(
            source, draft, watch=lambda share: watch(int(share * RUNS), round(100 * share))
        )
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
    from sim.jobs.evidence.backtest import checkpoints_of

    try:
        return checkpoints_of(source)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        listener.message(f"no history of checkpoints: they cannot be understood: {error!r}")
        return {}


def _imported(
    name: str, source: RecordingSource, seen: Checkpoints, draft: Draft, lines: Sequence[str] = ()
) -> ImportedJob:
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
        listener.message(
            f"{draft.inferred} values with a source, {len(draft.unknown)} UNKNOWN{':' if draft.unknown else ''}"
        )
        for question in draft.unknown:
            listener.message(f"  {question}")


def _tell_conflicts(draft: Draft, file: FlinkFile, listener: Listener) -> None:
    """Report the values of a file of Flink's configuration that the job contradicts.  ScenarioError: a key of the file is misspelt."""
    # the version of the file has a profile of its own
    cluster = {key: value for key, value in draft.document.get("cluster", {}).items() if key != "profile"}
    text = write({**draft.document, "cluster": cluster}, draft.question)
    place = f"{Path(file.file).resolve()}{f'#{file.resource}' if file.resource else ''}"
    scenarios = (loads(text, overrides=changes).scenarios[0] for changes in ([], [f"{FILE}={json.dumps(place)}"]))
    own, other = (
        {option.option.flink.name: (option.key, option.written(option.value)) for option in option_values(scenario)}
        for scenario in scenarios
    )
    for flink in own:
        if flink in other and own[flink] != other[flink]:
            listener.message(
                f"{file.file}: {flink} {other[flink][1]} is not in force: the job has {' '.join(map(str, own[flink]))}"
            )
    for (section, name), (value, _) in file.beside.items():
        there = draft.document[section][name]
        if there != value and not (name == "version" and there.startswith(f"{value}.")):  # 1.20.1 is 1.20
            listener.message(f"{file.file}: {section}.{name} {value} is not in force: the job has {there}")


def _name(first: str | PathLike[str] | Address, source: RecordingSource) -> str:
    if isinstance(source, ConfiguredJob):
        return source.name
    return "job" if isinstance(first, Address) else Path(first).name.partition(".")[0]
