"""`explain`: where the checkpoints of a run or of a real job spent their time, and which changes would shorten them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from sim.advice.settings import sinks_of
from sim.app.verbs.common import Listener, OptionError, Stopped, preformatted
from sim.app.verbs.findings import issue_remarks, known_issues_json, tell
from sim.app.verbs.importing import JobPlace, draft_of, place_of, scenarios_of_source, text_of, with_backtest
from sim.app.verbs.options import ExplainOptions, lines_of, refuse_others, with_defaults
from sim.explain.close_up import rerun_with_observers
from sim.explain.explanation import (
    NOTABLE,
    WIDTH,
    NoCheckpointError,
    accounts,
    record,
    text,
    verified,
    with_checkpoints,
)
from sim.explain.what_if import changed
from sim.jobs.evidence.what_ifs import evidence, factors_of, kinds_of, what_if
from sim.jobs.history.explanation import answer, answer_text, plain
from sim.jobs.history.history import durations_ms
from sim.jobs.history.reading import history_of, history_of_answer
from sim.jobs.reading import answers_beside, is_folder_of_logs, is_scenario
from sim.jobs.source.recorded_job import RecordingError
from sim.model.schema.study import loads
from sim.model.sinks import SINKS
from sim.model.text import Address
from sim.results.critical_path import PathKind
from sim.results.formats import TextTable, ms_text
from sim.runtime.simulate import simulate
from sim.studies.cells import warm
from sim.studies.run_folder import runs_of

if TYPE_CHECKING:
    import pandas as pd

    from sim.explain.close_up import CloseUp
    from sim.explain.explanation import Account
    from sim.jobs.reading import RecordingSource
    from sim.model.backtest import Backtest
    from sim.model.job import Vertex
    from sim.model.scenario import Scenario
    from sim.plane import Engine
    from sim.runtime.job_instance import JobInstance
    from sim.studies.run_folder import Runs


# ---- The result: sentences, the parts that add up to a checkpoint's duration, and the effect of removing each part.


@dataclass(frozen=True, repr=False)
class Explanation:
    """Explanations of one or more checkpoints, simulated or real."""

    text: str  # 80 columns, as `ckptsim explain` prints it
    records: list[dict[str, Any]]  # one per checkpoint; times in ns
    history: Mapping[str, Any] | None = None  # of a real job: the records and what they have in common; None: simulated

    @property
    def sentences(self) -> list[str]:
        """Return a sentence per checkpoint: its longest part and the cause."""
        return [str(record["sentence"]) for record in self.records]

    @property
    def parts(self) -> pd.DataFrame:
        """Return a row per part of the critical path: strategy, checkpoint, part, place, begin_ms, duration_ms, cause."""
        return self._frame(
            "parts",
            lambda part: {
                "part": part["part"],
                "place": part["place"],
                "begin_ms": part["begin_ns"] / 1e6,
                "duration_ms": part["duration_ns"] / 1e6,
                "cause": part["cause"],
            },
        )

    @property
    def what_if(self) -> pd.DataFrame:
        """Return a row per change: the rest of the path [ms] and, after `verify`, the simulated duration [ms]."""
        names = {"rest_of_path_ns": "rest_of_path_ms", "simulated_duration_ns": "simulated_ms"}
        return self._frame(
            "what_if",
            lambda row: (
                {"change": row["change"]}
                | {new: None if row[old] is None else row[old] / 1e6 for old, new in names.items() if old in row}
            ),
        )

    @property
    def facts(self) -> list[dict[str, Any]] | Mapping[str, Any]:
        """Return what `--json` prints: the records of a simulation, or the history of a real job."""
        return self.records if self.history is None else self.history

    def _frame(self, key: str, values: Callable[[dict[str, Any]], dict[str, Any]]) -> pd.DataFrame:
        import pandas as pd

        return pd.DataFrame(
            [
                {"strategy": record["strategy"], "checkpoint": record["checkpoint"], **values(row)}
                for record in self.records
                for row in record[key]
            ]
        )

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return preformatted(self.text)


# ---- `explain` of simulated runs: each is run again with observers attached, and its checkpoints are explained.


def explain_runs(
    runs: Runs,
    checkpoint: int | None = None,
    *,
    strategy: str | None = None,
    verify: bool = False,
    engine: Engine = "compiled",
    listener: Listener | None = None,
) -> Explanation:
    """Explain a checkpoint of each strategy, or of one.

    `checkpoint`: its id; None: a first upload, the median and the slowest.  `verify`: simulate the effect of removing
    each part.

    OptionError: no such strategy.  NoCheckpointError: nothing to explain.
    """
    listener = listener or Listener()
    texts: list[str] = []
    records: list[dict[str, Any]] = []
    missing: list[str] = []
    chosen = chosen_of(runs, strategy, listener)
    tell(issue_remarks(runs.name, list(chosen.values())), listener)
    for name, scenario in chosen.items():
        close_up = watched(name, scenario, engine, listener)
        try:
            found = accounts(name, close_up, checkpoint)
        except NoCheckpointError as error:
            missing.append(f"{name}: {str(error).removeprefix(f'{name}: ')}")
            continue
        for account in found:
            simulated = verified(account, engine) if verify else {}
            texts.append(text(account, simulated))
            records.append(record(account, simulated) | {"known_issues": known_issues_json([scenario])})
    if not records:
        raise NoCheckpointError(f"{runs.name}: {'; '.join(missing)}")
    for line in missing:
        listener.message(line)
    explained = Explanation("\n\n".join(texts), records)
    listener.result(explained)
    return explained


def chosen_of(runs: Runs, strategy: str | None, listener: Listener) -> dict[str, Scenario]:
    """Return the strategies that take checkpoints, or only the given one.

    OptionError: no such strategy.  NoCheckpointError: no strategy takes checkpoints.
    """
    if runs.is_changed:
        listener.warning(
            "the results were made by another version of ckptsim; the explanation simulates them with this one"
        )
    try:
        taking = with_checkpoints(runs.scenarios)
    except NoCheckpointError as error:
        raise NoCheckpointError(f"{runs.name}: {error}") from None
    if strategy is None:
        return taking
    if strategy not in taking:
        raise OptionError("strategy", f"no '{strategy}': there are {', '.join(taking)}")
    return {strategy: taking[strategy]}


def watched(
    name: str,
    scenario: Scenario,
    engine: Engine,
    listener: Listener,
    attach: Callable[[JobInstance], None] = lambda _: None,
) -> CloseUp:
    """Simulate again with observers.  `attach` is called with each job instance."""
    warm(engine)
    with listener.progress(name, scenario.run.duration_ns, 1) as watch:
        try:
            return rerun_with_observers(
                scenario, engine=engine, progress=lambda now_ns: watch(0, now_ns), attach=attach
            )
        except KeyboardInterrupt:
            raise Stopped("nothing is kept") from None


def explain(name: str, *, listener: Listener | None = None, **options: Unpack[ExplainOptions]) -> Explanation:
    """Explain checkpoints of `name`: a scenario file, a results folder, or a source of a real job.

    OptionError: an option does not apply to this kind of input.
    """
    given = with_defaults(ExplainOptions, options)
    checkpoint, verify = given["checkpoint"], given["verify"]
    if is_real(name):
        refuse_others(ExplainOptions, given, "real jobs")
        return explain_job(
            place_of([name], given, given["deadline"]), checkpoint=checkpoint, verify=verify, listener=listener
        )
    refuse_others(ExplainOptions, given, "simulated runs")
    runs = runs_of(Path(name), lines_of(given["changes"]))
    strategy, engine = given["strategy"], given["engine"]
    return explain_runs(runs, checkpoint, strategy=strategy, verify=verify, engine=engine, listener=listener)


# ---- `explain` of a real job, from any source that `import` reads. Without `verify` nothing is simulated.

_SCENARIOS = (".yaml", ".yml")
_HEAD_BYTES = 1_000_000


def explain_job(
    place: JobPlace, *, checkpoint: int | None = None, verify: bool = False, listener: Listener | None = None
) -> Explanation:
    """Explain a checkpoint of a real job, or the slow ones of its history.

    `verify`: import the job and simulate it unchanged and with each change that its critical paths suggest; for a live
    job, this samples metrics for a minute.

    RecordingError: not readable.  MissingCheckpointError: nothing to explain.  OptionError: options that conflict.
    """
    listener = listener or Listener()
    try:
        source = place.read("60 s" if verify else "0 s", under_way=True, listener=listener)
    except RecordingError:
        if verify or (lone := place.lone_answer()) is None:
            raise
        with place.named():
            explained = answer(history_of_answer(lone), checkpoint)
        found = Explanation(answer_text(explained), plain(explained)["explained"], plain(explained))
        listener.result(found)
        return found
    with place.named():
        found = explain_source(source, checkpoint, verify=verify, listener=listener)
    listener.result(found)
    return found


def explain_source(
    source: RecordingSource, checkpoint: int | None = None, *, verify: bool = False, listener: Listener | None = None
) -> Explanation:
    """Explain a source that was read already.  RecordingError: `verify` is set, and no scenario can be made of the source."""
    listener = listener or Listener()
    found = answer(history_of(source), checkpoint)
    scenarios: Sequence[Scenario] = ()
    with suppress(RecordingError):  # no scenario can be made of the source: known issues are not checked
        scenarios = scenarios_of_source(source)
    tell(issue_remarks("job", scenarios), listener)
    history = {**plain(found), "known_issues": known_issues_json(scenarios)}
    if not verify:
        return Explanation(answer_text(found), history["explained"], history)

    changes = helped(source, found.accounts, durations_ms(found.history), listener)
    return Explanation(
        f"{answer_text(found)}\n\n{changes.text}", history["explained"], history | {"what_if": changes.plain}
    )


def is_real(name: str) -> bool:
    """Return True if `name` is a source of a real job, and not a scenario file or a results folder.

    If the name is ambiguous, the content of the file decides.
    """
    if Address.is_address(name):
        return True
    path = Path(name)
    if path.is_dir():
        return bool((path / "jobs").is_dir() or is_folder_of_logs(path) or answers_beside(path))
    if path.suffix in _SCENARIOS or not path.is_file():
        return False
    with path.open("rb") as file:
        return not is_scenario(file.read(_HEAD_BYTES).decode("utf-8", "replace"))


# ---- Effect of changes on a real job: it is imported from the same source, and simulated unchanged and with each change.
#
# Only changes that a user can make are simulated: barriers, storage, the work of a snapshot. The duration without a part
# of the critical path is a bound; it is part of each explanation.

_MAX_SIMULATED_CHANGES = 4
"""Changes to simulate: those that save most."""
_EQUAL_DURATION_FACTOR = 1.05
"""Durations that differ by a smaller factor count as equal."""
_RUNS = 3
"""Seeds per simulation: a single run has too few checkpoints for percentiles."""


@dataclass(frozen=True, slots=True)
class SimulatedDurations:
    """Durations of completed checkpoints; the first checkpoint of a simulation is left out."""

    count: int
    p50_ms: float
    p90_ms: float
    longest_ms: float

    @property
    def cells(self) -> list[str]:
        """Return p50, p90 and the longest as texts, empty without checkpoints."""
        return [ms_text(value) for value in (self.p50_ms, self.p90_ms, self.longest_ms)] if self.count else ["", "", ""]

    @property
    def plain(self) -> dict[str, Any]:
        return {
            "checkpoints": self.count,
            "p50_ns": round(self.p50_ms * 1e6),
            "p90_ns": round(self.p90_ms * 1e6),
            "longest_ns": round(self.longest_ms * 1e6),
        }


@dataclass(frozen=True, slots=True)
class SimulatedChange:
    """The simulated effect of a change, and its accuracy."""

    change: str  # "with unaligned barriers"
    setting: str  # line of the Flink configuration; empty: the change is not a setting of Flink
    durations: SimulatedDurations
    # error factors of p50 and p90 that nine of ten predictions of such changes keep; None: no recording has such a change
    factors: tuple[float, float] | None
    evidence: str  # addition to the sentence about the factors, if they come from few jobs
    caution: str = ""  # what to check before the setting is used

    def judgement(self, before: SimulatedDurations) -> str:
        """Return a sentence on whether the difference from `before` is larger than the error of such predictions."""
        if not self.durations.count:
            return "No checkpoint completes."
        if self.factors is None:
            return "The accuracy of this prediction is unknown: no recording has such a change."
        within = f"nine of ten such predictions are within a factor of {self.factors[0]:.2g} (p50) and {self.factors[1]:.2g} (p90)"
        shorter = [
            old / new if new else np.inf
            for old, new in ((before.p50_ms, self.durations.p50_ms), (before.p90_ms, self.durations.p90_ms))
        ]
        larger = [
            name for name, ratio, factor in zip(("p50", "p90"), shorter, self.factors, strict=True) if ratio > factor
        ]
        if larger:
            return f"Shorter ({' and '.join(larger)}): {within}{self.evidence}."
        verdict = "Perhaps shorter" if max(shorter) > _EQUAL_DURATION_FACTOR else "Hardly shorter"
        return f"{verdict}: {within}{self.evidence}."


@dataclass(frozen=True, slots=True)
class Helped:
    """Simulations of a real job, unchanged and with each suggested change."""

    recorded: SimulatedDurations  # of the job's checkpoint history
    as_it_is: SimulatedDurations  # simulated without a change
    changes: tuple[SimulatedChange, ...]

    @property
    def text(self) -> str:
        """Return the sentences of `ckptsim explain --verify`, 80 columns wide."""
        return "\n".join(
            fill(line, WIDTH, subsequent_indent="  ") for line in (self.how_sure, *map(self._line, self.changes))
        )

    @property
    def how_sure(self) -> str:
        """Return a sentence that compares the simulation of the unchanged job with the recorded checkpoints."""
        if not self.as_it_is.count:
            return "Simulated as it is, the job completes no checkpoint: the effect of changes is unknown."
        names = ("p50", "p90", "longest")
        simulated, recorded = (
            ", ".join(f"{name} {value}" for name, value in zip(names, row.cells, strict=True))
            for row in (self.as_it_is, self.recorded)
        )
        nothing = "" if self.changes else " No setting shortens the parts that take long."
        return f"Simulated as it is: {simulated} (recorded: {recorded}).{nothing}"

    @property
    def table(self) -> TextTable:
        """Return a row for the recorded checkpoints, the unchanged simulation, and each change."""
        rows = [["Recorded", *self.recorded.cells, ""], ["Simulated as it is", *self.as_it_is.cells, ""]]
        rows += [[self._title(row), *row.durations.cells, _sentences(row, self.as_it_is)] for row in self.changes]
        return TextTable("", ["Checkpoints", "p50", "p90", "Longest", "How sure"], rows)

    @property
    def plain(self) -> Mapping[str, Any]:
        return {
            "recorded": self.recorded.plain,
            "as_it_is": self.as_it_is.plain,
            "changes": [
                {
                    "change": row.change,
                    "setting": row.setting,
                    **row.durations.plain,
                    "factors": row.factors,
                    "judgement": row.judgement(self.as_it_is),
                    "caution": row.caution,
                }
                for row in self.changes
            ],
        }

    def _line(self, row: SimulatedChange) -> str:
        first, second, longest = row.durations.cells
        before = self.as_it_is.cells
        numbers = f"p50 {first} instead of {before[0]}, p90 {second} instead of {before[1]}, longest {longest} instead of {before[2]}. "
        return f"{self._title(row)}: {numbers if row.durations.count else ''}{_sentences(row, self.as_it_is)}"

    @staticmethod
    def _title(row: SimulatedChange) -> str:
        title = f"{row.change[:1].upper()}{row.change[1:]}"
        return f"{title} ({row.setting})" if row.setting else title


def _sentences(row: SimulatedChange, before: SimulatedDurations) -> str:
    return " ".join(filter(None, [row.judgement(before), row.caution]))


def helped(
    source: RecordingSource, accounts: Sequence[Account], recorded_ms: Sequence[float], listener: Listener
) -> Helped:
    """Simulate the job with the changes that its explained checkpoints suggest.

    RecordingError: no scenario can be made of the source.
    """
    draft, _ = with_backtest(source, draft_of(source), listener)
    study = loads(text_of(draft), "imported")
    scenario = study.scenarios[0]
    changes = tuple(
        _change(change, scenario, other, study.backtest) for change, other in _changes(accounts, scenario).items()
    )
    return Helped(_summed(recorded_ms), _simulated(scenario), changes)


def _change(name: str, scenario: Scenario, other: Scenario, backtest: Backtest | None) -> SimulatedChange:
    kinds = kinds_of(scenario, other)
    factors = (
        None
        if backtest is None or not all(evidence()[(kind,)].settings for kind in kinds)
        else factors_of(backtest, kinds)
    )
    few = "" if all(evidence()[(kind,)].is_enough for kind in kinds) else f", known from few jobs with {what_if(kinds)}"
    overtakes = other.checkpoint.barriers.record.overtakes and not scenario.checkpoint.barriers.record.overtakes
    setting = "execution.checkpointing.unaligned.enabled: true" if overtakes else ""
    caution = _before_overtaking(other) if overtakes else ""
    return SimulatedChange(
        name, setting, _simulated(other), None if factors is None else (factors.p50, factors.p90), few, caution
    )


def _before_overtaking(scenario: Scenario) -> str:
    """Return what to check about sinks before unaligned checkpoints are enabled: some lose records or reject them."""
    sinks = sinks_of(scenario)
    unknown = [f"'{vertex}'" for vertex, kind in sinks.items() if kind is None]
    known = [
        f"'{vertex}' writes to {kind.title}, which {kind.verdict} then."
        for vertex, kind in sinks.items()
        if kind and kind.verdict
    ]
    loses = " or ".join(kind.title for kind in SINKS.values() if kind.overtaking == "loses")
    questions = [f"Not if {' or '.join(unknown)} writes to {loses}, which lose records then."] if unknown else []
    return " ".join([*known, *questions])


def _faster_storage(scenario: Scenario) -> Scenario | None:
    storage = scenario.storage
    if storage.bytes_per_second is None:
        return None
    faster = replace(storage, bytes_per_second=2 * storage.bytes_per_second, close_ns=storage.close_ns // 2)
    return replace(scenario, storage=faster)


_STORAGE = "with storage that is twice as fast"
_BY_STORAGE = {PathKind.UPLOAD, PathKind.CHANNEL_STATE}


def _changes(accounts: Sequence[Account], scenario: Scenario) -> dict[str, Scenario]:
    """Return up to _MAX_SIMULATED_CHANGES changes (name -> scenario), ordered by the duration of the part they shorten."""
    names = {vertex.name: vertex for vertex in scenario.job.vertices}
    notable = [(line, NOTABLE * account.path.duration_ns) for account in accounts for line in account.lines]
    lines = [line for line, least_ns in notable if line.what_if is not None and line.duration_ns >= least_ns]
    found: dict[str, Scenario] = {}
    for line in sorted(lines, key=lambda line: -line.duration_ns):
        vertex = names.get(line.place.partition("[")[0])
        name, other = _for_kind(
            line.parts[0].kind, line.what_if.change if line.what_if is not None else "", scenario, vertex
        )
        if other is not None and len(found) < _MAX_SIMULATED_CHANGES:
            found.setdefault(name, other)
    return found


def _for_kind(kind: PathKind, change: str, scenario: Scenario, vertex: Vertex | None) -> tuple[str, Scenario | None]:
    if kind in _BY_STORAGE:
        return _STORAGE, _faster_storage(scenario)
    return change, changed(kind, scenario, vertex)


def _simulated(scenario: Scenario) -> SimulatedDurations:
    found: list[float] = []
    for seed in range(scenario.run.seed, scenario.run.seed + _RUNS):
        rows = simulate(replace(scenario, run=replace(scenario.run, warmup_ns=0, seed=seed)), check=False).checkpoints
        done = rows[(rows["status"] == "COMPLETED") & (rows["savepointFormat"] == "") & (rows["id"] != 1)]
        found += done["end_to_end_duration"].tolist()
    return _summed(found)


def _summed(durations_ms: Sequence[float]) -> SimulatedDurations:
    if not durations_ms:
        return SimulatedDurations(0, 0.0, 0.0, 0.0)
    p50, p90 = (float(value) for value in np.quantile(durations_ms, [0.5, 0.9]))
    return SimulatedDurations(len(durations_ms), p50, p90, float(max(durations_ms)))
