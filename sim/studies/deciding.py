"""Sensitivity of an answer to values that the scenario omits, and to the checkpoint timeout.

An omitted network card or latency of files costs nothing in a simulation.  Arithmetic gives the time that a likely value
needs at least for one checkpoint: the first upload or, without one, the median checkpoint, of the strategy where it takes
longest.  The value is reported if that is longer than the simulated duration by more than noise.

Checkpoints that expire are simulated again with a longer timeout.  The warm-up needs no further run: the results are
summarized again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from sim.model.scenario import AUTO_WARM_UP, Scenario
from sim.model.units import MS
from sim.results.estimates import is_noise
from sim.results.formats import ms_text
from sim.results.side_by_side import Single
from sim.results.tables import EXPIRED
from sim.runtime.plane_spec import hosts
from sim.runtime.result import Result, identity
from sim.studies.cells import simulated
from sim.studies.comparison import TIMEOUT, WARM_UP, Comparison, DecidingAssumption
from sim.studies.local import run_each
from sim.studies.plan import Cell
from sim.studies.progress import Watch, no_watch
from sim.studies.replications import Replications

LIKELY_NIC_BYTES_PER_SECOND = 1_250_000_000
"""Bandwidth of a network card of 10 Gbit/s."""
LIKELY_LATENCY_NS = 40_000_000
"""Median latency of one request to an object store; the default of `sim.model.storage.ObjectStore`."""
MAX_TRIALS = 2
"""Maximum runs with a longer timeout."""
TIMEOUT_FACTOR = 6
"""Factor by which the timeout of expiring checkpoints is multiplied."""


class TimeoutTrial(NamedTuple):
    """A planned run with a longer timeout."""

    assumption: DecidingAssumption  # before the run, `after_ms` is the longer timeout
    single: Single  # the checkpoint that expired
    scenario: Scenario


def deciding(
    comparison: Comparison, planned: Sequence[TimeoutTrial], *, watch: Watch = no_watch
) -> tuple[DecidingAssumption, ...]:
    """Run the planned trials (see `trials`), and return the assumptions that change a result by more than noise.

    An assumption on the warm-up comes last.  Trials whose run fails are ignored.
    """
    cells = [Cell(trial.scenario, identity(trial.scenario)) for trial in planned]
    results = dict(run_each(partial(simulated, "compiled", False), cells, jobs=1, watch=watch))
    tried = (
        _with_longer_timeout(trial, result)
        for i, trial in enumerate(planned)
        if isinstance(result := results[i], Result)
    )
    return (*filter(None, tried), *_omitted_value_assumptions(comparison), *_warm_up_assumption(comparison))


def trials(comparison: Comparison) -> list[TimeoutTrial]:
    """Return runs with a longer timeout, of strategies whose checkpoints fail most often by expiring, or whose longest savepoint does."""
    expired = [
        (line.label, single)
        for kind in ("failed", "savepoint")
        for line in comparison.strategies
        if (single := getattr(line.singles, kind)) is not None and not single.replication
        if _failure_message(single, comparison.results[line.label][0]) == EXPIRED
        and comparison.results[line.label][0].scenario.has_one_timeout
    ]
    return [_timeout_trial(label, single, comparison.results[label][0]) for label, single in expired[:MAX_TRIALS]]


def _failure_message(single: Single, result: Result) -> str:
    """Return the failure message of a checkpoint, "" if it has not failed."""
    return "".join(result.checkpoints.loc[_checkpoint_mask(single, result), "failure_message"])


def _timeout_trial(label: str, single: Single, result: Result) -> TimeoutTrial:
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
    trigger_ms = float(result.checkpoints.loc[_checkpoint_mask(single, result), "trigger_timestamp"].iloc[0])
    end_ns = int(trigger_ms * MS) + timeout_ns + 1000 * MS
    run = replace(longer.run, duration_ns=min(longer.run.duration_ns, end_ns), warmup_ns=0)
    return TimeoutTrial(assumption, single, replace(longer, run=run))


def _with_longer_timeout(trial: TimeoutTrial, result: Result) -> DecidingAssumption | None:
    """Return the assumption with the checkpoint's duration under the longer timeout; a bound if it did not complete.

    Return None if the checkpoint failed for another reason, or if the run ended before the original timeout was exceeded.
    """
    rows = result.checkpoints[_checkpoint_mask(trial.single, result)]
    if rows.empty:
        return None
    row = rows.iloc[0]
    is_complete, is_open = row["status"] == "COMPLETED", row["status"] == "IN_PROGRESS"
    lasted_ms = result.ended_ns / MS - row["trigger_timestamp"] if is_open else row["end_to_end_duration"]
    is_measured = is_complete or is_open or row["failure_message"] == EXPIRED
    if not is_measured or (not is_complete and is_noise(lasted_ms, trial.assumption.before_ms)):
        return None
    return replace(trial.assumption, after_ms=float(lasted_ms), is_bound=not is_complete)


def _omitted_value_assumptions(comparison: Comparison) -> Iterator[DecidingAssumption]:
    """Yield omitted values of storage whose likely value makes the slowest first upload or median checkpoint longer."""
    singles = [(line.singles.first_upload or line.singles.median, line.label) for line in comparison.strategies]
    found = [(single, label) for single, label in singles if single is not None and not single.replication]
    if not found:
        return
    single, label = max(found, key=lambda item: item[0].duration_ms)
    result = comparison.results[label][0]
    storage, uploading_ms, took_ms = result.scenario.storage, single.path.upload_ms, single.duration_ms
    is_flat = storage.dfs is None and storage.object_store is None and storage.other is None
    beside = " beside dfs or object-store" if is_flat else ""
    files = int((result.tables["path"].loc[_checkpoint_mask(single, result, "path"), "file"] != "").sum())
    omitted = []
    if (
        storage.nic_bytes_per_second is None
        and uploading_ms > 0
        and (not is_flat or storage.bytes_per_second is not None)
    ):
        omitted.append(
            DecidingAssumption(
                "storage.nic",
                f"no network card limits what task managers write (storage.nic{beside})",
                "10 Gbit/s each",
                f"{single} ({label})",
                took_ms,
                1e3 * _most_written_bytes(single, result) / LIKELY_NIC_BYTES_PER_SECOND,
                is_bound=True,
                bytes_per_second=1e3 * single.written_bytes / uploading_ms,
                count=len(set(hosts(result.scenario))),
            )
        )
    if is_flat and storage.close_ns == 0:
        omitted.append(
            DecidingAssumption(
                "storage.file-latency",
                "files have no latency (storage.file-latency)",
                ms_text(LIKELY_LATENCY_NS / MS),
                f"{single} ({label})",
                took_ms,
                took_ms + files * LIKELY_LATENCY_NS / MS,
                is_bound=True,
                count=files,
            )
        )
    yield from (own for own in omitted if not is_noise(own.after_ms, took_ms))


def _most_written_bytes(single: Single, result: Result) -> int:
    """Return the most bytes that one TaskManager writes for the checkpoint."""
    rows = result.tables["subtasks"][_checkpoint_mask(single, result, "subtasks")]
    names = [(vertex.name, i) for vertex in result.scenario.job.vertices for i in range(vertex.parallelism)]
    manager_of = dict(zip(names, hosts(result.scenario), strict=True))
    totals = Counter[int]()
    for name, index, size in rows[["vertex", "index", "checkpointed_size"]].itertuples(index=False, name=None):
        if (manager := manager_of.get((name, index))) is not None:  # else the job was scaled up
            totals[manager] += size
    return max(totals.values(), default=0)


def _checkpoint_mask(single: Single, result: Result, table: str = "checkpoints") -> np.ndarray:
    """Return a mask of the rows of a table that belong to the checkpoint."""
    rows = result.tables[table]
    mask: np.ndarray = (rows["id"] == single.number).to_numpy()
    return mask & (rows["x_job"] == single.job).to_numpy() if "x_job" in rows and single.job is not None else mask


def _warm_up_assumption(comparison: Comparison) -> Iterator[DecidingAssumption]:
    """Yield the strategy whose median duration changes most if the detected warm-up is left out.

    Strategies whose scenario sets `run.warmup` are not considered.  Yield nothing if no median changes by more than noise.
    """
    assumptions = []
    for line in comparison.strategies:
        results = comparison.results[line.label]
        if any(result.scenario.run.warmup_ns for result in results) or not line.summary.completed:
            continue
        replications = Replications(
            [
                replace(
                    result, scenario=replace(result.scenario, run=replace(result.scenario.run, warmup_ns=AUTO_WARM_UP))
                )
                for result in results
            ]
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
