"""Sensitivity of an answer to values that the scenario omits, and to the checkpoint timeout.

An omitted value costs nothing in a simulation (network card, bandwidth of a stream, latency of a file), or has Flink's
default (one slot per TaskManager).  This module simulates the scenario again with a likely value, and reports the value if
the duration of a checkpoint changes by more than noise.  The checkpoint is the first upload or, without one, the median
checkpoint, of the strategy where it takes longest.  A value is tried only if an estimate shows that it may matter.

Checkpoints that expire are tried with a longer timeout.  The warm-up needs no further run: the results are summarized again.
"""

from __future__ import annotations

from collections import Counter
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
from sim.runtime.plane_spec import hosts
from sim.runtime.result import Result, identity
from sim.studies.cells import simulated
from sim.studies.local import run_each
from sim.studies.plan import Cell
from sim.studies.progress import Watch, no_watch
from sim.studies.remarks.assumptions import TIMEOUT, WARM_UP, DecidingAssumption
from sim.studies.replications import Replications

if TYPE_CHECKING:
    import pandas as pd

    from sim.studies.comparison import Comparison

LIKELY_NIC_BYTES_PER_SECOND = 1_250_000_000
"""Bandwidth of a network card of 10 Gbit/s."""
LIKELY_STREAM_BYTES_PER_SECOND = 80_000_000
"""Bandwidth of one request to an object store; the default of `sim.model.storage.ObjectStore`."""
LIKELY_LATENCY_NS = 40_000_000
"""Median latency of one request to an object store; the default of `sim.model.storage.ObjectStore`."""
MIN_COST_SHARE = 0.1
"""Minimum estimated time that a value costs a checkpoint, as a share of the checkpoint's duration, for which it is tried."""
LIKELY_SLOTS = 4
"""Slots per TaskManager that are tried.

Channels between tasks of one TaskManager have no receiving buffers, so about half as much data is in flight.
"""
MIN_IN_FLIGHT_BYTES, MIN_IN_FLIGHT_CHANGE = 1_000_000, 0.3
"""Minimum in-flight data of a checkpoint [bytes], and minimum relative change of it, for which a value is reported."""
MAX_DECIDING_RUNS = 2
"""Maximum runs with a longer timeout, and maximum runs with likely values (those with the largest estimated time)."""
TIMEOUT_FACTOR = 6
"""Factor by which the timeout of expiring checkpoints is multiplied."""


@dataclass(frozen=True, slots=True)
class ValueTrial:
    """A planned run with one changed value: a likely value of an omitted option, or a longer timeout."""

    assumption: DecidingAssumption  # before the run, `after_ms` is an estimated lower bound, or the longer timeout
    single: Single  # the checkpoint whose duration is compared
    scenario: Scenario
    moves_in_flight: bool = False  # the value may change the in-flight data that the checkpoint stores


def deciding(
    comparison: Comparison, planned: Sequence[ValueTrial], *, watch: Watch = no_watch
) -> tuple[DecidingAssumption, ...]:
    """Run the planned trials (see `trials`), and return the assumptions that change a result by more than noise.

    An assumption on the warm-up comes last.  Trials whose run fails are ignored.
    """
    cells = [Cell(trial.scenario, identity(trial.scenario)) for trial in planned]
    results = dict(run_each(partial(simulated, "compiled", False), cells, jobs=1, watch=watch))
    assumptions = (
        _assumption_if_deciding(trial, result)
        for i, trial in enumerate(planned)
        if isinstance(result := results[i], Result)
    )
    return (*filter(None, assumptions), *_warm_up(comparison))


def trials(comparison: Comparison) -> list[ValueTrial]:
    """Return the runs to try.

    Strategies whose checkpoints fail most often by expiring, or whose longest savepoint expires, are tried with a longer timeout.
    Of the omitted values, those with the largest estimated cost are tried.
    """
    expired = [
        (line.label, single)
        for kind in ("failed", "savepoint")
        for line in comparison.strategies
        if (single := getattr(line.singles, kind)) is not None and not single.replication
        if _failure(single, comparison.results[line.label][0]) == EXPIRED
        and comparison.results[line.label][0].scenario.has_one_timeout
    ]
    return [
        *(_timeout_trial(label, single, comparison.results[label][0]) for label, single in expired[:MAX_DECIDING_RUNS]),
        *_likely_value_trials(comparison),
    ]


def _failure(single: Single, result: Result) -> str:
    """Return the failure message of a checkpoint, "" if it has not failed."""
    return "".join(result.checkpoints.loc[_row(single, result), "failure_message"])


def _timeout_trial(label: str, single: Single, result: Result) -> ValueTrial:
    """Return a trial with a longer timeout.  Its run ends soon after the checkpoint would expire, or as planned if that is earlier."""
    options = result.scenario.checkpoint
    timeout_ns = TIMEOUT_FACTOR * options.timeout_ns
    longer = replace(result.scenario, checkpoint=replace(options, timeout_ns=timeout_ns))
    assumed, tried = (ms_text(limit_ns / MS) for limit_ns in (options.timeout_ns, timeout_ns))
    assumption = DecidingAssumption(
        TIMEOUT,
        f"checkpoints have {assumed} ({TIMEOUT})",
        f"{TIMEOUT} {tried}",
        f"{single} ({label})",
        single.duration_ms,
        timeout_ns / MS,
    )
    return ValueTrial(assumption, single, _shortened(longer, single, result, timeout_ns / MS))


def _shortened(scenario: Scenario, single: Single, result: Result, lasts_ms: float) -> Scenario:
    """Return the scenario, ending 1 s after the checkpoint has lasted `lasts_ms`, and without a warm-up.  It never ends later than before."""
    trigger_ms = float(result.checkpoints.loc[_row(single, result), "trigger_timestamp"].iloc[0])
    end_ns = int((trigger_ms + lasts_ms + 1000) * MS)
    run = replace(scenario.run, duration_ns=min(scenario.run.duration_ns, end_ns), warmup_ns=0)
    return replace(scenario, run=run)


def _likely_value_trials(comparison: Comparison) -> list[ValueTrial]:
    """Return trials of omitted values for the slowest first upload or median checkpoint of all strategies."""
    singles = [(line.singles.first_upload or line.singles.median, line.label) for line in comparison.strategies]
    candidates = [(single, label) for single, label in singles if single is not None and not single.replication]
    if not candidates:
        return []
    single, label = max(candidates, key=lambda item: item[0].duration_ms)
    result, trials = comparison.results[label][0], list[ValueTrial]()
    for assumption, scenario, moves_in_flight in _likely_values(single, result, label):
        least_ms = assumption.after_ms
        if moves_in_flight or not (is_noise(least_ms, 0.0) or least_ms < MIN_COST_SHARE * single.duration_ms):
            shortened = _shortened(scenario, single, result, 2 * (single.duration_ms + least_ms))
            trials.append(ValueTrial(assumption, single, shortened, moves_in_flight))
    return sorted(trials, key=lambda trial: -trial.assumption.after_ms)[:MAX_DECIDING_RUNS]


def _likely_values(single: Single, result: Result, label: str) -> Iterator[tuple[DecidingAssumption, Scenario, bool]]:
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
        least_ms = 1e3 * by_manager / LIKELY_NIC_BYTES_PER_SECOND
        assumption = assuming(
            "storage.nic",
            f"no network card limits what task managers write ({key})",
            "10 Gbit/s each",
            least_ms,
            bytes_per_second=1e3 * single.written_bytes / uploading_ms,
            count=len(set(hosts(scenario))),
        )
        # streams of flat storage do not share a card, so each gets the bandwidth with which all of them fit the card
        bandwidth = int((storage.bytes_per_second or LIKELY_NIC_BYTES_PER_SECOND) * min(1.0, uploading_ms / least_ms))
        with_card = (
            {"bytes_per_second": max(1, bandwidth)}
            if is_flat
            else {"nic_bytes_per_second": LIKELY_NIC_BYTES_PER_SECOND}
        )
        yield assumption, with_storage(**with_card), False
    if is_unlimited and by_subtask:
        assumed = "no bandwidth limits a stream of storage (storage.bandwidth)"
        tried = f"{bytes_text(LIKELY_STREAM_BYTES_PER_SECOND)}/s each"
        assumption = assuming("storage.bandwidth", assumed, tried, 1e3 * by_subtask / LIKELY_STREAM_BYTES_PER_SECOND)
        yield assumption, with_storage(bytes_per_second=LIKELY_STREAM_BYTES_PER_SECOND), False
    files = int((result.tables["path"].loc[_row(single, result, "path"), "file"] != "").sum())
    if is_flat and storage.close_ns == 0 and files:
        assumed, each_ms = "files have no latency (storage.file-latency)", LIKELY_LATENCY_NS / MS
        assumption = assuming("storage.file-latency", assumed, ms_text(each_ms), files * each_ms, count=files)
        yield assumption, with_storage(close_ns=LIKELY_LATENCY_NS), False

    cluster, parallelism = scenario.cluster, max(vertex.parallelism for vertex in scenario.job.vertices)
    if cluster.placement == "spread" and cluster.slots is None and parallelism > 1:
        waits_ms = float(np.nansum([single.path.queue_ms, single.path.timeout_ms, single.path.alignment_ms]))
        least_ms = waits_ms / 2 * (min(LIKELY_SLOTS, parallelism) - 1) / parallelism
        assumed = "each task manager has one slot (cluster.slots)"
        assumption = assuming("cluster.slots", assumed, f"{LIKELY_SLOTS} slots each", least_ms)
        with_slots = replace(scenario, cluster=replace(cluster, slots=LIKELY_SLOTS))
        yield assumption, with_slots, single.persisted_bytes > MIN_IN_FLIGHT_BYTES


def _written(single: Single, result: Result) -> tuple[float, float]:
    """Return (most bytes written by one TaskManager, most bytes written by one subtask) for the checkpoint."""
    rows = result.tables["subtasks"][_row(single, result, "subtasks")]
    names = [(vertex.name, i) for vertex in result.scenario.job.vertices for i in range(vertex.parallelism)]
    manager_of = dict(zip(names, hosts(result.scenario), strict=True))
    totals = Counter[int]()
    for name, index, size in rows[["vertex", "index", "checkpointed_size"]].itertuples(index=False, name=None):
        if (manager := manager_of.get((name, index))) is not None:  # else the job was scaled up
            totals[manager] += size
    return max(totals.values(), default=0.0), float(rows["checkpointed_size"].max()) if len(rows) else 0.0


def _row(single: Single, result: Result, table: str = "checkpoints") -> np.ndarray:
    """Return a mask of the rows of a table that belong to the checkpoint."""
    rows = result.tables[table]
    mask: np.ndarray = (rows["id"] == single.number).to_numpy()
    return mask & (rows["x_job"] == single.job).to_numpy() if "x_job" in rows and single.job is not None else mask


def _assumption_if_deciding(trial: ValueTrial, result: Result) -> DecidingAssumption | None:
    """Return the assumption with the result of its run.

    Return None if the value changes nothing by more than noise, or if the run ended before it showed a change.
    """
    rows, assumption = result.checkpoints[_row(trial.single, result)], trial.assumption
    if assumption.key == TIMEOUT:
        return _with_longer_timeout(assumption, rows, result.ended_ns / MS)
    if rows.empty or rows["status"].iloc[0] != "COMPLETED":
        return (
            None
            if assumption.after_ms <= assumption.before_ms or is_noise(assumption.after_ms, assumption.before_ms)
            else assumption
        )
    took_ms, stored = (float(rows[column].iloc[0]) for column in ("end_to_end_duration", "persisted_data"))
    measured = replace(assumption, after_ms=took_ms, is_bound=False)
    if not is_noise(*sorted((took_ms, assumption.before_ms), reverse=True)):
        return measured
    less, more = sorted((stored, trial.single.persisted_bytes))
    moves = trial.moves_in_flight and less < (1 - MIN_IN_FLIGHT_CHANGE) * more
    return replace(measured, in_flight_bytes=(trial.single.persisted_bytes, stored)) if moves else None


def _with_longer_timeout(
    assumption: DecidingAssumption, rows: pd.DataFrame, ended_ms: float
) -> DecidingAssumption | None:
    """Return the assumption with the checkpoint's duration under the longer timeout; a bound if it did not complete.

    Return None if the checkpoint failed for another reason, or if the run ended before the original timeout was exceeded.
    """
    if rows.empty:
        return None
    row = rows.iloc[0]
    is_complete, is_open = row["status"] == "COMPLETED", row["status"] == "IN_PROGRESS"
    lasted_ms = ended_ms - row["trigger_timestamp"] if is_open else row["end_to_end_duration"]
    is_measured = is_complete or is_open or row["failure_message"] == EXPIRED
    if not is_measured or (not is_complete and is_noise(lasted_ms, assumption.before_ms)):
        return None
    return replace(assumption, after_ms=float(lasted_ms), is_bound=not is_complete)


def _warm_up(comparison: Comparison) -> Iterator[DecidingAssumption]:
    """Yield the strategy whose median duration changes most if the detected warm-up is left out.

    Strategies whose scenario sets `run.warmup` are not considered.  Yield nothing if no median changes by more than noise.
    """
    assumptions = []
    for line in comparison.strategies:
        results = comparison.results[line.label]
        if any(result.scenario.run.warmup_ns for result in results) or not line.summary.completed:
            continue
        replications = Replications(
            [replace(result, scenario=_with_auto_warm_up(result.scenario)) for result in results]
        )
        before_ms = line.summary.end_to_end_p50_ms
        after_ms = replications.median_duration_ms(replications.warm_up)
        if not np.isnan(after_ms) and not is_noise(*sorted((before_ms, after_ms), reverse=True)):
            moves, beginning = f"the median of {line.label}", f"the first {replications.warm_up}"
            assumptions.append(
                DecidingAssumption(WARM_UP, "the beginning counts (run.warmup)", beginning, moves, before_ms, after_ms)
            )
    if assumptions:
        yield max(assumptions, key=lambda assumption: abs(assumption.after_ms - assumption.before_ms))


def _with_auto_warm_up(scenario: Scenario) -> Scenario:
    """Return the scenario with a warm-up that is detected from the results."""
    return replace(scenario, run=replace(scenario.run, warmup_ns=AUTO_WARM_UP))
