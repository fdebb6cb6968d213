"""Comparison of the strategies of a study, as rows, sentences and tables.

`Comparison` holds the results of all strategies; its properties are the verdict, the table, the notes and the outcomes that
`ckptsim run` prints.  The functions before it explain lost TaskManagers, scarce cores and skew.  `DecidingAssumption` is an
assumption that changes the answer; `sim.studies.deciding` finds them.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, chain, pairwise, starmap
from typing import TYPE_CHECKING, TypeVar

from sim.model.faults import StorageOutage, TaskManagerLost, kind_of_fault
from sim.model.job import Distribution, Job, Vertex, key_groups
from sim.model.quantities import PLANNED_RESTARTS, S3_STANDARD, Prices
from sim.model.randomness import slowdown
from sim.model.scenario import Instances, Scenario
from sim.model.sinks import DOES_NOT_START, SinkKind
from sim.model.state import (
    LOAD_BYTES_PER_SECOND,
    LOAD_ENTRY_NS,
    MAX_ROCKSDB_ACCESS_NS,
    MIN_ROCKSDB_ACCESS_NS,
    ROCKSDB_ACCESS_NS,
)
from sim.model.storage import Retry
from sim.model.text import capitalised, listed
from sim.model.units import UnitError, format_duration, parse_flink_size
from sim.protocol.options import forced_aligned_edges
from sim.protocol.recovery import outages
from sim.results.consequences import (
    Consequences,
    consequences_sentence,
    consequences_texts,
    planned_restarts_table,
    replay_waits_ms,
)
from sim.results.end_of_job import finish, last_trigger_s
from sim.results.estimates import is_noise
from sim.results.formats import TextTable, bytes_text, change_text, count_text, ms_text, per_second_text, share_text
from sim.results.journal import Happening
from sim.results.late_triggers import late_triggers, long_savepoint
from sim.results.not_completed import not_completed
from sim.results.rates import MAX_REMAINING_SHARE, Tables, backlog, overload_since
from sim.results.restarts import longest_downtime_sentence, restarts_table
from sim.results.side_by_side import StrategyRow, singles, table
from sim.results.stored import (
    StorageUse,
    commits_per_hour,
    known_sinks,
    rolled_back_sentences,
    storage_use_table,
    stored,
    table_sinks,
    whole_periods_ms,
)
from sim.results.summary import STATISTICS, bottleneck
from sim.results.sweep_answers import DEAD
from sim.results.tables import EXPIRED, has_savepoints, is_periodic
from sim.results.verdict import MIN_COMMITTED_SHARE, axis_sentences, few_names, overload_sentence, verdict
from sim.runtime.lowering import hosts, restarts_after_loss
from sim.runtime.result import Result, identity
from sim.storage.media.flat import slowness
from sim.studies.interruptions import (
    chained_commits_sentences,
    overlap_sentences,
    refusal_sentences,
    sentences_on_slots,
    sentences_on_windows,
)
from sim.studies.plan import baseline
from sim.studies.replications import Replications

if TYPE_CHECKING:
    import pandas as pd


# ---- The time until a killed TaskManager is replaced. It is a range, because the phase of heartbeats is random.

_TENTH_NS = 100_000_000


def outage_sentence(scenario: Scenario) -> str:
    """Return a sentence on detection and redeployment of a killed TaskManager.

    Return "" if every lost TaskManager stops orderly (SIGTERM) or falls silent, or if none is lost.
    """
    losses = [fault.what for fault in scenario.faults if isinstance(fault.what, TaskManagerLost)]
    if all(loss.silent or loss.orderly for loss in losses):
        return ""
    overheads, restart = scenario.overheads, scenario.restart
    killed = restarts_after_loss(scenario, {loss.host for loss in losses if not (loss.silent or loss.orderly)})
    cases = [
        case for own in killed for case in outages(own, fail_ns=overheads.fail_ns, restart_ns=overheads.restart_ns)
    ]
    redeployed = [case for case in cases if case.ready_ns is not None]
    share = 100 * (1 - len(redeployed) / len(cases))
    gives_up = f"the restart strategy gives up before there are slots in {share:.0f} % of all cases"
    if not redeployed:
        return f"A killed task manager fails the job: {gives_up}"
    by = "of its end" if restart.provider != "standalone" else "by its heartbeats (heartbeat-interval)"
    missed = _range([case.missed_ns for case in cases])
    sentence = f"The JobMaster hears {by} after {missed} that a task manager was killed"
    failing = sorted({case.deployments - 1 for case in redeployed})
    if restart.scheduler != "adaptive":
        if failing[-1]:
            count = " to ".join(map(str, dict.fromkeys((failing[0], failing[-1]))))
            sentence += f"; {count} deployments fail before"
        ready = _range([case.ready_ns for case in redeployed if case.ready_ns is not None])
        sentence += f"; its tasks have slots again after {ready}"
    return sentence + (f"; {gives_up}" if len(redeployed) < len(cases) else "")


def _range(times_ns: list[int]) -> str:
    """Return ``4.2 s to 9.8 s``, rounded to 0.1 s."""
    bounds_ns = (round(bound(times_ns) / _TENTH_NS) * _TENTH_NS for bound in (min, max))
    return " to ".join(dict.fromkeys(map(format_duration, bounds_ns)))


# ---- Values that a scenario omits, and that would change its answer.

WARM_UP = "run.warmup"
TIMEOUT = "checkpoint.timeout"


@dataclass(frozen=True, slots=True)
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
    # (as assumed, as tried), if the stored in-flight data changes and the duration does not
    in_flight_bytes: tuple[float, float] | None = None

    def __str__(self) -> str:
        """Return, e.g., ``Assumed: files have no latency (storage.file-latency).  With 40 ms ... instead of ...``."""
        before, after = self._values
        if self.key == TIMEOUT:
            outcome = (
                f"is not complete after {ms_text(self.after_ms)} either"
                if self.is_bound
                else f"completes after {after}"
            )
            return f"{capitalised(self.moves)} expires after {before}; with {self.tried} it {outcome}."
        if self.key == WARM_UP:
            change = f"Without {self.tried}, {self.moves} is {after} instead of {before}."
        else:
            change = f"With {self.tried} {self.moves} {'takes' if self.in_flight_bytes is None else 'has'} {after} instead of {before}."
        return f"Assumed: {self.assumed}{self._numbers}. {change}"

    @property
    def _values(self) -> tuple[str, str]:
        """Return the texts of the result (as assumed, as tried)."""
        if self.in_flight_bytes is not None:
            before, after = map(bytes_text, self.in_flight_bytes)
            return before, f"{after} in flight"
        return ms_text(self.before_ms), f"{'more than ' if self.is_bound else ''}{ms_text(self.after_ms)}"

    @property
    def _numbers(self) -> str:
        """Return the clause with the write rate, or with the number of files, or ""."""
        if self.bytes_per_second is not None:
            return f": {bytes_text(self.bytes_per_second)}/s leave {self.count} of them"
        return "" if self.count is None else f", and {self.count} wait for each other"


# ---- State backends that are compared with the same service times.


def rocksdb_access_sentence(scenarios: Iterable[Scenario]) -> str:
    """Return a warning if vertices have the same service time on the heap and in RocksDB, which takes longer per record.

    Return "" if no vertex has both backends in the scenarios, or if each has another service time in RocksDB.
    """
    backends = defaultdict[tuple[str, tuple[Distribution, ...]], set[bool]](set)
    for vertex in chain.from_iterable(scenario.job.vertices for scenario in scenarios):
        if vertex.state is not None:
            services = tuple(inlet.service for inlet in vertex.inputs) or (vertex.service,)
            backends[vertex.name, services].add(vertex.state.kind.keeps_files)
    alike = {name: min(law.mean for law in services) for (name, services), kinds in backends.items() if len(kinds) > 1}
    if not alike:
        return ""
    name = min(alike, key=alike.__getitem__)
    access, least, most = map(format_duration, (ROCKSDB_ACCESS_NS, MIN_ROCKSDB_ACCESS_NS, MAX_ROCKSDB_ACCESS_NS))
    change, largest = (change_text(ns / alike[name]) for ns in (ROCKSDB_ACCESS_NS, MAX_ROCKSDB_ACCESS_NS))
    return (
        f"What RocksDB costs each record is not included, about {access} ({least} to {most}): '{name}'{_others(len(alike) - 1)} takes "
        f"{ms_text(alike[name] / 1e6)} with both backends, and {access} are {change}, {most} {largest}. Give RocksDB a longer service."
    )


# ---- Hosts whose task threads need more cores than they have.

_MIN_SLOWDOWN_IF_FULL = 0.05
"""Minimum slowdown that is reported if threads need all cores or more on average."""
_MIN_SLOWDOWN_AT_TIMES = 0.25
"""Minimum slowdown that is reported if threads need fewer cores on average, so that they compete only at times."""

_COLUMNS = ("vertex", "index", "accumulateBusyTimeMs", "numRecordsIn")


def scarce_cores(result: Result) -> str:
    """Return a clause on the host with the most busy threads, and on how much its records slow down.

    Return "" if the host has enough cores, if the number of cores is unknown, or if service times were measured side by side
    (`cluster.services`): they include waiting for cores already.  An import sets side-by-side for tasks that sleep.
    """
    cluster, scenario = result.scenario.cluster, result.scenario
    tasks, managers = result.tasks, hosts(scenario)
    if cluster.cores is None or cluster.tasks_contend is False or len(tasks) != len(managers) or not result.ended_ns:
        return ""
    subtasks = [(vertex, index) for vertex in scenario.job.vertices for index in range(vertex.parallelism)]
    manager_of = {
        (vertex.name, index): (vertex, manager) for (vertex, index), manager in zip(subtasks, managers, strict=True)
    }
    busy_shares = defaultdict[int, list[float]](list)
    for name, index, busy_ms, records in zip(*(tasks[column] for column in _COLUMNS), strict=True):
        vertex, manager = manager_of[str(name), int(index)]
        worked_ns = busy_ms * 1e6 if vertex.work_ns is None else min(busy_ms * 1e6, records * vertex.work_ns)
        busy_shares[cluster.host(manager)].append(worked_ns / result.ended_ns)
    busiest = max(busy_shares.values(), key=sum)
    threads = sum(busiest)
    slower = float(tasks["x_coreSlowdown"].max()) if cluster.tasks_contend else slowdown(busiest, cluster.cores)
    if slower < 1 + (_MIN_SLOWDOWN_IF_FULL if threads >= cluster.cores else _MIN_SLOWDOWN_AT_TIMES):
        return ""
    cores = f"{cluster.cores} core{'s' * (cluster.cores > 1)}"
    load = f"on average over the run {threads:.1f} threads of tasks are busy at once on {cores}"
    if cluster.tasks_contend:
        return f"{load}, so records take {slower:.2g} times as long as on idle ones; subtasks added there would share these cores"
    return (
        f"{load}, and none of them waits: cluster: services does not say how services were measured. If on idle cores (idle-core), "
        f"throughput is up to {slower:.2g} times lower; if with all tasks at work, or if tasks sleep (side-by-side), it is as here"
    )


# ---- Reasons for skew that are in the scenario.


def uneven_subtask(vertex: Vertex, index: int) -> str:
    """Return why a subtask is busier than the others of its vertex: key groups, records, or work per record.

    Return "" if the scenario does not explain it.
    """
    reasons, groups = [], vertex.max_parallelism
    for inlet in vertex.inputs:
        if inlet.weights and (shares := vertex.shares(inlet))[index] > Fraction(1, vertex.parallelism):
            least = share_text(float(min(shares)))
            reasons.append(
                f"gets {share_text(float(shares[index]))} of the records of '{inlet.upstream}', and the least {least}"
            )
        elif inlet.shipping.keyed and not inlet.weights:
            owned = [len(key_groups(i, vertex.parallelism, groups)) for i in range(vertex.parallelism)]
            if owned[index] > min(owned):
                fewest = f"{owned.count(min(owned))} of its {vertex.parallelism} subtasks own {min(owned)}"
                reasons.append(
                    f"owns {owned[index]} of {groups} key groups, and {fewest} (a max-parallelism that is a multiple of "
                    f"{vertex.parallelism} gives each as many; state that exists keeps the one it has)"
                )
    if (factor := dict(vertex.service_factors).get(index, 1)) > 1:
        reasons.append(f"takes {float(factor):.2g} times as long per record")
    return "; it ".join(dict.fromkeys(reasons))


# ---- Results of a study by strategy. Derived values are computed at their first use, and cached.

_MIN_DISTURBED_SHARE = 0.5
"""Share of the run in which a job is down or catching up, from which the verdict begins with it."""
_MAX_EMPTY_COMMITS = 10
"""Default of flink.max-continuous-empty-commits (Iceberg's FlinkSink and IcebergSink)."""
_MIN_LATE_FACTOR, _MIN_LATE_MS = 5, 1000
"""Minimum ratio and size of the delays of records that are compared."""
RUNS_ON = "runs on"
"""Status of a job that neither failed nor finished."""
CONTINUES_DRAINED = "continues a drained job"
"""Status of a job that still runs and was started from the savepoint of a drained job."""


_Row = TypeVar("_Row")


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
        return tuple(starmap(self._strategy, self.replications.items()))

    def with_deciding(self, assumptions: tuple[DecidingAssumption, ...]) -> Comparison:
        """Return a copy with deciding assumptions.  Cached values are copied too; call this before `notes` is used."""
        copy = replace(self)
        vars(copy).update(vars(self) | {"deciding": assumptions})
        return copy

    @cached_property
    def consequences(self) -> dict[str, Consequences]:
        """Return the consequences by label of the strategy."""
        return {name: runs.consequences() for name, runs in self.replications.items()}

    @property
    def _behind(self) -> list[str]:
        """Return the labels of strategies in which the backlog grows in some run."""
        return [name for name, runs in self.replications.items() if any(runs.falls_behind)]

    @property
    def warmup_s(self) -> float:
        """Return the longest warm-up of all strategies [s], for figures that show all of them."""
        return max((runs.warmup_s for runs in self.replications.values()), default=0.0)

    def consequences_texts(self) -> tuple[list[str], list[list[str]]] | None:
        """Return (header, rows) of the table of consequences, or None if no strategy has a commit, a failure or a job end."""
        ends = self.job_ends
        if all(row.nothing_happened for row in self.consequences.values()) and set(ends.values()) <= {RUNS_ON}:
            return None
        runs = {name: len(results) for name, results in self.results.items()}
        at_once = [
            name
            for name, runs in self.replications.items()
            if all(vertex.commit is None for vertex in runs.scenario.job.vertices)
        ]
        return consequences_texts(self.consequences, ends, runs, at_once, self._behind)

    @property
    def job_ends(self) -> dict[str, str]:
        """Return how the job ends, by label of the strategy: ``failed at 33 s``, ``finished at 15 s (2 of 3)``, ``runs on``, ..."""
        return {
            name: DOES_NOT_START
            if _harmed_sink(results[0].scenario).endswith(DOES_NOT_START)
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
            planned_restarts_table(self.consequences, self._behind),
            restarts_table(self._tables),
            *stored(first, self._jobs[0].edges),
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
        return {name: tuple(map(str, rows)) for name, rows in self._of_runs(lambda result: result.violations)}

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
        return [name for name, results in self.results.items() if _continues_drained(results[0])]

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
        return f"{caveat}{self._mostly_disturbed}{self._none_completes}{verdict(self.strategies)}"

    @property
    def _mostly_disturbed(self) -> str:
        """Return a sentence if failures keep the job down or catching up for most of the run with each strategy, or "".

        They do not if a vertex is always busy before the first one.
        """
        rows = [self.consequences[line.label] for line in self.strategies]
        is_dead = any(line.failed for line in self.strategies)
        if is_dead or not all(row.failures and row.disturbed_share >= _MIN_DISTURBED_SHARE for row in rows):
            return ""
        if any(_is_full(result) for results in self.results.values() for result in results):
            return ""
        least = share_text(min(row.disturbed_share for row in rows))
        of_all = " or more with all strategies" if len(rows) > 1 else ""
        return f"The job is down or catching up for {least} of the time{of_all}: failures decide, not checkpoints. "

    @property
    def _none_completes(self) -> str:
        """Return a sentence if checkpoints fail with each of several strategies, and none completes with any, or ""."""
        statuses = [set(result.checkpoints["status"]) for results in self.results.values() for result in results]
        if len(self.results) < 2 or not all("FAILED" in found and "COMPLETED" not in found for found in statuses):
            return ""
        return "No checkpoint completes with any strategy: a failure begins the job anew. "

    @cached_property
    def notes(self) -> list[str]:
        """Return the sentences below the table of strategies: what its numbers depend on, and which data it leaves out."""
        return [
            *filter(None, [self.overload, rocksdb_access_sentence(self._scenarios)]),
            *(f"Cores are scarce: {name}: {load}." for name, load in self.scarce.items()),
            *dict.fromkeys(self._uneven()),
            *self._during_faults(),
            *dict.fromkeys(chain.from_iterable(map(_aligned_inputs, self._scenarios))),
            *self._waits_for_shared_files(),
            *self._without_p99(),
            *map(str, self.deciding),
            *self._left_out(),
        ]

    @cached_property
    def outcomes(self) -> list[str]:
        """Return the sentences on other events: replayed output, restarts, lost windows, rejected savepoints and so on."""
        sinks = [*self._rollbacks(), *self._replays(), *chain.from_iterable(map(_long_transactions, self._scenarios))]
        return [
            *self._remarks(),
            *(
                f"At least once, as asked for: {name}: {rows[0].where}: {rows[0].fact}{_others(len(rows) - 1)}."
                for name, rows in self._of_runs(lambda result: result.repetitions)
            ),
            *self._none_twice(),
            *self._timed_out(),
            *self._late_records(),
            *(
                f"{sentence}."
                for sentence in dict.fromkeys([*sinks, *self._left_out_of_tables(), *self._axes_without_effect()])
            ),
            *filter(
                None, [longest_downtime_sentence(self._tables, self._runs_during_recovery, self._waits_for_more_slots)]
            ),
            *_with_names({name: _interruptions(results[0]) for name, results in self.results.items()}),
            *dict.fromkeys(self._lost_windows()),
            *self._drained(),
            *(
                f"Refused: {name}: {rows[0]}{_others(len(rows) - 1)}."
                for name, rows in self._of_runs(lambda result: result.refused)
            ),
        ]

    def _none_twice(self) -> Iterator[str]:
        """Yield a sentence if at-least-once strategies restarted, and by chance processed no record twice."""
        names = [
            name
            for name, results in self.results.items()
            if not results[0].scenario.checkpoint.barriers.record.exactly_once
            and any((result.recoveries["restored_checkpoint"] > 0).any() for result in results)
            and not any(result.repetitions for result in results)
        ]
        if names:
            yield (
                f"At least once ({listed(names)}): in this run no record was between the barriers of a restored checkpoint; those that "
                "are count twice in state and in output."
            )

    def _timed_out(self) -> Iterator[str]:
        """Yield a sentence per strategy on the records of all transactions that timed out, if there are several."""
        for name, results in self.results.items():
            if all(
                vertex.commit is None or vertex.commit.transaction_timeout_ns is None
                for vertex in results[0].scenario.job.vertices
            ):
                continue
            lost = [records for result in results for records in result.commits["lost_records"] if records]
            if len(lost) > 1:
                yield (
                    f"{name}: {count_text(sum(lost))} records are lost in all, of {len(lost)} commits whose transactions had timed out: one has "
                    "to outlive the interval, the failure and the restart (commit.transaction-timeout)."
                )

    def _late_records(self) -> Iterator[str]:
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
                "tasks that write files before the barrier serve no records meanwhile."
            )

    def _uneven(self) -> Iterator[str]:
        """Yield a sentence on each busiest subtask that is busier than the others of its vertex, with the reason."""
        for line in self.strategies:
            row, scenario = line.summary, self.results[line.label][0].scenario
            if scenario.rescale or scenario.restart.scheduler == "adaptive" or line.busiest[0] == row.bottleneck:
                continue  # the parallelism changes, or no single subtask is the busiest
            if why := uneven_subtask(scenario.job.vertex(row.bottleneck), row.busiest_subtask):
                yield f"'{line.busiest[0]}' is busier than the other subtasks of '{row.bottleneck}': it {why}."

    def _during_faults(self) -> Iterator[str]:
        """Yield a sentence on each planned fault that has a duration, with the checkpoints in progress during it."""
        checkpoints_of = defaultdict[str, list[str]](list)  # description of a fault -> checkpoints
        backoffs_ms = set[float]()
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
                    if isinstance(fault.what, StorageOutage):
                        backoffs_ms |= set(_backoffs_ms(results[0].scenario.storage.retry, lasts_ns))
        for fault_text, checkpoints in checkpoints_of.items():
            yield f"During {fault_text}: {'; '.join(checkpoints)}."
        if (longest_ms := max(backoffs_ms, default=0.0)) >= _MIN_BACKOFF_MS:
            yield (
                f"Clients of storage wait up to {ms_text(longest_ms)} before they try again (storage.retry), so an outage may last "
                "that much longer for them."
            )

    def _waits_for_shared_files(self) -> Iterator[str]:
        """Yield a sentence on strategies whose asynchronous part is mostly waiting for other subtasks, without in-flight data."""
        for line in self.strategies:
            options, row = self.results[line.label][0].scenario.checkpoint, line.summary
            is_shared = options.barriers.kind == "unaligned" and options.subtasks_per_channel_state_file > 1
            if is_shared and row.persisted_bytes == 0 and not is_noise(row.async_ms, row.path.async_ms):
                yield (
                    f"{line.label}: async is {ms_text(row.async_ms)}, but {ms_text(row.path.async_ms)} on the critical path: a subtask "
                    "acknowledges only when all that share its file of in-flight data, empty or not, have their last barrier "
                    "(checkpoint.subtasks-per-channel-state-file)."
                )

    def _without_p99(self) -> Iterator[str]:
        """Yield a sentence on the strategy with the fewest checkpoints, if the question asks for a p99 that needs more."""
        needed = STATISTICS["end_to_end_p99_ms"].smallest_sample
        fewest = min((line.summary.completed for line in self.strategies), default=needed)
        if fewest < needed and re.search(r"p99|99th|99 ?%", self.question.lower()):
            yield f"p99 needs {needed} checkpoints, and some strategy has {fewest}: set run.duration or run.replications."

    def _left_out(self) -> Iterator[str]:
        """Yield sentences on detected warm-ups (`run.warmup: auto`), and on cold starts."""
        ends = {name: runs.warm_up for name, runs in self.replications.items() if runs.scenario.run.finds_warm_up}
        if any(end.ns for end in ends.values()):
            texts = [f"{name} {end if end.ns else 'nothing'}" for name, end in ends.items()]
            yield f"Left out as warm-up: {'; '.join(texts)}."
        elif ends:
            yield "Nothing is left out as warm-up: no run begins with an extreme of its own."
        if starts := [_in_cold_start(name, runs) for name, runs in self.replications.items() if runs.cold_start.ns]:
            yield " ".join(starts)

    def _remarks(self) -> Iterator[str]:
        """Yield sentences on other differences than checkpoint durations, from the first run of each strategy."""
        yield from axis_sentences(self.strategies)
        yield from _with_names(
            {
                name: _sentences(runs.results[0], self.consequences[name], runs.warmup_s)
                for name, runs in self.replications.items()
            }
        )

    def _rollbacks(self) -> Iterator[str]:
        """Yield sentences on jobs that start from a snapshot older than the newest committed one."""
        for name, results in self.results.items():
            connectors = {vertex.known_connector for vertex in results[0].scenario.job.vertices}
            twice = sum(violation.records_twice for violation in results[0].violations)
            for text in rolled_back_sentences(results[0].tables, twice=twice, connectors=connectors):
                yield f"{name}: {text}"

    def _replays(self) -> Iterator[str]:
        """Yield what readers of transactional sinks must set to see replayed records once."""
        if all(result.recoveries.empty for results in self.results.values() for result in results):
            return
        for name, (vertex, kind) in self._known_sinks.items():
            if vertex.commit is not None and kind.readers:
                yield f"'{name}': {kind.readers}"

    def _left_out_of_tables(self) -> Iterator[str]:
        """Yield sentences on what sinks do and results do not include: metadata, empty commits, commits of compacted files."""
        for name, (vertex, kind) in self._known_sinks.items():
            if kind.left_out and vertex.commit is not None:
                yield f"'{name}' {kind.left_out}"
        metadata = {name: kind.metadata for job in self._jobs for name, kind in table_sinks(job).items()}
        if metadata and any(use.has_requests for use in self.storage_use.values()):
            written = {*metadata.values()}
            least = f", at least {written.pop()}" if len(written) == 1 else ""
            names = listed([f"'{name}'" for name in sorted(metadata)])
            yield f"Requests, bytes and cost are without the metadata that {names} writes for each commit{least}"
        vertices = {vertex.name: vertex for job in self._jobs for vertex in job.vertices}
        committing = [
            name for name, vertex in vertices.items() if vertex.commit is not None and not vertex.committer_of
        ]
        if len(committing) != 1:
            return  # with several sinks it is unknown which of them had no data
        sinks = [known_sinks(job).get(committing[0]) for job in self._jobs]
        if any(sink is None or sink[1].component != "iceberg" for sink in sinks):
            return
        for line in self.strategies:
            completed = line.summary.completed
            empty = completed - self.consequences[line.label].commits * len(self.results[line.label])
            if empty >= _MAX_EMPTY_COMMITS:
                yield (
                    f"{line.label}: {empty:.0f} of {completed} completed checkpoints had no data to commit; Iceberg makes an "
                    f"empty commit after {_MAX_EMPTY_COMMITS} of these in a row (flink.max-continuous-empty-commits), which is not simulated"
                )

    def _axes_without_effect(self) -> Iterator[str]:
        """Yield sentences on axes whose values give equal results for all values of the other axes."""
        results = {
            line.label: repr(
                (
                    line.summary,
                    line.singles.failures,
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
                kind.committer != "none" and vertex.commit is None for vertex, kind in sinks
            ):
                continue  # commits, by which connectors differ, are not simulated, as a warning says
            if all(len(group) == len(values) > 1 and len(set(group)) == 1 for group in groups.values()):
                is_rescaled = axis == "restart.scheduler" and any(scenario.rescale for scenario in self._scenarios)
                why = ": a rescale is a new job that begins from a snapshot, rescaling in place is not simulated"
                yield f"{axis} makes no difference here: {listed(values)} give the same results{why * is_rescaled}"

    def _lost_windows(self) -> Iterator[str]:
        """Yield a sentence on each processing-time window of a job that finishes: its last window never fires."""
        for job, line in zip(self._jobs, self.strategies, strict=True):
            for vertex in job.vertices if line.finish is not None else ():
                if vertex.window is not None and vertex.window.time == "processing":
                    yield (
                        f"'{vertex.name}' fires nothing at the end of the data: its windows are in processing time, and Flink drops "
                        "timers that are not due."
                    )

    def _drained(self) -> Iterator[str]:
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
    def _jobs(self) -> list[Job]:
        """Return the job of each strategy; their connectors may differ."""
        return [scenario.job for scenario in self._scenarios]

    @property
    def _known_sinks(self) -> dict[str, tuple[Vertex, SinkKind]]:
        """Return (vertex, kind of sink) by name, of all jobs."""
        return dict(pair for job in self._jobs for pair in known_sinks(job).items())

    @property
    def _runs_during_recovery(self) -> list[str]:
        """Return the strategies whose tasks run before they have processed recovered in-flight data."""
        return [name for name, runs in self.replications.items() if runs.scenario.checkpoint.during_recovery]

    @property
    def _waits_for_more_slots(self) -> list[str]:
        """Return the strategies whose scheduler waits for more slots than there are after the restart delay."""
        return [
            name
            for name, runs in self.replications.items()
            if runs.scenario.restart.scheduler == "adaptive" and runs.scenario.restart.stabilization_ns
        ]

    @property
    def _tables(self) -> dict[str, list[Tables]]:
        return {name: runs.tables for name, runs in self.replications.items()}

    def _of_runs(self, rows_of: Callable[[Result], Iterable[_Row]]) -> Iterator[tuple[str, list[_Row]]]:
        """Yield (label of the strategy, rows of all its runs); strategies without rows are left out."""
        for name, results in self.results.items():
            if rows := [row for result in results for row in rows_of(result)]:
                yield name, rows

    def _strategy(self, name: str, replications: Replications) -> StrategyRow:
        """Return the row of a strategy, from which the verdict and the tables are built."""
        results, scenario, runs = replications.results, replications.scenario, replications.tables
        ends_s, warmup_s = replications.ends_s, replications.warmup_s
        job, options, summary = scenario.job, scenario.checkpoint, replications.summary()
        statuses = [result.job_status for result in results]
        failed = [status for status in statuses if status.startswith(DEAD)]
        is_steady = all(result.job_status == "RUNNING" and result.recoveries.empty for result in results)
        baselines = [
            run for result in results if (run := self.baselines.get(identity(baseline(result.scenario)))) is not None
        ]
        is_over = all(status.startswith(("FAILED", "FINISHED")) for status in statuses)
        is_stopped = any(action.stop is not None for action in scenario.actions)  # a stop is not the end of the data
        is_finished = set(statuses) == {"FINISHED"} and not is_stopped
        interval_ns = options.interval_ns or 0
        runs_on = set(statuses) == {"RUNNING"}
        cost, card = self.consequences[name], scenario.storage.nic_bytes_per_second
        return StrategyRow(
            label=name,
            axes=scenario.axes,
            group=label(scenario, _is_of_workload) if scenario.axes else "",
            status=failed[0] if failed else statuses[0],
            summary=summary,
            baseline_per_second=Replications(baselines).throughput if baselines and is_steady else math.nan,
            failed=bool(failed),
            name=label(scenario, lambda axis: not _is_of_workload(axis)),
            steady=is_steady,
            until_s=sum(ends_s) / len(results) if is_over else math.nan,
            overload=None if is_over and not (failed or is_stopped) else replications.overload,
            singles=singles(runs, warmup_s=warmup_s),
            first=replications.summary(of_first_uploads=True) if summary.first_uploads else None,
            finish=finish(runs, ends_s, cost.committed_records) if is_finished else None,
            last_trigger_s=last_trigger_s(runs, ends_s, interval_ns / 1e9, options.min_pause_ns / 1e9)
            if runs_on and interval_ns
            else math.nan,
            late=late_triggers(
                runs,
                interval_ms=interval_ns / 1e6,
                min_pause_ms=options.min_pause_ns / 1e6,
                max_concurrent=options.max_concurrent,
            )
            if options.interval_during_backlog_ns is None
            else None,
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
            sinks=_without_readers(job),
            sources=tuple(vertex.name for vertex in job.vertices if vertex.source is not None),
            unlimited_bytes=scenario.unlimited_bytes,
            tolerable=options.tolerable_failed,
            harmed_sink=_harmed_sink(scenario),
            aligned=tuple(
                {down for _, down in forced_aligned_edges(job, options.forced_aligned, scenario.cluster.version)}
            ),
            card_bytes_per_second=math.inf if card is None else card * len(set(hosts(scenario))),
            held_window=_held_window(results[0]),
        )


def _in_cold_start(name: str, replications: Replications) -> str:
    """Return a sentence on the number of checkpoints in the cold start, and on the median duration of later ones."""
    end = replications.cold_start
    inside = max(int((run["checkpoints"]["trigger_timestamp"] * 1e6 < end.ns).sum()) for run in replications.tables)
    counted = {0: "no checkpoint is", 1: "the first checkpoint is"}.get(inside, f"the first {inside} checkpoints are")
    after_ms = replications.median_duration_ms(end)
    rest = "no other was completed" if math.isnan(after_ms) else f"the others take {ms_text(after_ms)} in the median"
    return f"Cold start: {counted} in that of {name} (the first {end}); {rest}."


def _aligned_inputs(scenario: Scenario) -> Iterator[str]:
    """Yield a sentence on each vertex at which barriers stay aligned although unaligned checkpoints are enabled.

    One input whose channels cannot store in-flight data keeps all inputs of its vertex aligned.
    """
    if not scenario.checkpoint.barriers.record.overtakes:
        return
    inlets = [inlet for vertex in scenario.job.vertices for inlet in vertex.inputs]
    if not any(inlet.shipping.overtaken for inlet in inlets):
        kinds = listed(sorted({inlet.shipping.name for inlet in inlets}))
        yield (
            f"No barrier overtakes data in this job: its edges are {kinds}, whose channels cannot store in-flight data."
        )
        return
    for vertex in scenario.job.vertices:
        aligned = [inlet for inlet in vertex.inputs if not inlet.shipping.overtaken]
        if len(aligned) == 1 == len(vertex.inputs) and not vertex.committer_of:
            yield (
                f"No barrier overtakes data in front of '{vertex.name}': channels of its input '{aligned[0].upstream}' "
                f"({aligned[0].shipping.name}) cannot store in-flight data."
            )
        elif 0 < len(aligned) < len(vertex.inputs):
            yield (
                f"No barrier overtakes data in front of '{vertex.name}': its input '{aligned[0].upstream}' ({aligned[0].shipping.name}) "
                "cannot store in-flight data, and Flink then keeps all inputs of the vertex aligned."
            )


def _long_transactions(scenario: Scenario) -> Iterator[str]:
    """Yield sentences on sinks whose transaction timeout exceeds the broker's default limit, or is shorter than the interval."""
    interval_ns = scenario.checkpoint.interval_ns or 0
    for name, (vertex, kind) in known_sinks(scenario.job).items():
        asked_ns = None if vertex.commit is None else vertex.commit.transaction_timeout_ns
        if asked_ns is None or kind.broker_allows_ns is None:
            continue
        asked = ms_text(asked_ns / 1e6)
        if asked_ns > kind.broker_allows_ns:
            allowed = ms_text(kind.broker_allows_ns / 1e6)
            yield (
                f"'{name}' asks for transactions of {asked} ({kind.timeout}): the job does not start unless the "
                f"broker allows it; commit.transaction-timeout: {allowed} shows what a shorter one loses"
            )
        if interval_ns > asked_ns:
            yield (
                f"'{name}' keeps each transaction open for {ms_text(interval_ns / 1e6)} (checkpoint.interval), longer than its "
                f"timeout, {asked}: the broker aborts it and fences its producer, so a real job fails at the next record and restarts, "
                "again and again; here it runs on, and the records of the transaction count as lost"
            )


def _backoffs_ms(retry: Retry, outage_ns: int) -> Iterator[float]:
    """Yield the waits between attempts that a client begins during a storage outage of this duration [ms]."""
    waits_ns = [min(retry.backoff_ns << number, retry.most_backoff_ns) for number in range(retry.attempts - 1)]
    for begin_ns, wait_ns in zip(accumulate(waits_ns, initial=0), waits_ns, strict=False):
        if begin_ns < outage_ns:
            yield wait_ns / 1e6


def _continues_drained(result: Result) -> bool:
    """Return True if a job of this run starts from the savepoint of a job that was stopped with --drain."""
    drained_ms = [action.at_ns / 1e6 for action in result.scenario.actions if action.stop == "drain"]
    begun_ms = result.tables["restores"]["begun"] if result.scenario.instances.start_from == "savepoint" else ()
    return any(at_ms < begin_ms for at_ms in drained_ms for begin_ms in begun_ms)


def _harmed_sink(scenario: Scenario) -> str:
    """Return a clause on the first sink that unaligned checkpoints harm, or "" if there is none or they are disabled."""
    if not scenario.checkpoint.barriers.record.overtakes:
        return ""
    sinks = known_sinks(scenario.job).items()
    return next((f"'{name}' ({kind.title}) {kind.verdict}" for name, (_, kind) in sinks if kind.verdict), "")


def _is_full(result: Result) -> bool:
    """Return whether a vertex is busy all the time before the first restart, so that its capacity decides what follows."""
    before = result.series[result.series["time"] * 1e3 < result.recoveries["failed"].min()]
    return bool(before.groupby("vertex")["busy"].mean().max() >= _FULL_SHARE)


_MIN_BACKOFF_MS = 5_000
"""Minimum wait of a storage client between two attempts that is reported."""
_MIN_STOP_MS = 1_000
"""Minimum duration of a stop-with-savepoint that is reported."""


def _ids_text(ids: Sequence[int]) -> str:
    """Return ``checkpoint 3``, or ``checkpoints 3 to 7``."""
    return f"checkpoint {ids[0]}" if len(ids) == 1 else f"checkpoints {ids[0]} to {ids[-1]}"


def _held_window(result: Result) -> str:
    """Return a clause on an event-time window that never fires because a silent subtask holds back its watermark, or ""."""
    job, counts = result.scenario.job, result.tasks.groupby("vertex")[["numRecordsIn", "numRecordsOut"]]
    emitted, least_read = counts.sum()["numRecordsOut"], counts.min()["numRecordsIn"]
    emitting = {inlet.upstream for reader in job.vertices for inlet in reader.inputs if job.fan_out(inlet)}
    silent_source_of: dict[str, str] = {}  # vertex -> silent source that holds back its watermark, or ""
    for vertex in job.vertices:
        is_silent = vertex.source and not least_read[vertex.name] and not vertex.source.watermark.idle_timeout_ns
        above = max((silent_source_of.get(inlet.upstream, "") for inlet in vertex.inputs), default="")
        source = silent_source_of[vertex.name] = vertex.name if is_silent else above
        if (
            source
            and vertex.window
            and vertex.window.time == "event"
            and vertex.name in emitting
            and not emitted[vertex.name]
        ):
            return (
                f"no window of '{vertex.name}' ends: a subtask of '{source}' without records holds the watermark; "
                f"give '{source}' watermark: {{idle-timeout: 10 s}} (withIdleness in Flink)"
            )
    return ""


_MIN_LATE_S = 3
"""Minimum delay of results [s] for which a silent source is reported; rates are known by the second."""


def _late_results(result: Result) -> Iterator[str]:
    """Yield a sentence on the first event-time window that emits nothing for a while, as a source is silent meanwhile.

    Session windows are left out: they end when there are no records.
    """
    job, rates = result.scenario.job, ("numRecordsInPerSecond", "numBytesOutPerSecond")
    read, emitted = (
        result.series.pivot_table(index="time", columns="vertex", values=rate, aggfunc="sum") for rate in rates
    )
    sources: dict[str, set[str]] = {}  # vertex -> sources upstream of it
    for vertex in job.vertices:
        name, window = vertex.name, vertex.window
        sources[name] = {name} if vertex.source else set().union(*(sources[own.upstream] for own in vertex.inputs))
        if window is None or window.time != "event" or window.hold_ns or name not in emitted:
            continue
        times_s = [*emitted.index[emitted[name] > 0], emitted.index[-1]]
        begin_s, end_s = max(pairwise(times_s), key=lambda pair: pair[1] - pair[0], default=(0.0, 0.0))
        step_s, phase_s = window.step_ns / 1e9, window.phase_ns / 1e9
        due_s = begin_s + step_s - (begin_s - phase_s) % step_s  # the next window end
        end_s -= 1  # it emits again in the second that ends with the sample
        meanwhile = read[(read.index > due_s) & (read.index < end_s)]
        silent = [own for own in sorted(sources[name]) if not meanwhile[own].any()]
        if end_s - due_s < _MIN_LATE_S or not silent or not meanwhile[name].any():
            continue
        advice, late_ms, source = "", 1e3 * (end_s - due_s), job.vertex(silent[0])
        if source.source and not source.source.watermark.idle_timeout_ns and late_ms > 10_000:
            advice = f"; watermark: {{idle-timeout: 10 s}} of '{source.name}' (withIdleness in Flink) ends that sooner"
        yield (
            f"'{name}' emits nothing from {ms_text(1e3 * begin_s)} to {ms_text(1e3 * end_s)}, as '{source.name}' is silent and holds back its "
            f"watermark: results come up to {ms_text(late_ms)} after the end of their window, all at once{advice}"
        )
        return


def _sentences(result: Result, cost: Consequences, warmup_s: float) -> Iterator[str]:
    """Yield sentences on the first run of a strategy: visibility of output, files, replay, failures, limits and growth."""
    done = result.checkpoints[result.checkpoints["status"] == "COMPLETED"]
    hours = result.ended_ns / 3.6e12
    if cost.commits:
        yield "Visible p50 is how long the oldest record of a transaction waits, by records; later ones wait less"
        waits_ms = {
            str(vertex): float(rows["visible_latency"].median())
            for vertex, rows in result.commits[result.commits["visible_latency"] >= 0].groupby("vertex")
        }
        if waits_ms and not is_noise(max(waits_ms.values()), min(waits_ms.values())):
            listed_waits = listed([f"{ms_text(ms)} of '{vertex}'" for vertex, ms in sorted(waits_ms.items())])
            yield f"Sinks differ: output waits {listed_waits} (median of transactions)"
        yield from chained_commits_sentences(result.scenario, waits_ms)
        if "checkpoint.interval" in dict(result.scenario.axes):
            written_bytes = float(done["checkpointed_size"].sum())
            usage = f"with {len(done)} checkpoint{'s' * (len(done) != 1)} and {bytes_text(written_bytes)} of state written in this run"
            if len(done) > _MIN_CHECKPOINTS_FOR_RATE:
                begin_ms, end_ms = whole_periods_ms(done["trigger_timestamp"], -math.inf, result.ended_ns / 1e6)
                counted, span = done[done["trigger_timestamp"] > begin_ms], (end_ms - max(begin_ms, 0.0)) / 3.6e6
                written_bytes = float(counted["checkpointed_size"].sum())
                usage = f"at {count_text(len(counted) / span)} checkpoints and {bytes_text(written_bytes / span)} of state written per hour"
            yield f"The oldest record of a transaction waits {cost.ms_text('visible_p50_ms')} until it is visible, {usage}"
        yield from _replayed_sentences(result)
    commits, files = commits_per_hour([result.tables], [hours * 3600], warmup_s=warmup_s)
    if files > 0:
        is_compacted = any(kind.name == "file-sink-compaction" for _, kind in known_sinks(result.scenario.job).values())
        before = ", as writers flush them; those of the compactor are not counted" * is_compacted
        yield f"Commits per hour: {count_text(commits)} with {count_text(files)} data files{before}"
    yield from _file_sentences(result, hours)
    for name, (_, kind) in known_sinks(result.scenario.job).items() if len(result.recoveries) else ():
        if kind.committer == "none":
            is_only = _without_readers(result.scenario.job) == (name,)
            count = f": {count_text(result.recoveries['served_again'].sum())} records" if is_only else ""
            yield f"'{name}' writes at once: what is replayed after a restart is written again{count}"
    yield from _failure_sentences(result)
    if result.recoveries.empty and any(
        vertex.source and len(vertex.source.rates) > 1 for vertex in result.scenario.job.vertices
    ):
        yield from _peak_sentences(result.series, [own.name for own in result.scenario.job.vertices if own.source])
        yield from _late_results(result)
    yield from overlap_sentences(result)
    yield from _slow_file_sentences(result, done)
    yield from refusal_sentences(result.scenario, result.tables["requests"])
    yield from _limit_sentences(result, done)
    yield from _size_sentences(result, done[is_periodic(done)])


def _file_sentences(result: Result, hours: float) -> Iterator[str]:
    """Yield a sentence on the files of checkpoints: physical ones with file merging, or if they are many."""
    rows = result.files[result.files["scope"] != "savepoint"]
    if rows.empty:
        return
    each = rows.groupby(["owner", "checkpoint"]).size().median()
    if result.scenario.storage.merging is not None:
        # files that are too large to be merged are physical ones, too
        physical = rows.assign(physical=rows["physical"].where(rows["physical"] >= 0, -2 - rows.index.to_numpy()))
        of_each = physical.groupby(["owner", "checkpoint"])["physical"].nunique().median()
        yield (
            f"A checkpoint writes {count_text(each)} files in the median into {count_text(of_each)} physical ones, beside its metadata; "
            f"{count_text(physical['physical'].nunique() / hours)} of these are created per hour; the space that they waste is not counted"
        )
    elif each >= _MIN_FILES or "storage.file-merging" in dict(result.scenario.axes):
        an_hour = count_text(len(rows) / hours)
        yield f"A checkpoint writes {count_text(each)} files in the median, beside its metadata; {an_hour} are written per hour"


def _with_names(sentences_of: Mapping[str, Iterable[str]]) -> list[str]:
    """Return each distinct sentence once, preceded by the names of its strategies unless it applies to all of them."""
    names_of = defaultdict[str, list[str]](list)
    for name, sentences in sentences_of.items():
        for sentence in sentences:
            names_of[sentence].append(name)
    return [
        f"{few_names(names)}: {sentence}." if len(names) < len(sentences_of) else f"{sentence}."
        for sentence, names in names_of.items()
    ]


def _interruptions(result: Result) -> Iterator[str]:
    """Yield sentences on interruptions of the job.

    These are: the longest time without a trigger during a backlog, stops with a savepoint, restarts before any checkpoint had
    completed, rescales, and overload after a restart.
    """
    scenario, rows, restarts = result.scenario, result.checkpoints, result.recoveries
    options, triggers_ms = scenario.checkpoint, rows["trigger_timestamp"].tolist()
    refused = int((rows["failure_message"] == "CHECKPOINT_DECLINED_TASK_CLOSING").sum())
    union = [f"'{vertex.name}'" for vertex in scenario.job.vertices if vertex.union_state]
    if refused and union and options.finish == "flink":
        yield (
            f"{refused} checkpoint{'s are' if refused > 1 else ' is'} refused while only some subtasks of {listed(union)} have finished, "
            "which Flink does not allow with union list state (PartialFinishingNotSupportedByStateException)"
        )
    begun_ms, ended_ms = max(pairwise([0.0, *triggers_ms]), key=lambda pair: pair[1] - pair[0], default=(0.0, 0.0))
    if options.interval_during_backlog_ns == 0 and ended_ms - begun_ms > 2 * (options.interval_ns or 0) / 1e6:
        yield (
            f"No checkpoint is triggered between {ms_text(begun_ms)} and {ms_text(ended_ms)}: sources report a backlog, and "
            "checkpoint.interval-during-backlog is off"
        )
    running_ms = restarts["running"][restarts["running"] >= 0]
    spans = []
    for stop in rows[rows["checkpoint_type"] == "SYNC_SAVEPOINT"].to_dict("records"):
        runs_ms = running_ms[running_ms > stop["trigger_timestamp"]].min()  # NaN if tasks do not run again
        if stop["status"] == "FAILED":
            yield f"Savepoint {stop['id']}, which the job was to stop with, fails ({stop['failure_message']}): the job does not stop then"
        elif stop["status"] == "COMPLETED" and runs_ms > 0:
            spans.append((runs_ms - stop["trigger_timestamp"], stop["end_to_end_duration"]))
    if spans and (longest := max(spans))[1] >= _MIN_STOP_MS:
        yield (
            f"All tasks run again {ms_text(longest[0])} after the trigger of the savepoint that the job stops with, which takes "
            f"{ms_text(longest[1])}"
        )
    count = int(((restarts["restored_checkpoint"] == 0) & ~restarts["kind"].isin(PLANNED_RESTARTS)).sum())
    if count and any(vertex.state is not None for vertex in scenario.job.vertices):
        yield (
            f"{count} restart{'s' * (count > 1)} before a checkpoint had completed: a real job begins with empty state then; "
            "here state keeps the size that the scenario gives it, and nothing is read"
        )
    rescales = "x_job" in result.tasks and (scenario.rescale or scenario.restart.scheduler == "adaptive")
    if rescales and len(jobs := result.tasks.groupby("x_job")) > 1:
        tasks_of_jobs = [tasks for _, tasks in jobs]
        busiest = [bottleneck(tasks) for tasks in tasks_of_jobs]
        shares = [f"{vertex}[{index}] {share_text(share)}" for vertex, index, share in busiest]
        vertex, index, _ = busiest[-1]
        parallelism = int((tasks_of_jobs[-1]["vertex"] == vertex).sum())
        why = uneven_subtask(replace(scenario.job.vertex(vertex), parallelism=parallelism), index)
        yield f"The busiest subtask is {', after the rescale '.join(shares)}{why and ': it '}{why}"
    ran_s = restarts["running"].max() / 1e3
    planned_s = restarts.loc[restarts["kind"].isin(PLANNED_RESTARTS), "running"].max() / 1e3
    late_s = (ran_s + result.ended_ns / 1e9) / 2  # half-way to the end, when replayed records have been emitted
    if ran_s >= 0 and (rates := overload_since(result.tables, scenario.job.edges, late_s)):
        yield (
            f"After the {'planned' if planned_s == ran_s else 'last'} restart sources emit {per_second_text(rates.emitted_per_second)} of "
            f"{per_second_text(rates.due_per_second)} that are due, and their backlog grows"
        )


def _replayed_sentences(result: Result) -> Iterator[str]:
    """Yield a sentence on records replayed after a failure, if they wait longer for visibility than any transaction does."""
    sources = [vertex.name for vertex in result.scenario.job.vertices if vertex.source]
    others_ms = result.commits.loc[~result.commits["again"].astype(bool), "visible_latency"].max()
    longest_ms, number = max(replay_waits_ms(result.tables, sources), default=(0.0, 0))
    if others_ms < longest_ms and not is_noise(longest_ms, others_ms):
        yield (
            f"What is replayed after a failure becomes visible up to {ms_text(longest_ms)} after checkpoint {number}, from which it is "
            f"replayed: visible max counts from there, and the longest transaction is visible after {ms_text(others_ms)}"
        )


_GROWN_DELAY = 3
"""Ratio of two restart delays of a run from which a sentence names their growth."""


def _failure_sentences(result: Result) -> Iterator[str]:
    """Yield sentences on the replacement of a killed TaskManager, the checkpoint that restarts restore, and restart attempts used."""
    scenario, rows, restart = result.scenario, result.recoveries, result.scenario.restart
    was_lost = (rows["kind"] == "task-manager").any() or "task manager" in result.job_status
    if was_lost and (outage := outage_sentence(scenario)):
        grows = (
            "slots" in outage
            and restart.strategy == "exponential-delay"
            and (~rows["kind"].isin(PLANNED_RESTARTS)).sum() > 1
        )
        yield outage + "; after other failures it can take longer, as the restart delay grows" * bool(grows)
    yield from _leaderless_sentences(result)
    restored, count = {*rows["restored_checkpoint"]} - {-1}, int((rows["restored_checkpoint"] >= 0).sum())
    is_far_apart = rows["failed"].diff().min() >= (scenario.checkpoint.interval_ns or math.inf) / 1e6
    if len(restored) == 1 and count > 1 and is_far_apart:
        yield (
            f"{'All' if count == len(rows) else 'The first'} {count} restarts go back to "
            f"{f'checkpoint {max(restored)}' if max(restored) else 'the beginning'}: no checkpoint completes in between"
        )
    if result.job_status.startswith("FAILED"):
        done = result.checkpoints[result.checkpoints["status"] == "COMPLETED"]
        begin = "there is no checkpoint to begin again from"
        if len(done):
            last = done.sort_values("id").iloc[-1]
            begin = (
                f"checkpoint {int(last['id'])} is the last to begin again from, if it is retained "
                "(execution.checkpointing.externalized-checkpoint-retention; by default it is deleted), and nothing replays "
                f"what sources emitted after {ms_text(last['trigger_timestamp'])} before"
            )
        yield f"The job has failed for good: {begin}"
    yield from sentences_on_slots(result)
    yield from sentences_on_windows(result)
    # not of restarts whose deployment failed: they span several delays
    delays_ms = (rows["delayed"] - rows["detected"])[(rows["delayed"] >= 0) & (rows["deployments"] <= 1)]
    if restart.strategy == "exponential-delay" and delays_ms.max() >= _GROWN_DELAY * delays_ms.min() > 0:
        yield (
            f"The restart delay grows from {ms_text(delays_ms.min())} to {ms_text(delays_ms.max())}: exponential-delay begins anew "
            f"only after {ms_text(restart.reset_ns / 1e6)} without a failure (restart.reset)"
        )
    used = int((rows["deployments"].clip(lower=1) * ~rows["kind"].isin(PLANNED_RESTARTS)).sum())
    if restart.strategy == "fixed-delay" and restart.attempts and used:
        who = "The job" if scenario.run.replications == 1 else "The first run"
        later = "" if result.job_status.startswith("FAILED") else ", whenever it comes"
        yield f"{who} uses {used} of {restart.attempts} attempts (restart.attempts), and fails at failure {restart.attempts + 1}{later}"
    failures = rows.loc[~rows["kind"].isin(PLANNED_RESTARTS), ["detected", "deployments"]]
    if restart.strategy == "failure-rate" and len(failures):
        times = zip(failures["detected"], failures["deployments"], strict=True)
        yield _failure_rate_sentence(result, [ms for ms, deployments in times for _ in range(max(1, deployments))])
    yield from _restore_sentences(result)


def _leaderless_sentences(result: Result) -> Iterator[str]:
    """Yield a sentence on the longest time for which tasks ran on without a JobManager, and on what is replayed of it."""
    rows = result.recoveries[result.recoveries["kind"] == "job-manager"]
    rows = rows[rows["restored_checkpoint"] >= 0]  # the others are not restored by the end of the run
    if rows.empty:
        return  # saves a pass over a long journal
    times_ms = defaultdict[Happening, list[float]](list)
    kinds = {Happening.JOB_MANAGER_LOST, Happening.TASK_MANAGER_LOST, Happening.JOB_MANAGER_ELECTED}
    for row in result.journal.only(kinds):
        times_ms[row.happening].append(row.time_ns / 1e6)
    ran_ms, failed_ms, count, number = max(
        (
            failed_ms - max((ms for ms in times_ms[Happening.JOB_MANAGER_LOST] if ms <= failed_ms), default=failed_ms),
            failed_ms,
            replayed,
            restored,
        )
        for failed_ms, replayed, restored in zip(
            rows["failed"], rows["replayed_records"], rows["restored_checkpoint"], strict=True
        )
    )
    if ran_ms == 0:
        return  # a lost TaskManager has stopped them before
    end = "they miss its heartbeats (restart.heartbeat-timeout)"
    if failed_ms in times_ms[Happening.JOB_MANAGER_ELECTED]:
        end = "another one leads"
    elif failed_ms in times_ms[Happening.TASK_MANAGER_LOST]:
        end = "a task manager is lost"
    begin = f"checkpoint {number}" if number else "the beginning"
    yield (
        f"Tasks run on for {ms_text(ran_ms)} without a JobManager, until {end}: what they emit is replayed, {count_text(count)} "
        f"records since {begin}"
    )


def _failure_rate_sentence(result: Result, failed_ms: Sequence[float]) -> str:
    """Return a sentence on the most failures within the interval of the restart strategy `failure-rate`, and on its limit."""
    restart, within_ms = result.scenario.restart, result.scenario.restart.rate_interval_ns / 1e6
    limit = f"failures come within {ms_text(within_ms)}, of {restart.rate} that restart.rate tolerates"
    last = sum(ms >= result.ended_ns / 1e6 - within_ms for ms in failed_ms)
    if result.job_status.startswith("FAILED") and last >= restart.rate:
        return f"{last + 1} {limit}: the job fails"
    most = max(sum(begin_ms <= ms <= begin_ms + within_ms for ms in failed_ms) for begin_ms in failed_ms)
    return f"At most {most} {limit}"


def _restore_sentences(result: Result) -> Iterator[str]:
    """Yield sentences on restores from local disks, and on in-flight data that is recovered while tasks run."""
    scenario, rows = result.scenario, result.recoveries
    options, tasks = scenario.checkpoint, sum(vertex.parallelism for vertex in scenario.job.vertices)
    # not of a single region, which may have no state
    restored = (rows["running"] >= 0) & (rows["restored_checkpoint"] > 0) & (rows["tasks"] == tasks)
    read = rows.loc[restored, "restored_bytes"]
    if options.state.local_recovery and any(vertex.state for vertex in scenario.job.vertices) and (read == 0).any():
        yield (
            f"{(read == 0).sum()} of {len(read)} restarts read no state from storage, as tasks have copies on their disks (local-recovery)"
            f"{f', others up to {bytes_text(read.max())}' * bool(read.max())}"
        )
    logs = any(vertex.state and vertex.state.changelog for vertex in scenario.job.vertices)
    if logs and options.state.load_bytes_per_second is None and (rows["restored_bytes"] > 0).any():
        yield (
            f"Restores apply the log of a changelog one change after the other: assumed are {format_duration(LOAD_ENTRY_NS)} for each and "
            f"{bytes_text(LOAD_BYTES_PER_SECOND)}/s (checkpoint.restore-rate)"
        )
    recovered_bytes = rows["recovered_bytes"].max()
    if options.during_recovery and recovered_bytes > 0:
        yield (
            f"Restarted tasks run before they have processed the in-flight data that they read back, up to {bytes_text(recovered_bytes)} "
            "(during-recovery): downtime ends before"
        )


def _peak_sentences(series: pd.DataFrame, emitting: Collection[str]) -> Iterator[str]:
    """Yield a sentence on the backlog that takes longest to be worked off, if the lag reaches a second.  `emitting`: sources."""
    waiting = backlog(series)
    is_high = waiting > MAX_REMAINING_SHARE * waiting.max()
    peaks = []
    for _, peak in waiting[is_high].groupby((~is_high).cumsum()[is_high]):
        top_s = float(peak.index[int(peak.to_numpy().argmax())])
        rest_s = waiting.index[(waiting.index > top_s) & (waiting <= MAX_REMAINING_SHARE * peak.max())]
        peaks.append(((rest_s[0] if len(rest_s) else waiting.index[-1]) - top_s, top_s, peak.max(), len(rest_s) > 0))
    if peaks and series["lag"].max() >= 1:
        lasts_s, top_s, records, is_over = max(peaks)
        after = f"than a tenth of it is left {ms_text(1e3 * lasts_s)} later"
        of_sources = series[series["time"] == top_s].groupby("vertex")["backlog"].sum()
        is_one = len(emitting) > 1 and of_sources.max() >= _FULL_SHARE * records
        whose = (
            f"'{of_sources.idxmax()}', nearly all of that of the {len(emitting)} sources," if is_one else "the sources"
        )
        yield (
            f"The backlog of {whose} grows to {count_text(records)} records at {ms_text(1e3 * top_s)}, and "
            f"{f'less {after}' if is_over else f'more {after}, when the run ends'}"
        )


def _slow_file_sentences(result: Result, done: pd.DataFrame) -> Iterator[str]:
    """Yield a sentence on the checkpoints that wait for a file that is slow by chance.  `done`: completed checkpoints."""
    storage, path = result.scenario.storage, result.path
    if not storage.slow_probability or storage.merging is not None:  # in a merged file, its physical file decides
        return
    waits = path[path["id"].isin(done["id"]) & (path["file"] != "")]
    names = [tuple(int(part) if part.isdigit() else part for part in file.split("/")) for file in waits["file"]]
    slow = waits[[slowness(storage, result.scenario.run.seed, name) > 1 for name in names]]
    if len(slow):
        yield (
            f"{slow['id'].nunique()} of {len(done)} completed checkpoints wait for a slow file, up to {ms_text(slow['duration'].max() / 1e6)} "
            f"(storage.slow: {share_text(storage.slow_probability)} of the files take {storage.slow_factor} times as long)"
        )


def _limit_sentences(result: Result, done: pd.DataFrame) -> Iterator[str]:
    """Yield sentences on reached limits: asynchronous requests, size of an acknowledgement, and checkpoint timeout.

    `done`: completed checkpoints.
    """
    scenario, timeout_ms = result.scenario, result.scenario.checkpoint.timeout_ns / 1e6
    read = result.tasks.groupby("vertex")["numRecordsIn"].sum() * 1e9 / result.ended_ns
    for vertex in scenario.job.vertices:
        if (requests := vertex.async_io) is None:
            continue
        most = vertex.parallelism * requests.answers_per_second
        if read[vertex.name] >= _FULL_SHARE * most:
            yield (
                f"'{vertex.name}' has {requests.capacity} requests of {ms_text(requests.latency.mean / 1e6)} under way per subtask, and more are "
                f"not allowed: {per_second_text(most)} in all, whatever its threads could do (async-io.capacity)"
            )
    in_memory = {
        vertex.name
        for vertex in scenario.job.vertices
        if vertex.state and vertex.state.changelog and vertex.state.changelog.in_memory
    }
    keys, frame_bytes = dict(scenario.written_keys), _FRAME_BYTES
    with suppress(UnitError):  # the key has no effect in the simulation, so its value has not been validated
        frame_bytes = parse_flink_size(keys.get("pekko.framesize", keys.get("akka.framesize", _FRAME_BYTES)))
    rows = result.subtasks[result.subtasks["vertex"].isin(in_memory) & result.subtasks["id"].isin(done["id"])]
    largest = rows.groupby("id")["checkpointed_size"].max()
    if count := int((largest > frame_bytes).sum()):
        yield (
            f"{count} of {len(done)} completed checkpoints have an acknowledgement of more than pekko.framesize ({bytes_text(frame_bytes)}), up to "
            f"{bytes_text(largest.max())}, as the changelog is in memory: Flink drops it, and the checkpoint expires, which is not simulated"
        )
    longest_ms = done["end_to_end_duration"].max()
    min_ms = 0 if re.search("expire|time.?out", scenario.question.lower()) else _MIN_TIMEOUT_SHARE * timeout_ms
    if longest_ms > min_ms and EXPIRED not in {*result.checkpoints["failure_message"]}:
        yield f"The longest checkpoint or savepoint takes {ms_text(longest_ms)} of {ms_text(timeout_ms)} (checkpoint.timeout)"


def _size_sentences(result: Result, rows: pd.DataFrame) -> Iterator[str]:
    """Yield a sentence on the full size of checkpoints if it doubles during the run.  `rows`: completed checkpoints."""
    sizes = (rows["state_size"] - rows["persisted_data"]).tolist()
    half = len(sizes) // 2
    if half >= _MIN_SIZES and sizes[-1] - sizes[0] >= max(sizes[0], _MIN_GROWN_BYTES):
        second_half = sizes[half:]
        is_growing = sizes[-1] > _GROWTH_FACTOR * max(sizes[half : -half // 2]) or all(
            a < b for a, b in pairwise(second_half)
        )
        still = (
            f"still grows, by {bytes_text((second_half[-1] - second_half[0]) / (len(second_half) - 1))} per checkpoint"
            if is_growing
            else "hardly grows"
        )
        still += " in the second half of the run"
        vertices = result.scenario.job.vertices
        if any(vertex.state and vertex.state.changelog for vertex in vertices):
            still += "; each materialization makes it smaller again"
        if len(result.recoveries) and any(vertex.union_state and not vertex.union_state.clears for vertex in vertices):
            still = "grows with each restart (union-state)"
        yield (
            f"The full size goes from {bytes_text(sizes[0])} (checkpoint {rows['id'].iloc[0]}) to {bytes_text(sizes[-1])} "
            f"(checkpoint {rows['id'].iloc[-1]}), and {still}"
        )


_FRAME_BYTES = 10 * 1024**2
"""Default of pekko.framesize."""
_MIN_FILES = 40
"""Minimum files per checkpoint (median) that are reported."""
_FULL_SHARE = 0.95
"""Share of the time, or of the possible requests, from which a vertex counts as full."""
_MIN_CHECKPOINTS_FOR_RATE = 3
"""With more completed checkpoints than this, their number is given per hour instead of per run."""
_MIN_TIMEOUT_SHARE = 0.05
"""Share of the checkpoint timeout above which the longest checkpoint is reported."""
_MIN_SIZES, _MIN_GROWN_BYTES, _GROWTH_FACTOR = 4, 8_000_000, 1.05
"""Minimum checkpoints per half of the run, and minimum growth [bytes], for which growth of the full size is reported; factor
by which the last size exceeds the third quarter of the run if the size still grows."""


def _others(count: int) -> str:
    return f" (and {count} more)" if count else ""


def _is_of_workload(axis: str) -> bool:
    """Return True if an axis belongs to the workload or the environment, and not to the strategy."""
    return axis.startswith(("job.", "storage.", "cluster.", "faults", "run.", "overheads."))


def label(scenario: Scenario, is_chosen: Callable[[str], bool] = lambda _: True) -> str:
    """Return the label of a strategy: name and value of each axis for which `is_chosen` is True; barrier modes have no name.

    Without axes, the label is the barrier mode, or ``no checkpoints``.
    """
    if not scenario.axes:
        return "no checkpoints" if scenario.checkpoint.interval_ns is None else str(scenario.checkpoint.barriers)
    axes = [(axis, value) for axis, value in scenario.axes if is_chosen(axis)]
    names = _short_names([axis for axis, _ in scenario.axes])
    return ", ".join(
        value if axis.endswith("barriers") or not axis else f"{names[axis]} {value}" for axis, value in axes
    )


def _short_names(axes: Sequence[str]) -> dict[str, str]:
    """Return the last part of the key of each axis, with the first part that differs from another axis of the same name."""
    names = {}
    for axis in axes:
        *parts, name = axis.split(".")
        others = [other.split(".")[:-1] for other in axes if other != axis and other.rpartition(".")[2] == name]
        differing = (part for part, *same in zip(parts, *others) if set(same) != {part})  # noqa: B905 - of any length
        names[axis] = f"{next(differing, '')} {name}".strip() if others else name
    return names


def _job_end(results: Sequence[Result]) -> str:
    """Return how the jobs of one strategy ended, e.g. ``failed at 33 s (2 of 3)``, or "" if none ended within its run."""
    ended = [result for result in results if result.job_status != "RUNNING"]
    if not ended:
        return ""
    first = ended[0]
    if first.job_status.startswith("RESTARTING"):
        return "restarts forever"
    often = f" ({len(ended)} of {len(results)})" if len(ended) < len(results) else ""
    return f"{first.job_status.partition(':')[0].lower()} at {ms_text(first.ended_ns / 1e6)}{often}"


def _without_readers(job: Job) -> tuple[str, ...]:
    """Return the vertices whose records no vertex reads; committers do not count as readers."""
    read = {up for up, down in job.edges if down not in job.committers}
    return tuple(
        vertex.name for vertex in job.vertices if vertex.name not in read and vertex.name not in job.committers
    )
