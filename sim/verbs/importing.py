"""`import`: a real job becomes a scenario, read off Flink's REST API, what was saved of it, logs, or a recording."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from sim.address import Address
from sim.recordings import ConfiguredJob, Import, Inference, compared, infer, to_document
from sim.recordings.infer.deployed_keys import with_flink_file
from sim.recordings.source.files import RecordingError
from sim.scenario import ScenarioError, load, loads, write
from sim.scenario.flink.file import FILE, FlinkFile, read_flink_file
from sim.scenario.flink.text import option_values
from sim.scenario.history.file import Checkpoints, write_parted
from sim.scenario.text.writer import placed
from sim.verbs.findings import issue_remarks, tell
from sim.verbs.job_place import JobPlace
from sim.verbs.listener import Listener, Stopped
from sim.verbs.options import OptionError

if TYPE_CHECKING:
    from sim.model.scenario import Scenario
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

    @property
    def scenarios(self) -> Sequence[Scenario]:
        return loads(self.text, self.name).scenarios

    def save(self, file: str | PathLike[str]) -> Path:
        """Write the scenario file and, beside it, the history that it names; returns its path."""
        write_parted(placed(self.text, Path(file).parent), Path(file), self.checkpoints)
        return Path(file)


def import_job(
    place: JobPlace, *, out: Path | None = None, sample: str = "60 s", save: Path | None = None, keep_secrets: bool = False,
    compare: bool = False, backtest: bool = True, flink: Path | None = None, listener: Listener | None = None,
) -> ImportedJob:  # fmt: skip
    """Read a job; `out` keeps the scenario and, beside it, its history, before its backtest and with it.

    Live jobs: metrics are watched for `sample`, and `save` keeps all answers in a folder.
    `flink`: a file of Flink's configuration, for keys that the job does not tell.
    RecordingError: not readable, or no scenario comes of it.  ScenarioError: the file is not.  OptionError: what does not go together.
    """
    listener = listener or Listener()
    deployed = None if flink is None else read_flink_file(flink)
    if out is not None and out.is_dir():
        raise OptionError("out", f"{out}: is a folder")
    source = place.read(sample, save, keep_secrets=keep_secrets, listener=listener)
    if deployed is not None and isinstance(source, ConfiguredJob):
        raise OptionError("flink", "is for running jobs, saved answers and logs: a recording has all of its configuration")
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


def scenarios_of(place: JobPlace) -> Sequence[Scenario]:
    """The scenarios of a file, or that of a real job.  ScenarioError, RecordingError: it cannot be read."""
    name = str(place.sources[0])
    return load(name).scenarios if name.endswith((".yaml", ".yml")) else scenarios_of_source(place.read("0 s", listener=Listener()))


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


def _tell_conflicts(draft: Draft, file: FlinkFile, listener: Listener) -> None:
    """Report the values of a file of Flink's configuration that the job contradicts.  ScenarioError: a key of the file is misspelt."""
    cluster = {key: value for key, value in draft.document.get("cluster", {}).items() if key != "version"}  # has one profile
    text = write({**draft.document, "cluster": cluster}, draft.question)
    place = f"{Path(file.file).resolve()}{f'#{file.resource}' if file.resource else ''}"
    scenarios = (loads(text, overrides=changes).scenarios[0] for changes in ([], [f"{FILE}={json.dumps(place)}"]))
    own, other = (
        {option.option.flink.name: (option.key, option.written(option.value)) for option in option_values(scenario)}
        for scenario in scenarios
    )
    for flink in own:
        if flink in other and own[flink] != other[flink]:
            listener.message(f"{file.file}: {flink} {other[flink][1]} is not in force: the job has {' '.join(map(str, own[flink]))}")
    for (section, name), (value, _) in file.beside.items():
        if (there := draft.document[section][name]) != value:
            listener.message(f"{file.file}: {section}.{name} {value} is not in force: the job has {there}")


def _name(first: str | PathLike[str] | Address, source: RecordingSource) -> str:
    if isinstance(source, ConfiguredJob):
        return source.name
    return "job" if isinstance(first, Address) else Path(first).name.partition(".")[0]
