"""Values that a scenario leaves out, and that decide its answer: found by a run with a likely value instead.  And longer timeouts.

What is left out costs nothing in a simulation: no network card, no limit of a stream, no latency of a file; or it has
Flink's default, one slot in each task manager.  Each is tried only where arithmetic says that it may matter to one
checkpoint, the first upload or the median of the slowest strategy.  What moves it by no more than noise is not said.
The warm-up needs no run: the results are summarised again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np

from sim.model.scenario import AUTO_WARM_UP, Scenario
from sim.model.units import MS, SECOND
from sim.results.estimates import is_noise
from sim.results.formats import bytes_text, ms_text
from sim.results.side_by_side import Single
from sim.results.tables import EXPIRED
from sim.runtime.lowering import hosts
from sim.runtime.manifest import identity
from sim.runtime.result import Result
from sim.studies.cells import simulated
from sim.studies.comparison import TIMEOUT, WARM_UP, DecidingAssumption
from sim.studies.local import run_each
from sim.studies.plan import Cell
from sim.studies.progress import Watch, no_watch
from sim.studies.replications import Replications

if TYPE_CHECKING:
    import pandas as pd

    from sim.plane import Engine
    from sim.studies.comparison import Comparison

CARD = 1_250_000_000
"""Bytes per second of a network card of 10 Gbit/s."""
STREAM = 80_000_000
"""Bytes per second of one request to an object store (`sim.model.storage.ObjectStore`)."""
LATENCY_NS = 40_000_000
"""Median latency of a request to an object store (likewise)."""
WORTH_IT = 0.1
"""A value is tried if it adds so large a share to a checkpoint by arithmetic."""
SLOTS = 4
"""Slots of a task manager.  Channels between tasks of one task manager have no receiving buffers: about half the data in flight."""
IN_FLIGHT_BYTES, IN_FLIGHT_SHARE = 1_000_000, 0.3
"""Less in-flight data of a checkpoint is not spoken of, nor is a change by a smaller share."""
MAX_DECIDING_RUNS = 2
"""Runs, at most: those that add most."""
LONGER = 6
"""So many times their timeout is tried for checkpoints that expire."""


_Change = Callable[[Scenario], Scenario]


@dataclass(frozen=True, slots=True)
class LeftOutValue:
    """A value that a scenario does not say, and a likely one instead."""

    key: str  # of the scenario
    assumed: str  # in words
    value: str  # what is tried, in words
    least_ms: float  # what a checkpoint takes with it, by arithmetic
    change: _Change
    bytes_per_second: float | None = None  # as in `DecidingAssumption`
    count: int | None = None
    moves_in_flight: bool = False  # it matters to the data in flight that a checkpoint stores


@dataclass(frozen=True, slots=True)
class ValueTrial:
    """A run with a value that the scenario leaves out."""

    left_out: LeftOutValue
    strategy: str
    single: Single  # the checkpoint that is spoken of
    scenario: Scenario

    @property
    def key(self) -> str:
        return self.left_out.key

    @property
    def least_ms(self) -> float:
        return self.left_out.least_ms


def deciding(
    comparison: Comparison, planned: Sequence[ValueTrial], *, engine: Engine = "compiled", watch: Watch = no_watch
) -> tuple[DecidingAssumption, ...]:
    """Each assumption that moves the checkpoint spoken of: those of `planned` (`trials`), and the warm-up."""
    found = []
    cells = [Cell(trial.scenario, identity(trial.scenario)) for trial in planned]
    for i, result in run_each(partial(simulated, engine, False), cells, jobs=1, watch=watch):
        if isinstance(result, Result) and (own := _decides(planned[i], result)) is not None:
            found.append((i, own))
    return (*(own for _, own in sorted(found, key=itemgetter(0))), *_warm_up(comparison))


def trials(comparison: Comparison) -> list[ValueTrial]:
    """The runs that are worth it: with longer timeouts, where the first checkpoints expire; of the others those that may add most."""
    expired = [
        (line.label, line.singles.failed)
        for line in comparison.strategies
        if line.singles.failed is not None
        and line.singles.failures[0][0] == EXPIRED
        and not line.singles.failed.replication
    ]
    return [
        *(_with_timeout(label, single, comparison.results[label][0]) for label, single in expired[:MAX_DECIDING_RUNS]),
        *_left_out_trials(comparison),
    ]


def _with_timeout(label: str, single: Single, result: Result) -> ValueTrial:
    """A run that ends when the checkpoint would expire with the longer timeout, or with the run itself."""
    scenario = result.scenario
    timeout_ns = LONGER * scenario.checkpoint.timeout_ns
    trigger_ns = float(result.checkpoints.loc[_row(single, result), "trigger_timestamp"].iloc[0]) * MS
    run = replace(
        scenario.run, duration_ns=min(scenario.run.duration_ns, int(trigger_ns) + timeout_ns + SECOND), warmup_ns=0
    )
    has_time = ms_text(scenario.checkpoint.timeout_ns / MS)
    own = LeftOutValue(
        TIMEOUT,
        f"checkpoints have {has_time} ({TIMEOUT})",
        f"{TIMEOUT} {ms_text(timeout_ns / MS)}",
        timeout_ns / MS,
        _same,
    )
    longer = replace(scenario, run=run, checkpoint=replace(scenario.checkpoint, timeout_ns=timeout_ns))
    return ValueTrial(own, label, single, longer)


def _same(scenario: Scenario) -> Scenario:
    return scenario


def _left_out_trials(comparison: Comparison) -> list[ValueTrial]:
    candidates = [
        (line.singles.first_upload or line.singles.median, line.label)
        for line in comparison.strategies
        if line.singles.median is not None or line.singles.first_upload is not None
    ]
    known = [(single, label) for single, label in candidates if single is not None and not single.replication]
    if not known:
        return []
    single, label = max(known, key=lambda item: item[0].duration_ms)
    found = _worth_trying(label, single, comparison.results[label][0])
    return sorted(found, key=lambda trial: -trial.least_ms)[:MAX_DECIDING_RUNS]


def _worth_trying(label: str, single: Single, result: Result) -> Iterator[ValueTrial]:
    for own in _left_out(single, result):
        if not own.moves_in_flight and (is_noise(own.least_ms, 0.0) or own.least_ms < WORTH_IT * single.duration_ms):
            continue
        scenario = result.scenario
        rows = result.checkpoints[_row(single, result)]
        end_ms = float(rows["trigger_timestamp"].iloc[0]) + 2 * (single.duration_ms + own.least_ms) + 1000
        run = replace(scenario.run, duration_ns=min(scenario.run.duration_ns, int(end_ms * MS)), warmup_ns=0)
        yield ValueTrial(own, label, single, own.change(replace(scenario, run=run)))


def _left_out(single: Single, result: Result) -> Iterator[LeftOutValue]:
    scenario, storage = result.scenario, result.scenario.storage
    by_manager, by_subtask = _written(single, result)
    is_flat = storage.dfs is None and storage.object_store is None and storage.other is None
    uploading_ms = single.path.upload_ms
    is_unlimited = is_flat and storage.bytes_per_second is None  # the bandwidth is the question then
    if storage.nic_bytes_per_second is None and by_manager and uploading_ms > 0 and not is_unlimited:
        managers = len(set(hosts(scenario)))
        key = "storage.nic" + (" beside dfs or object-store" if is_flat else "")
        assumed = f"no network card limits what task managers write ({key})"
        least_ms = 1e3 * by_manager / CARD
        change = partial(_with_card, is_flat, uploading_ms / least_ms)
        yield LeftOutValue(
            "storage.nic",
            assumed,
            "10 Gbit/s each",
            least_ms,
            change,
            1e3 * single.written_bytes / uploading_ms,
            managers,
        )
    if is_unlimited and by_subtask:
        assumed = "no bandwidth limits a stream of storage (storage.bandwidth)"
        yield LeftOutValue(
            "storage.bandwidth", assumed, f"{bytes_text(STREAM)}/s each", 1e3 * by_subtask / STREAM, _with_bandwidth
        )
    files = int((result.tables["path"].loc[_row(single, result, "path"), "file"] != "").sum())
    if is_flat and storage.close_ns == 0 and files:
        assumed = "files have no latency (storage.file-latency)"
        yield LeftOutValue(
            "storage.file-latency",
            assumed,
            ms_text(LATENCY_NS / MS),
            files * LATENCY_NS / MS,
            _with_latency,
            count=files,
        )

    cluster, parallelism = scenario.cluster, max(vertex.parallelism for vertex in scenario.job.vertices)
    if cluster.placement == "spread" and cluster.slots is None and parallelism > 1:
        waits_ms = float(np.nansum([single.path.queue_ms, single.path.timeout_ms, single.path.alignment_ms]))
        assumed = "each task manager has one slot (cluster.slots)"
        least_ms = waits_ms / 2 * (min(SLOTS, parallelism) - 1) / parallelism
        moves_in_flight = single.persisted_bytes > IN_FLIGHT_BYTES
        yield LeftOutValue(
            "cluster.slots", assumed, f"{SLOTS} slots each", least_ms, _with_slots, moves_in_flight=moves_in_flight
        )


def _written(single: Single, result: Result) -> tuple[float, float]:
    """The most bytes that a task manager, and a subtask, wrote for the checkpoint."""
    rows = result.tables["subtasks"][_row(single, result, "subtasks")]
    first, number = {}, 0
    for vertex in result.scenario.job.vertices:
        first[vertex.name] = number
        number += vertex.parallelism
    host = hosts(result.scenario)
    totals: dict[int, float] = {}
    for name, index, size in rows[["vertex", "index", "checkpointed_size"]].itertuples(index=False, name=None):
        if first[name] + index < len(host):  # a rescaled job has more
            manager = host[first[name] + index]
            totals[manager] = totals.get(manager, 0.0) + size
    return max(totals.values(), default=0.0), float(rows["checkpointed_size"].max()) if len(rows) else 0.0


def _row(single: Single, result: Result, table: str = "checkpoints") -> np.ndarray:
    rows = result.tables[table]
    found: np.ndarray = (rows["id"] == single.number).to_numpy()
    return found & (rows["x_job"] == single.job).to_numpy() if "x_job" in rows and single.job is not None else found


def _with_card(is_flat: bool, share: float, scenario: Scenario) -> Scenario:
    """Streams of flat storage share nothing: each gets the `share` of its bandwidth with which all of a task manager fit its card."""
    storage = scenario.storage
    if not is_flat:
        return replace(scenario, storage=replace(storage, nic_bytes_per_second=CARD))
    bandwidth = int((storage.bytes_per_second or CARD) * min(1.0, share))
    return replace(scenario, storage=replace(storage, bytes_per_second=max(1, bandwidth)))


def _with_bandwidth(scenario: Scenario) -> Scenario:
    return replace(scenario, storage=replace(scenario.storage, bytes_per_second=STREAM))


def _with_slots(scenario: Scenario) -> Scenario:
    return replace(scenario, cluster=replace(scenario.cluster, slots=SLOTS))


def _with_latency(scenario: Scenario) -> Scenario:
    return replace(scenario, storage=replace(scenario.storage, close_ns=LATENCY_NS))


def _decides(trial: ValueTrial, result: Result) -> DecidingAssumption | None:
    """The assumption, if it decides.  None: the value moves nothing, or the run with it does not show what it moves."""
    rows, own = result.checkpoints[_row(trial.single, result)], trial.left_out
    if own.key == TIMEOUT:
        return _of_timeout(trial, rows, result.ended_ns / MS)
    found = DecidingAssumption(
        own.key,
        own.assumed,
        own.value,
        f"{trial.single} ({trial.strategy})",
        trial.single.duration_ms,
        trial.least_ms,
        is_bound=True,
        bytes_per_second=own.bytes_per_second,
        count=own.count,
    )
    if rows.empty or rows["status"].iloc[0] != "COMPLETED":
        if trial.least_ms <= trial.single.duration_ms or is_noise(trial.least_ms, trial.single.duration_ms):
            return None
        return found
    took_ms, stored = (float(rows[column].iloc[0]) for column in ("end_to_end_duration", "persisted_data"))
    found = replace(found, after_ms=took_ms, is_bound=False)
    if not is_noise(*sorted((took_ms, trial.single.duration_ms), reverse=True)):
        return found
    less, more = sorted((stored, trial.single.persisted_bytes))
    moves = own.moves_in_flight and less < (1 - IN_FLIGHT_SHARE) * more
    return replace(found, in_flight_bytes=(trial.single.persisted_bytes, stored)) if moves else None


def _of_timeout(trial: ValueTrial, rows: pd.DataFrame, ended_ms: float) -> DecidingAssumption | None:
    """None: it failed for another reason, or the run ended before it had more time than before."""
    own, single = trial.left_out, trial.single
    if rows.empty:
        return None
    row = rows.iloc[0]
    is_complete, is_late = (
        row["status"] == "COMPLETED",
        row["status"] == "IN_PROGRESS" or row["failure_message"] == EXPIRED,
    )
    lasted_ms = ended_ms - row["trigger_timestamp"] if row["status"] == "IN_PROGRESS" else row["end_to_end_duration"]
    if not (is_complete or is_late) or is_noise(lasted_ms, single.duration_ms):
        return None
    moves = f"{single} ({trial.strategy})"
    return DecidingAssumption(
        own.key, own.assumed, own.value, moves, single.duration_ms, float(lasted_ms), is_bound=not is_complete
    )


def _warm_up(comparison: Comparison) -> Iterator[DecidingAssumption]:
    """The strategy whose median moves most without the beginning, where the scenario does not say what to leave out."""
    found = []
    for line in comparison.strategies:
        results = comparison.results[line.label]
        if any(result.scenario.run.warmup_ns for result in results) or not line.summary.completed:
            continue
        settling = [replace(result, scenario=_settling(result.scenario)) for result in results]
        own = Replications(settling)
        before_ms, after_ms = line.summary.end_to_end_p50_ms, own.median_duration_ms(own.warm_up)
        if not np.isnan(after_ms) and not is_noise(*sorted((before_ms, after_ms), reverse=True)):
            moves, beginning = f"the median of {line.label}", f"the first {own.warm_up}"
            found.append(
                DecidingAssumption(WARM_UP, "the beginning counts (run.warmup)", beginning, moves, before_ms, after_ms)
            )
    if found:
        yield max(found, key=lambda own: abs(own.after_ms - own.before_ms))


def _settling(scenario: Scenario) -> Scenario:
    return replace(scenario, run=replace(scenario.run, warmup_ns=AUTO_WARM_UP))
