"""`explain`: where the checkpoints of a run or of a real job spent their time, and which changes would shorten them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

import pandas as pd

from sim.app.verbs.common import SILENT, Displayed, Listener, OptionError, Work, stoppable
from sim.app.verbs.findings import issue_remarks, known_issues_json, report_remarks
from sim.app.verbs.importing import JobPlace, place_of, scenarios_of_source
from sim.app.verbs.options import ExplainOptions, FilePath, changes_as_lines, refuse_others, with_all_options
from sim.explain.close_up import CloseUp, rerun_with_observers
from sim.explain.explanation import (
    NoCheckpointError,
    accounts,
    record,
    text,
    with_checkpoints,
)
from sim.jobs.history.explanation import HistoryAnswer, answer, answer_text, plain
from sim.jobs.history.reading import history_of, history_of_answer
from sim.jobs.reading import RecordingSource, answers_next_to, is_scenario, logs_in
from sim.jobs.source.recorded_job import RecordingError
from sim.model.scenario import Scenario
from sim.model.text import Address
from sim.studies.cells import warm
from sim.studies.run_folder import Runs, runs_of

# ---- The result: sentences, the parts that add up to a checkpoint's duration, and the effect of removing each part.


@dataclass(frozen=True, repr=False)
class Explanation(Displayed):
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
        return self._table("parts", {"begin_ns": "begin_ms", "duration_ns": "duration_ms"})

    @property
    def what_if(self) -> pd.DataFrame:
        """Return a row per change: the rest of the path [ms]."""
        return self._table("what_if", {"rest_of_path_ns": "rest_of_path_ms"})

    @property
    def facts(self) -> list[dict[str, Any]] | Mapping[str, Any]:
        """Return what `--json` prints: the records of a simulation, or the history of a real job."""
        return self.records if self.history is None else self.history

    def _table(self, key: str, in_ms: Mapping[str, str]) -> pd.DataFrame:
        """Return the rows `key` of all records.  `in_ms`: columns in ns -> their names in ms."""
        table = pd.DataFrame(
            {"strategy": record["strategy"], "checkpoint": record["checkpoint"], **row}
            for record in self.records
            for row in record[key]
        )
        times = [name for name in in_ms if name in table]  # a table without rows has no columns
        return table.assign(**{name: table[name] / 1e6 for name in times}).rename(columns=in_ms)

    def _parts(self) -> list[str]:
        return [self.text]


# ---- `explain` of simulated runs: each is run again with observers attached, and its checkpoints are explained.


def explain_runs(
    runs: Runs,
    checkpoint: int | None = None,
    *,
    strategy: str | None = None,
    listener: Listener = SILENT,
) -> Explanation:
    """Explain a checkpoint of each strategy, or of one.

    `checkpoint`: its id; None: a first upload, the median and the slowest.

    OptionError: no such strategy.  NoCheckpointError: nothing to explain.
    """
    texts: list[str] = []
    records: list[dict[str, Any]] = []
    missing: list[str] = []
    chosen = choose_strategies(runs, strategy, listener)
    report_remarks(issue_remarks(runs.name, list(chosen.values())), listener)
    for name, scenario in chosen.items():
        close_up = rerun_observed(name, scenario, listener)
        try:
            accounts_of_run = accounts(name, close_up, checkpoint)
        except NoCheckpointError as error:
            missing.append(f"{name}: {str(error).removeprefix(f'{name}: ')}")
            continue
        for account in accounts_of_run:
            texts.append(text(account))
            records.append(record(account) | {"known_issues": known_issues_json([scenario])})
    if not records:
        raise NoCheckpointError(f"{runs.name}: {'; '.join(missing)}")
    for line in missing:
        listener.message(line)
    explained = Explanation("\n\n".join(texts), records)
    listener.result(explained)
    return explained


def choose_strategies(runs: Runs, strategy: str | None, listener: Listener) -> dict[str, Scenario]:
    """Return the strategies that take checkpoints, or only the given one.

    OptionError: no such strategy.  NoCheckpointError: no strategy takes checkpoints.
    """
    if runs.is_changed:
        listener.warning(
            "the results were made by another version of ckptsim; the explanation simulates them with this one"
        )
    scenarios = with_checkpoints(runs.scenarios)
    if not scenarios:
        raise NoCheckpointError(f"{runs.name}: no strategy takes checkpoints")
    if strategy is None:
        return scenarios
    if strategy not in scenarios:
        raise OptionError("strategy", f"no '{strategy}': there are {', '.join(scenarios)}")
    return {strategy: scenarios[strategy]}


def rerun_observed(name: str, scenario: Scenario, listener: Listener) -> CloseUp:
    """Simulate again with observers."""
    warm()
    with listener.progress(Work(name, scenario.run.duration_ns, 1)) as watch, stoppable("nothing is kept"):
        return rerun_with_observers(scenario, progress=lambda now_ns: watch(0, now_ns))


@with_all_options(ExplainOptions)
def explain_job(source: FilePath, *, listener: Listener = SILENT, **given: Unpack[ExplainOptions]) -> Explanation:
    """Explain checkpoints of a real job, a scenario file, or a results folder.

    `source`: as for `import_job`; of a real job, no metrics are sampled, and nothing is simulated.

    OptionError: an option does not apply to this kind of source.  RecordingError: not readable.  LookupError: nothing to
    explain.
    """
    name = str(source)
    checkpoint = given["checkpoint"]
    if is_real(name):
        refuse_others(ExplainOptions, given, "real jobs")
        return explain_real_job(place_of([name], given, given["deadline"]), checkpoint=checkpoint, listener=listener)
    refuse_others(ExplainOptions, given, "simulated runs")
    runs = runs_of(Path(name), changes_as_lines(given["changes"]))
    return explain_runs(runs, checkpoint, strategy=given["strategy"], listener=listener)


# ---- `explain` of a real job, from any source that `import` reads. Nothing is simulated.

_SCENARIOS = (".yaml", ".yml")
_HEAD_BYTES = 1_000_000


def explain_real_job(place: JobPlace, *, checkpoint: int | None = None, listener: Listener = SILENT) -> Explanation:
    """Explain a checkpoint of a real job, or the slow ones of its history.

    RecordingError: not readable.  MissingCheckpointError: nothing to explain.  OptionError: options that conflict.
    """
    try:
        source = place.read("0 s", under_way=True, listener=listener)
    except RecordingError:
        if (lone := place.lone_answer()) is None:
            raise
        with place.named():
            explanation = _explanation(answer(history_of_answer(lone), checkpoint))
    else:
        with place.named():
            explanation = explain_source(source, checkpoint, listener=listener)
    listener.result(explanation)
    return explanation


def explain_source(
    source: RecordingSource, checkpoint: int | None = None, *, listener: Listener = SILENT
) -> Explanation:
    """Explain a source that was read already."""
    explained = answer(history_of(source), checkpoint)
    scenarios: Sequence[Scenario] = ()
    with suppress(RecordingError):  # no scenario can be made of the source: known issues are not checked
        scenarios = scenarios_of_source(source)
    report_remarks(issue_remarks("job", scenarios), listener)
    return _explanation(explained, known_issues=known_issues_json(scenarios))


def _explanation(explained: HistoryAnswer, **facts: Any) -> Explanation:
    history = plain(explained) | facts
    return Explanation(answer_text(explained), history["explained"], history)


def is_real(name: str) -> bool:
    """Return True if `name` is a source of a real job, and not a scenario file or a results folder.

    If the name is ambiguous, the content of the file decides.
    """
    if Address.is_address(name):
        return True
    path = Path(name)
    if path.is_dir():
        return bool((path / "jobs").is_dir() or logs_in(path) or answers_next_to(path))
    if path.suffix in _SCENARIOS or not path.is_file():
        return False
    with path.open("rb") as file:
        return not is_scenario(file.read(_HEAD_BYTES).decode("utf-8", "replace"))
