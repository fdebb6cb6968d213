"""Sensitivity of an answer to values that the scenario omits, and to the checkpoint timeout.

An omitted value costs nothing in a simulation (network card, bandwidth of a stream, latency of a file), or has Flink's
default (one slot per TaskManager).  This module simulates the scenario again with a likely value, and reports the value if
the duration of a checkpoint changes by more than noise.  The checkpoint is the first upload or, without one, the median
checkpoint, of the strategy where it takes longest.  A value is tried only if an estimate shows that it may matter.

Checkpoints that expire are tried with a longer timeout.  The warm-up needs no further run: the results are summarized again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from sim.model.scenario import AUTO_WARM_UP, Scenario
from sim.model.units import MS
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
"""Bytes per second of one request to an object store; the default of `sim.model.storage.ObjectStore`."""
LATENCY_NS = 40_000_000
"""Median latency of one request to an object store; the default of `sim.model.storage.ObjectStore`."""
WORTH_IT = 0.1
"""Minimum estimated time that a value costs a checkpoint, as a share of the checkpoint's duration, for which it is tried."""
SLOTS = 4
"""Slots per TaskManager that are tried.

Channels between tasks of one TaskManager have no receiving buffers, so about half as much data is in flight.
"""
IN_FLIGHT_BYTES, IN_FLIGHT_SHARE = 1_000_000, 0.3
"""Minimum in-flight data of a checkpoint [bytes], and minimum relative change of it, for which a value is reported."""
MAX_DECIDING_RUNS = 2
"""Maximum runs with a longer timeout, and maximum runs with likely values (those with the largest estimated time)."""
LONGER = 6
"""Factor by which the timeout of expiring checkpoints is multiplied."""


@dataclass(frozen=True, slots=True)
class ValueTrial:
    """A planned run with one changed value: a likely value of an omitted option, or a longer timeout."""

    assumption: DecidingAssumption  # before the run, `after_ms` is an estimated lower bound, or the longer timeout
    single: Single  # the checkpoint whose duration is compared
    scenario: Scenario
    moves_in_flight: bool = False  # the value may change the in-flight data that the checkpoint stores


def deciding(
    comparison: Comparison, planned: Sequence[ValueTrial], *, engine: Engine = "compiled", watch: Watch = no_watch
) -> tuple[DecidingAssumption, ...]:
    """Run the planned trials (see `trials`), and return the assumptions that change a result by more than noise.

    An assumption on the warm-up comes last.  Trials whose run fails are ignored.
    """
    found: dict[int, DecidingAssumption] = {}
    cells = [Cell(trial.scenario, identity(trial.scenario)) for trial in planned]
    for i, result in run_each(partial(simulated, engine, False), cells, jobs=1, watch=watch):
        if isinstance(result, Result) and (own := _decides(planned[i], result)) is not None:
            found[i] = own
    return (*(found[i] for i in sorted(found)), *_warm_up(comparison))


def trials(comparison: Comparison) -> list[ValueTrial]:
    """Return the runs to try.

    Strategies whose checkpoints fail most often by expiring are tried with a longer timeout.  Of the omitted values, those with
    the largest estimated cost are tried.
    """
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
    """Return a trial with a longer timeout.  Its run ends soon after the checkpoint would expire, or as planned if that is earlier."""
    options = result.scenario.checkpoint
    timeout_ns = LONGER * options.timeout_ns
    longer = replace(result.scenario, checkpoint=replace(options, timeout_ns=timeout_ns))
    assumed, tried = (ms_text(limit_ns / MS) for limit_ns in (options.timeout_ns, timeout_ns))
    own = DecidingAssumption(
        TIMEOUT,
        f"checkpoints have {assumed} ({TIMEOUT})",
        f"{TIMEOUT} {tried}",
        f"{single} ({label})",
        single.duration_ms,
        timeout_ns / MS,
    )
    return ValueTrial(own, single, _shortened(longer, single, result, timeout_ns / MS))


def _shortened(scenario: Scenario, single: Single, result: Result, lasts_ms: float) -> Scenario:
    """Return the scenario, ending 1 s after the checkpoint has lasted `lasts_ms`, and without a warm-up.  It never ends later than before."""
    trigger_ms = float(result.checkpoints.loc[_row(single, result), "trigger_timestamp"].iloc[0])
    end_ns = int((trigger_ms + lasts_ms + 1000) * MS)
    run = replace(scenario.run, duration_ns=min(scenario.run.duration_ns, end_ns), warmup_ns=0)
    return replace(scenario, run=run)


def _left_out_trials(comparison: Comparison) -> list[ValueTrial]:
    """Return trials of omitted values for the slowest first upload or median checkpoint of all strategies."""
    candidates = [(line.singles.first_upload or line.singles.median, line.label) for line in comparison.strategies]
    known = [(single, label) for single, label in candidates if single is not None and not single.replication]
    if not known:
        return []
    single, label = max(known, key=lambda item: item[0].duration_ms)
    result, found = comparison.results[label][0], []
    for own, scenario, moves_in_flight in _left_out(single, result, label):
        least_ms = own.after_ms
        if moves_in_flight or not (is_noise(least_ms, 0.0) or least_ms < WORTH_IT * single.duration_ms):
            shortened = _shortened(scenario, single, result, 2 * (single.duration_ms + least_ms))
            found.append(ValueTrial(own, single, shortened, moves_in_flight))
    return sorted(found, key=lambda trial: -trial.assumption.after_ms)[:MAX_DECIDING_RUNS]


def _left_out(single: Single, result: Result, label: str) -> Iterator[tuple[DecidingAssumption, Scenario, bool]]:
    """Yield (assumption, scenario with a likely value instead, whether the value may change in-flight data).

    `after_ms` of an assumption is the estimated time that the likely value costs, e.g. that of writing all bytes through a
    network card.  It is a lower bound of the checkpoint's duration.
    """
    scenario, storage = result.scenario, result.scenario.storage
    by_manager, by_subtask = _written(single, result)

    def assuming(key: str, assumed: str, tried: str, least_ms: float, **numbers: Any) -> DecidingAssumption:
        moves = f"{single} ({label})"
        return DecidingAssumption(key, assumed, tried, moves, single.duration_ms, least_ms, is_bound=True, **numbers)

    def with_storage(**changes: Any) -> Scenario:
        return replace(scenario, storage=replace(storage, **changes))

    is_flat = storage.dfs is None and storage.object_store is None and storage.other is None
    uploading_ms = single.path.upload_ms
    is_unlimited = is_flat and storage.bytes_per_second is None  # then the bandwidth is tried instead of the card
    if storage.nic_bytes_per_second is None and by_manager and uploading_ms > 0 and not is_unlimited:
        key = "storage.nic" + (" beside dfs or object-store" if is_flat else "")
        least_ms = 1e3 * by_manager / CARD
        own = assuming(
            "storage.nic",
            f"no network card limits what task managers write ({key})",
            "10 Gbit/s each",
            least_ms,
            bytes_per_second=1e3 * single.written_bytes / uploading_ms,
            count=len(set(hosts(scenario))),
        )
        # streams of flat storage do not share a card, so each gets the bandwidth with which all of them fit the card
        bandwidth = int((storage.bytes_per_second or CARD) * min(1.0, uploading_ms / least_ms))
        with_card = {"bytes_per_second": max(1, bandwidth)} if is_flat else {"nic_bytes_per_second": CARD}
        yield own, with_storage(**with_card), False
    if is_unlimited and by_subtask:
        assumed = "no bandwidth limits a stream of storage (storage.bandwidth)"
        own = assuming("storage.bandwidth", assumed, f"{bytes_text(STREAM)}/s each", 1e3 * by_subtask / STREAM)
        yield own, with_storage(bytes_per_second=STREAM), False
    files = int((result.tables["path"].loc[_row(single, result, "path"), "file"] != "").sum())
    if is_flat and storage.close_ns == 0 and files:
        assumed, each_ms = "files have no latency (storage.file-latency)", LATENCY_NS / MS
        own = assuming("storage.file-latency", assumed, ms_text(each_ms), files * each_ms, count=files)
        yield own, with_storage(close_ns=LATENCY_NS), False

    cluster, parallelism = scenario.cluster, max(vertex.parallelism for vertex in scenario.job.vertices)
    if cluster.placement == "spread" and cluster.slots is None and parallelism > 1:
        waits_ms = float(np.nansum([single.path.queue_ms, single.path.timeout_ms, single.path.alignment_ms]))
        least_ms = waits_ms / 2 * (min(SLOTS, parallelism) - 1) / parallelism
        assumed = "each task manager has one slot (cluster.slots)"
        own = assuming("cluster.slots", assumed, f"{SLOTS} slots each", least_ms)
        with_slots = replace(scenario, cluster=replace(cluster, slots=SLOTS))
        yield own, with_slots, single.persisted_bytes > IN_FLIGHT_BYTES


def _written(single: Single, result: Result) -> tuple[float, float]:
    """Return (most bytes written by one TaskManager, most bytes written by one subtask) for the checkpoint."""
    rows = result.tables["subtasks"][_row(single, result, "subtasks")]
    first, number = {}, 0
    for vertex in result.scenario.job.vertices:
        first[vertex.name] = number
        number += vertex.parallelism
    host = hosts(result.scenario)
    totals: dict[int, float] = {}
    for name, index, size in rows[["vertex", "index", "checkpointed_size"]].itertuples(index=False, name=None):
        if first[name] + index < len(host):  # a job that was scaled up has further subtasks, without a known host
            manager = host[first[name] + index]
            totals[manager] = totals.get(manager, 0.0) + size
    return max(totals.values(), default=0.0), float(rows["checkpointed_size"].max()) if len(rows) else 0.0


def _row(single: Single, result: Result, table: str = "checkpoints") -> np.ndarray:
    """Return a mask of the rows of a table that belong to the checkpoint."""
    rows = result.tables[table]
    found: np.ndarray = (rows["id"] == single.number).to_numpy()
    return found & (rows["x_job"] == single.job).to_numpy() if "x_job" in rows and single.job is not None else found


def _decides(trial: ValueTrial, result: Result) -> DecidingAssumption | None:
    """Return the assumption with the result of its run.

    Return None if the value changes nothing by more than noise, or if the run ended before it showed a change.
    """
    rows, own = result.checkpoints[_row(trial.single, result)], trial.assumption
    if own.key == TIMEOUT:
        return _of_timeout(own, rows, result.ended_ns / MS)
    if rows.empty or rows["status"].iloc[0] != "COMPLETED":
        return None if own.after_ms <= own.before_ms or is_noise(own.after_ms, own.before_ms) else own
    took_ms, stored = (float(rows[column].iloc[0]) for column in ("end_to_end_duration", "persisted_data"))
    found = replace(own, after_ms=took_ms, is_bound=False)
    if not is_noise(*sorted((took_ms, own.before_ms), reverse=True)):
        return found
    less, more = sorted((stored, trial.single.persisted_bytes))
    moves = trial.moves_in_flight and less < (1 - IN_FLIGHT_SHARE) * more
    return replace(found, in_flight_bytes=(trial.single.persisted_bytes, stored)) if moves else None


def _of_timeout(own: DecidingAssumption, rows: pd.DataFrame, ended_ms: float) -> DecidingAssumption | None:
    """Return the assumption with the checkpoint's duration under the longer timeout; a bound if it did not complete.

    Return None if the checkpoint failed for another reason, or if the run ended before the original timeout was exceeded.
    """
    if rows.empty:
        return None
    row = rows.iloc[0]
    is_complete, is_open = row["status"] == "COMPLETED", row["status"] == "IN_PROGRESS"
    lasted_ms = ended_ms - row["trigger_timestamp"] if is_open else row["end_to_end_duration"]
    is_told = is_complete or is_open or row["failure_message"] == EXPIRED
    if not is_told or is_noise(lasted_ms, own.before_ms):
        return None
    return replace(own, after_ms=float(lasted_ms), is_bound=not is_complete)


def _warm_up(comparison: Comparison) -> Iterator[DecidingAssumption]:
    """Yield the strategy whose median duration changes most if the detected warm-up is left out.

    Strategies whose scenario sets `run.warmup` are not considered.  Yield nothing if no median changes by more than noise.
    """
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
    """Return the scenario with a warm-up that is detected from the results."""
    return replace(scenario, run=replace(scenario.run, warmup_ns=AUTO_WARM_UP))
