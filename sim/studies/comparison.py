"""Comparison of the strategies of a study, as rows, sentences and tables.

`Comparison` holds the results of all strategies; its properties are the verdict, the table, the notes and the outcomes that
`ckptsim run` prints.  Sentences on single runs are in `sim.studies.remarks`.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import TypeVar

import pandas as pd

from sim.model.faults import kind_of_fault
from sim.model.frozen import frozen
from sim.model.job import Job
from sim.model.quantities import S3_STANDARD, Prices
from sim.model.scenario import Instances, Scenario
from sim.model.sinks import DOES_NOT_START
from sim.model.text import capitalised, listed
from sim.protocol.options import forced_aligned_edges
from sim.results.consequences import Consequences, consequences_sentence, consequences_texts, planned_restarts_table
from sim.results.end_of_job import finish, last_trigger_s
from sim.results.estimates import count_intervals
from sim.results.formats import TextTable, bytes_text, more_text, ms_text, share_text
from sim.results.late_triggers import late_triggers, long_savepoint
from sim.results.not_completed import not_completed
from sim.results.rates import Tables
from sim.results.restarts import longest_downtime_sentence, restarts_table
from sim.results.side_by_side import StrategyRow, singles, table
from sim.results.stored import (
    StorageUse,
    known_sinks,
    snapshot_tables,
    storage_use_table,
    table_sinks,
)
from sim.results.summary import STATISTICS
from sim.results.sweep_answers import DEAD
from sim.results.tables import has_savepoints
from sim.results.verdict import MIN_COMMITTED_SHARE, axis_sentences, few_names, overload_sentence, verdict
from sim.runtime.plane_spec import hosts
from sim.runtime.result import NOT_STOPPED, Result, identity
from sim.studies.plan import baseline, is_of_workload, label
from sim.studies.remarks.checkpoints import (
    aligned_input_sentences,
    extrapolation_sentences,
    file_sentences,
    harmed_sink,
    limit_sentences,
    long_transaction_sentences,
    output_sentences,
    shared_file_sentence,
    sink_sentences,
    timed_out_sentence,
    without_readers,
)
from sim.studies.remarks.failures import failure_sentences, interruption_sentences, replayed_sentences
from sim.studies.remarks.load import (
    held_window,
    is_full,
    late_result_sentences,
    peak_sentences,
    rocksdb_access_sentence,
    scarce_cores,
    uneven_subtask,
)
from sim.studies.replications import Replications

_MIN_LATE_FACTOR, _MIN_LATE_MS = 5, 1000
"""Minimum ratio and size of the delays of records that are compared."""
_MIN_UNLIKE_LAG_S, _MIN_LAG_RATIO = 1.0, 3.0
"""Lag of a source, and its ratio to that with another strategy, from which a sentence compares them."""
_MIN_DISTURBED_SHARE = 0.5
"""Share of the run in which a job is down or catching up, from which the verdict begins with it."""
RUNS_ON = "runs on"
"""Status of a job that neither failed nor finished."""
CONTINUES_DRAINED = "continues a drained job"
"""Status of a job that still runs and was started from the savepoint of a drained job."""


_Row = TypeVar("_Row")


# ---- Values that a scenario omits, and that would change its answer (found by `sim.studies.deciding`).

WARM_UP = "run.warmup"
TIMEOUT = "checkpoint.timeout"


@frozen
class DecidingAssumption:
    """An assumption that changes a result: the value used, another value that was tried, and the result of both."""

    key: str  # key of the scenario
    assumed: str  # description of the assumed value, without numbers
    tried: str  # description of the tried value
    moves: str  # what changes: ``checkpoint 1 (aligned)``, ``the median of aligned``
    before_ms: float
    after_ms: float
    is_bound: bool = False  # `after_ms` is a lower bound
    bytes_per_second: float | None = None  # rate at which all TaskManagers write together, if nothing limits them
    count: int | None = None  # number of TaskManagers, or of files that are written one after another

    def __str__(self) -> str:
        """Return, e.g., ``Assumed: files have no latency (storage.file-latency).  With 40 ms ... instead of ...``."""
        before, after = self._values
        if self.key == TIMEOUT:
            outcome = (
                f"is not complete after {ms_text(self.after_ms)} either"
                if self.is_bound
                else f"completes after {after}"
                if after != before
                else f"completes {ms_text(self.after_ms - self.before_ms)} later"
            )
            return f"{capitalised(self.moves)} expires after {before}; with {self.tried} it {outcome}."
        if self.key == WARM_UP:
            change = f"Without {self.tried}, {self.moves} is {after} instead of {before}."
        else:
            change = f"With {self.tried}, {self.moves} takes {after} instead of {before}."
        return f"Assumed: {self.assumed}{self._numbers}. {change}"

    @property
    def _values(self) -> tuple[str, str]:
        """Return the texts of the result (as assumed, as tried)."""
        return ms_text(self.before_ms), f"{'more than ' if self.is_bound else ''}{ms_text(self.after_ms)}"

    @property
    def _numbers(self) -> str:
        """Return the clause with the write rate, or with the number of files, or ""."""
        if self.bytes_per_second is not None:
            return f": {bytes_text(self.bytes_per_second)}/s leave {self.count} of them"
        return "" if self.count is None else f", and {self.count} wait for each other"


@dataclass(frozen=True)
class Comparison:
    """Results of a study by strategy.  A strategy is a combination of values of the compared options; its label identifies it."""

    question: str
    name: str
    results: dict[str, tuple[Result, ...]]  # label of a strategy -> its replications
    baselines: dict[str, Result]  # identity -> run without checkpoints
    errors: dict[str, str]  # label of a strategy without a result -> reason
    deciding: tuple[DecidingAssumption, ...] = ()  # found by `sim.studies.deciding`
    prices: Prices = S3_STANDARD  # prices of an object store
    caveat: str = ""  # statement that the recorded history of the job contradicts the simulation; "" if it does not

    @cached_property
    def replications(self) -> dict[str, Replications]:
        """Return the replications by label of the strategy."""
        return {name: Replications(results) for name, results in self.results.items()}

    @cached_property
    def strategies(self) -> tuple[StrategyRow, ...]:
        """Return a row per strategy, in the order of `results`."""
        return tuple(self._strategy_row(name, runs) for name, runs in self.replications.items())

    def with_deciding(self, assumptions: tuple[DecidingAssumption, ...]) -> Comparison:
        """Return a copy with deciding assumptions.  Cached values are copied too; call this before `notes` is used."""
        copy = replace(self)
        vars(copy).update(vars(self) | {"deciding": assumptions})
        return copy

    @property
    def consequences(self) -> dict[str, Consequences]:
        """Return the consequences by label of the strategy."""
        return {name: runs.consequences for name, runs in self.replications.items()}

    @property
    def _labels_behind(self) -> list[str]:
        """Return the labels of strategies in which the backlog grows in some run."""
        return self._labels_where(lambda runs: any(runs.falls_behind))

    @property
    def warmup_s(self) -> float:
        """Return the longest warm-up of all strategies [s], for figures that show all of them."""
        return max((runs.warmup_s for runs in self.replications.values()), default=0.0)

    def consequences_texts(self) -> tuple[list[str], list[list[str]]] | None:
        """Return (header, rows) of the table of consequences, or None if no strategy has a commit, a failure or a job end."""
        ends = self.job_ends
        if all(row.nothing_happened for row in self.consequences.values()) and set(ends.values()) <= {RUNS_ON}:
            return None
        counts = {name: len(results) for name, results in self.results.items()}
        at_once = [line.label for line in self.strategies if not line.commits]
        return consequences_texts(self.consequences, ends, counts, at_once, self._labels_behind)

    @property
    def job_ends(self) -> dict[str, str]:
        """Return how the job ends, by label of the strategy: ``failed at 33 s``, ``finished at 15 s (2 of 3)``, ``runs on``, ..."""
        return {
            name: DOES_NOT_START
            if harmed_sink(results[0].scenario).endswith(DOES_NOT_START)
            else _job_end(results) or (CONTINUES_DRAINED if _continues_drained(results[0]) else RUNS_ON)
            for name, results in self.results.items()
        }

    @cached_property
    def stored(self) -> list[TextTable]:
        """Return non-empty tables on restarts, and on checkpoint storage in the first run of each strategy."""
        if not self.results:
            return []
        first = {name: tables[0] for name, tables in self._tables.items()}
        sections = (
            planned_restarts_table(self.consequences, self._labels_behind),
            restarts_table(self._tables),
            *snapshot_tables(first),
            storage_use_table(self.storage_use, self.prices),
        )
        return [section for section in sections if section is not None]

    @cached_property
    def storage_use(self) -> dict[str, StorageUse]:
        """Return the use of an object store by label of the strategy."""
        return {name: runs.storage_use for name, runs in self.replications.items()}

    @property
    def consequences_sentence(self) -> str:
        """Return a sentence that compares the cost of failures, or "" if strategies do not differ."""
        overloaded = [line.label for line in self.strategies if line.overload is not None]
        return consequences_sentence(self.consequences, overloaded=overloaded)

    @property
    def overload(self) -> str:
        """Return a sentence on strategies that do not keep up even before the first fault, or ""."""
        return overload_sentence(self.strategies)

    @cached_property
    def violations(self) -> dict[str, tuple[str, ...]]:
        """Return descriptions of violated invariants by label of the strategy."""
        return {name: tuple(map(str, rows)) for name, rows in self._rows_by_strategy(lambda result: result.violations)}

    @cached_property
    def scarce(self) -> dict[str, str]:
        """Return a clause on scarce cores by label of the strategy."""
        return {name: text for name, results in self.results.items() if (text := scarce_cores(results[0]))}

    @cached_property
    def commits_less(self) -> bool:
        """Return True if some jobs that finish commit notably fewer records than others (COMMITTED_SHARE)."""
        committed = [line.finish.committed for line in self.strategies if line.finish is not None and line.commits]
        return bool(committed) and min(committed) < MIN_COMMITTED_SHARE * max(committed)

    @cached_property
    def continued_after_drain(self) -> list[str]:
        """Return the labels of strategies in which a job starts from the savepoint of a drained job."""
        return self._labels_where(lambda runs: _continues_drained(runs.results[0]))

    @cached_property
    def table(self) -> pd.DataFrame:
        """Return a row per strategy, with units in column names."""
        return table(self.strategies)

    @cached_property
    def verdict(self) -> str:
        """Return the sentence on the decisive difference between strategies."""
        if not self.strategies:
            return "No strategy has a result."
        caveat = f"{capitalised(self.caveat)}. As simulated: " if self.caveat else ""
        return f"{caveat}{self._mostly_disturbed_sentence}{self._none_completes_sentence}{verdict(self.strategies)}"

    @property
    def _mostly_disturbed_sentence(self) -> str:
        """Return a sentence if failures keep the job down or catching up for most of the run with each strategy, or "".

        They do not if the job does not keep up before the first one, or is full and its sources have no rate.
        """
        rows = [self.consequences[line.label] for line in self.strategies]
        is_dead = any(line.failed for line in self.strategies)
        if is_dead or not all(row.failures and row.disturbed_share >= _MIN_DISTURBED_SHARE for row in rows):
            return ""
        has_rates = all(vertex.source.rates for job in self._jobs for vertex in job.vertices if vertex.source)
        if any(line.overload is not None for line in self.strategies) or (
            not has_rates and any(map(is_full, self._runs))
        ):
            return ""
        least = share_text(min(row.disturbed_share for row in rows))
        of_all = " or more with all strategies" if len(rows) > 1 else ""
        return f"The job is down or catching up for {least} of the time{of_all}: failures decide, not checkpoints. "

    @property
    def _none_completes_sentence(self) -> str:
        """Return a sentence if checkpoints fail with each of several strategies, and none completes with any, or ""."""
        statuses = [set(result.checkpoints["status"]) for result in self._runs]
        if len(self.results) < 2 or not all("FAILED" in found and "COMPLETED" not in found for found in statuses):
            return ""
        return "No checkpoint completes with any strategy: each failure restarts the job from its beginning. "

    @cached_property
    def notes(self) -> list[str]:
        """Return the sentences below the table of strategies: what its numbers depend on, and which data it leaves out."""
        return [
            *filter(None, [self.overload, rocksdb_access_sentence(self._scenarios)]),
            *(f"Cores are scarce: {name}: {load}." for name, load in self.scarce.items()),
            *dict.fromkeys(self._uneven_subtask_sentences()),
            *self._fault_sentences(),
            *dict.fromkeys(chain.from_iterable(map(aligned_input_sentences, self._scenarios))),
            *self._sentences_by_strategy(shared_file_sentence),
            *self._missing_p99_sentences(),
            *map(str, self.deciding),
            *self._warm_up_sentences(),
        ]

    @cached_property
    def remarks(self) -> list[str]:
        """Return the sentences on the effect of single axes, on lags that differ, on the runs of each strategy, and on late records."""
        return [
            *axis_sentences(self.strategies),
            *self._lag_sentences(),
            *self._sentences_by_strategy(_run_sentences),
            *self._late_record_sentences(),
        ]

    @cached_property
    def outcomes(self) -> list[str]:
        """Return the sentences on other events: replayed output, restarts, lost windows, rejected savepoints and so on."""
        runs_during_recovery = self._labels_where(lambda runs: runs.scenario.checkpoint.during_recovery)
        waits_for_more_slots = self._labels_where(
            lambda runs: runs.scenario.restart.scheduler == "adaptive" and runs.scenario.restart.stabilization_ns
        )
        return [
            *self.remarks,
            *self._repetition_sentences(),
            *self._sentences_by_strategy(sink_sentences),
            *(
                f"{sentence}."
                for sentence in dict.fromkeys(
                    [*self._replayed_output_sentences(), *self._axis_without_effect_sentences()]
                )
            ),
            *filter(None, [longest_downtime_sentence(self._tables, runs_during_recovery, waits_for_more_slots)]),
            *self._sentences_by_strategy(lambda runs: interruption_sentences(runs.results[0])),
            *self._drain_sentences(),
            *(
                f"Refused: {name}: {rows[0]}{more_text(len(rows) - 1)}."
                for name, rows in self._rows_by_strategy(lambda result: result.refused)
            ),
        ]

    def _labels_where(self, holds: Callable[[Replications], object]) -> list[str]:
        """Return the labels of the strategies for whose runs a condition holds."""
        return [name for name, runs in self.replications.items() if holds(runs)]

    def _sentences_by_strategy(self, sentences: Callable[[Replications], Iterable[str]]) -> list[str]:
        """Return each distinct sentence about the strategies once, with their names unless it applies to all of them."""
        names_of = defaultdict[str, list[str]](list)
        for name, runs in self.replications.items():
            for sentence in sentences(runs):
                names_of[sentence].append(name)
        return [
            f"{few_names(names)}: {sentence}." if len(names) < len(self.results) else f"{sentence}."
            for sentence, names in names_of.items()
        ]

    def _repetition_sentences(self) -> Iterator[str]:
        """Yield sentences on records that at-least-once strategies processed twice, or by chance did not after a restart."""
        repetitions = dict(self._rows_by_strategy(lambda result: result.repetitions))
        for name, rows in repetitions.items():
            yield f"At least once, as asked for: {name}: {rows[0].where}: {rows[0].fact}{more_text(len(rows) - 1)}."
        names = self._labels_where(
            lambda runs: (
                not runs.scenario.checkpoint.barriers.record.exactly_once
                and any((result.recoveries["restored_checkpoint"] > 0).any() for result in runs.results)
            )
        )
        if names := [name for name in names if name not in repetitions]:
            yield (
                f"At least once ({listed(names)}): in this run no record was between the barriers of a restored checkpoint; those that "
                "are count twice in state and in output."
            )

    def _uneven_subtask_sentences(self) -> Iterator[str]:
        """Yield a sentence on each busiest subtask that is busier than the others of its vertex, with the reason."""
        for line in self.strategies:
            row, scenario = line.summary, self.results[line.label][0].scenario
            if scenario.rescale or scenario.restart.scheduler == "adaptive" or line.busiest[0] == row.bottleneck:
                continue  # the parallelism changes, or no single subtask is the busiest
            parallelism_of = {own.name: own.parallelism for own in scenario.job.vertices}
            if why := uneven_subtask(scenario.job.vertex(row.bottleneck), row.busiest_subtask, parallelism_of):
                yield f"'{line.busiest[0]}' is busier than the other subtasks of '{row.bottleneck}': it {why}."

    def _fault_sentences(self) -> Iterator[str]:
        """Yield a sentence on each planned fault that has a duration, with the checkpoints in progress during it."""
        checkpoints_of = defaultdict[str, list[str]](list)  # description of a fault -> checkpoints
        for name, results in self.results.items():
            rows = results[0].checkpoints
            ended_ms = rows["trigger_timestamp"] + rows["end_to_end_duration"]
            for fault in results[0].scenario.faults:
                lasts_ns: int = getattr(fault.what, "lasts_ns", None) or 0
                for at_ns in fault.when.at_ns if lasts_ns else ():
                    at_ms, until_ms = at_ns / 1e6, (at_ns + lasts_ns) / 1e6
                    ids = rows["id"][(rows["trigger_timestamp"] <= until_ms) & (ended_ms >= at_ms)].tolist()
                    if ids:
                        text = f"{kind_of_fault(fault.what)} from {ms_text(at_ms)} to {ms_text(until_ms)}"
                        checkpoints_of[text].append(f"{_ids_text(ids)} ({name})")
        for fault_text, checkpoints in checkpoints_of.items():
            yield f"During {fault_text}: {'; '.join(checkpoints)}."

    def _late_record_sentences(self) -> Iterator[str]:
        """Yield a sentence on how late records are with each way to write files of operators, if that differs much."""
        late_ms = {
            line.label: 1e3 * self.consequences[line.label].delay_p99_s
            for line in self.strategies
            if "checkpoint.operator-io" in dict(line.axes) and line.overload is None and not line.failed
        }
        if late_ms and max(late_ms.values()) >= max(_MIN_LATE_FACTOR * min(late_ms.values()), _MIN_LATE_MS):
            most, least = max(late_ms, key=late_ms.__getitem__), min(late_ms, key=late_ms.__getitem__)
            yield (
                f"Records are up to {ms_text(late_ms[most])} late with {most}, and {ms_text(late_ms[least])} with {least} (99th percentile): "
                "tasks that write files before the barrier process no records meanwhile."
            )

    def _lag_sentences(self) -> Iterator[str]:
        """Yield a sentence on the source whose lag depends most on the strategy, in jobs that keep up and never restart.

        Barriers that align can keep a vertex from one input for as long as another one is silent.  Durations of checkpoints
        do not show how long records wait.
        """
        if self._has_restarts or any(line.overload is not None or line.failed for line in self.strategies):
            return
        lags_s: dict[str, pd.Series[float]] = {}
        for name, own in self.replications.items():
            due = [vertex.name for vertex in own.scenario.job.vertices if vertex.source and vertex.source.rates]
            series = own.results[0].series
            rows = series[(series["time"] > own.warmup_s) & series["vertex"].isin(due)]  # without a rate nothing is due
            lags_s[name] = rows.groupby("vertex")["lag"].max().dropna()
        unlike = []
        for source in {name for lags in lags_s.values() for name in lags.index}:
            by_lag = sorted((float(lags[source]), name) for name, lags in lags_s.items() if source in lags)
            (least_s, early), (most_s, late) = by_lag[0], by_lag[-1]
            if most_s >= max(_MIN_UNLIKE_LAG_S, _MIN_LAG_RATIO * least_s):
                unlike.append((most_s, source, late, least_s, early))
        if unlike:
            most_s, source, late, least_s, early = max(unlike)
            yield (
                f"Records of '{source}' are read up to {ms_text(1e3 * most_s)} after they are due with {late}, and "
                f"{f'up to {ms_text(1e3 * least_s)}' if least_s else 'at once'} with {early}."
            )

    def _missing_p99_sentences(self) -> Iterator[str]:
        """Yield a sentence on the strategy with the fewest checkpoints, if the question asks for a p99 that needs more."""
        needed = STATISTICS["end_to_end_p99_ms"].smallest_sample
        fewest = min((line.summary.completed for line in self.strategies), default=needed)
        if fewest < needed and re.search(r"p99|99th|99 ?%", self.question.lower()):
            yield f"p99 needs {needed} checkpoints, and some strategy has {fewest}: set run.duration or run.replications."

    def _warm_up_sentences(self) -> Iterator[str]:
        """Yield sentences on detected warm-ups (`run.warmup: auto`), and on cold starts."""
        ends = {name: runs.warm_up for name, runs in self.replications.items() if runs.scenario.run.finds_warm_up}
        if any(end.ns for end in ends.values()):
            texts = [f"{name} {end if end.ns else 'nothing'}" for name, end in ends.items()]
            yield f"Left out as warm-up: {'; '.join(texts)}."
        elif ends:
            yield "Nothing is left out as warm-up: no run begins with an extreme of its own."
        if starts := [
            _cold_start_sentence(name, runs) for name, runs in self.replications.items() if runs.cold_start.ns
        ]:
            yield " ".join(starts)

    def _replayed_output_sentences(self) -> Iterator[str]:
        """Yield sentences, without a full stop, on what sinks do to output that is replayed, and what results do not include."""
        yield from chain.from_iterable(map(long_transaction_sentences, self._scenarios))
        known = dict(pair for job in self._jobs for pair in known_sinks(job).items())
        committing = {name: kind for name, (vertex, kind) in known.items() if vertex.commit is not None}
        for name, kind in committing.items():
            if kind.readers and self._has_restarts:
                yield f"'{name}': {kind.readers}"
            if kind.left_out:
                yield f"'{name}' {kind.left_out}"
        metadata = {name: kind.metadata for job in self._jobs for name, kind in table_sinks(job).items()}
        if metadata and any(use.has_requests for use in self.storage_use.values()):
            written = {*metadata.values()}
            least = f", at least {written.pop()}" if len(written) == 1 else ""
            names = listed([f"'{name}'" for name in sorted(metadata)])
            yield f"Requests, bytes and cost are without the metadata that {names} writes for each commit{least}"

    def _axis_without_effect_sentences(self) -> Iterator[str]:
        """Yield sentences on axes whose values give equal results for all values of the other axes."""
        results = {
            line.label: repr(
                (
                    line.summary,
                    line.singles.failures,
                    # how long checkpoints were in progress that failed
                    [
                        rows.loc[rows["status"] == "FAILED", "end_to_end_duration"].tolist()
                        for rows in (run["checkpoints"] for run in self._tables[line.label])
                    ],
                    line.status,
                    self.consequences[line.label],
                    self.storage_use[line.label],
                )
            )
            for line in self.strategies
        }
        for axis in dict.fromkeys(axis for line in self.strategies for axis, _ in line.axes if axis):
            groups = defaultdict[tuple[tuple[str, str], ...], list[str]](list)  # values of the other axes -> results
            for line in self.strategies:
                groups[tuple(pair for pair in line.axes if pair[0] != axis)].append(results[line.label])
            values = list(dict.fromkeys(dict(line.axes)[axis] for line in self.strategies if axis in dict(line.axes)))
            sinks = chain.from_iterable(known_sinks(job).values() for job in self._jobs)
            if axis.endswith(".connector") and any(
                kind.commit is not None and vertex.commit is None for vertex, kind in sinks
            ):
                continue  # commits, by which connectors differ, are not simulated, as a warning says
            if all(len(group) == len(values) > 1 and len(set(group)) == 1 for group in groups.values()):
                yield f"{axis} makes no difference here: {listed(values)} give the same results"
        adaptive = [own for own in self._scenarios if own.rescale and own.restart.scheduler == "adaptive"]
        if adaptive:
            yield (
                "A rescale is simulated as a new job that begins from a snapshot: that the adaptive scheduler rescales in place, "
                "when the next checkpoint has completed (2.0 and later), is not simulated"
            )

    def _drain_sentences(self) -> Iterator[str]:
        """Yield warnings on drained jobs with open windows, and on jobs that start from the savepoint of a drained one."""
        windows = {
            name: [f"'{vertex.name}'" for vertex in own.job.vertices if vertex.window and vertex.window.time == "event"]
            for name, own in zip(self.results, self._scenarios, strict=True)
            if any(action.stop == "drain" for action in own.actions)
        }
        if names := [name for name, found in windows.items() if found]:
            yield (
                f"Drain ({listed(names)}) ends the windows of {listed(windows[names[0]])} that are open: their results are of the data "
                "until then, and a job that is continued emits them again with the rest. Flink's documentation says not to drain a job that "
                "is to be resumed."
            )
        if drained := self.continued_after_drain:
            yield (
                f"Not a prediction: {listed(drained)}: a job starts from the savepoint of a drained job. Flink sends MAX_WATERMARK and the end "
                "of input before that savepoint (stop --drain): windows have fired, and some sinks commit nothing afterwards (iceberg#2033). "
                "Flink's documentation says not to resume such a job. Neither is simulated: stop without a drain, or do not continue it."
            )

    @property
    def _scenarios(self) -> list[Scenario]:
        return [runs.scenario for runs in self.replications.values()]

    @property
    def _runs(self) -> list[Result]:
        """Return the runs of all strategies."""
        return [result for results in self.results.values() for result in results]

    @property
    def _has_restarts(self) -> bool:
        return any(not result.recoveries.empty for result in self._runs)

    @property
    def _jobs(self) -> list[Job]:
        """Return the job of each strategy; their connectors may differ."""
        return [scenario.job for scenario in self._scenarios]

    @property
    def _tables(self) -> dict[str, list[Tables]]:
        return {name: runs.tables for name, runs in self.replications.items()}

    def _rows_by_strategy(self, rows_of: Callable[[Result], Iterable[_Row]]) -> Iterator[tuple[str, list[_Row]]]:
        """Yield (label of the strategy, rows of all its runs); strategies without rows are left out."""
        for name, results in self.results.items():
            if rows := [row for result in results for row in rows_of(result)]:
                yield name, rows

    def _strategy_row(self, name: str, replications: Replications) -> StrategyRow:
        """Return the row of a strategy, from which the verdict and the tables are built."""
        results, scenario, runs = replications.results, replications.scenario, replications.tables
        ends_s, warmup_s, cost = replications.ends_s, replications.warmup_s, replications.consequences
        job, options = scenario.job, scenario.checkpoint
        statuses = [result.job_status for result in results]
        failed = [status for status in statuses if status.startswith(DEAD)]
        is_steady = all(result.job_status == "RUNNING" and result.recoveries.empty for result in results)
        baselines = [
            run for result in results if (run := self.baselines.get(identity(baseline(result.scenario)))) is not None
        ]
        is_over = all(status.startswith(("FAILED", "FINISHED")) for status in statuses)
        interval_ns = options.interval_ns or 0
        runs_on = set(statuses) == {"RUNNING"}
        card = scenario.storage.nic_bytes_per_second
        return StrategyRow(
            label=name,
            axes=scenario.axes,
            group=label(scenario, is_of_workload) if scenario.axes else "",
            status=failed[0] if failed else statuses[0],
            summary=replications.summary,
            baseline_per_second=Replications(baselines).throughput_per_second if baselines and is_steady else math.nan,
            failed=bool(failed),
            name=label(scenario, lambda axis: not is_of_workload(axis)),
            steady=is_steady,
            until_s=sum(ends_s) / len(results) if is_over else math.nan,
            overload=None if is_over and not (failed or replications.is_stopped) else replications.overload,
            singles=singles(runs, warmup_s=warmup_s),
            first=replications.first_uploads,
            finish=finish(runs, ends_s, cost.committed_records) if replications.is_finished else None,
            intervals=count_intervals(
                replications.summary.completed / len(results), (min(ends_s) - warmup_s) * 1e3, interval_ns / 1e6
            )
            if interval_ns
            else math.inf,
            interval_ms=interval_ns / 1e6,
            warmup_ms=warmup_s * 1e3,
            last_trigger_s=last_trigger_s(runs, ends_s, interval_ns / 1e9, options.min_pause_ns / 1e9)
            if runs_on and interval_ns
            else math.nan,
            late=late_triggers(runs, options),
            savepoint=long_savepoint(runs[0], interval_ms=interval_ns / 1e6),
            has_savepoints=any(map(has_savepoints, runs)),
            committers=tuple(vertex.name for vertex in job.vertices if vertex.committer_of),
            commit_ms={
                v.name: v.commit.time_ns / 1e6
                for v in job.vertices
                if v.commit and v.commit.committer == "chained" and v.commit.time_ns
            },
            firing=tuple(vertex.name for vertex in job.vertices if vertex.window and vertex.window.fire_ns),
            is_off=not interval_ns,
            without_interval=not interval_ns and not scenario.actions and scenario.instances == Instances(),
            commits=any(vertex.commit is not None for vertex in job.vertices),
            hidden=tuple(vertex.name for vertex in job.vertices if vertex.commit is not None and not cost.commits),
            not_completed=not_completed(runs, [1e3 * end_s for end_s in ends_s], warmup_s=warmup_s),
            sinks=without_readers(job),
            sources=tuple(vertex.name for vertex in job.vertices if vertex.source is not None),
            unlimited_bytes=scenario.unlimited_bytes,
            tolerable=options.tolerable_failed,
            harmed_sink=harmed_sink(scenario),
            aligned=tuple(
                {down for _, down in forced_aligned_edges(job, options.forced_aligned, scenario.cluster.version)}
            ),
            card_bytes_per_second=math.inf if card is None else card * len(set(hosts(scenario))),
            held_window=held_window(results[0]),
        )


def _run_sentences(runs: Replications) -> Iterator[str]:
    """Yield sentences on the first run of a strategy: output, replay, files, failures, load, limits and growth."""
    result = runs.results[0]
    sources = [vertex for vertex in runs.scenario.job.vertices if vertex.source]
    yield from extrapolation_sentences(runs)
    yield from output_sentences(runs)
    if runs.consequences.commits:
        yield from replayed_sentences(result)
    yield from timed_out_sentence(runs)
    yield from file_sentences(result)
    yield from failure_sentences(result)
    if result.recoveries.empty and any(vertex.source and len(vertex.source.rates) > 1 for vertex in sources):
        yield from peak_sentences(result.series, [vertex.name for vertex in sources])
        yield from late_result_sentences(result)
    yield from limit_sentences(result)


def _cold_start_sentence(name: str, replications: Replications) -> str:
    """Return a sentence on the number of checkpoints in the cold start, and on the median duration of later ones."""
    end = replications.cold_start
    inside = max(int((run["checkpoints"]["trigger_timestamp"] * 1e6 < end.ns).sum()) for run in replications.tables)
    counted = {0: "no checkpoint is", 1: "the first checkpoint is"}.get(inside, f"the first {inside} checkpoints are")
    after_ms = replications.median_duration_ms(end)
    rest = "no other was completed" if math.isnan(after_ms) else f"the others take {ms_text(after_ms)} in the median"
    return f"Cold start: {counted} in that of {name} (the first {end}); {rest}."


def _continues_drained(result: Result) -> bool:
    """Return True if a job of this run starts from the savepoint of a job that was stopped with --drain."""
    drained_ms = [action.at_ns / 1e6 for action in result.scenario.actions if action.stop == "drain"]
    begun_ms = result.tables["restores"]["begun"] if result.scenario.instances.start_from == "savepoint" else ()
    return any(at_ms < begin_ms for at_ms in drained_ms for begin_ms in begun_ms)


def _ids_text(ids: Sequence[int]) -> str:
    """Return ``checkpoint 3``, or ``checkpoints 3 to 7``."""
    return f"checkpoint {ids[0]}" if len(ids) == 1 else f"checkpoints {ids[0]} to {ids[-1]}"


def _job_end(results: Sequence[Result]) -> str:
    """Return how the jobs of one strategy ended, e.g. ``failed at 33 s (2 of 3)``, or "" if none ended within its run."""
    ended = [result for result in results if result.job_status != "RUNNING"]
    if not ended:
        return ""
    first = ended[0]
    if first.job_status.startswith("RESTARTING"):
        return "restarts forever"
    if NOT_STOPPED in first.job_status:
        return "not stopped in time"
    often = f" ({len(ended)} of {len(results)})" if len(ended) < len(results) else ""
    return f"{first.job_status.partition(':')[0].lower()} at {ms_text(first.ended_ns / 1e6)}{often}"
