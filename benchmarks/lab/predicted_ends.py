"""Ends and failures of a simulated run, in the rows of `sim.jobs`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.lab.ends import completed_between, stopped_ms
from benchmarks.lab.failures import caught_up_ms
from sim.jobs.evidence.prediction import RunValue
from sim.results.journal import EventType

if TYPE_CHECKING:
    from sim.runtime.result import Result


def of_ends_and_failures(result: Result) -> Iterator[RunValue]:
    """The end of the job, and its failures."""
    yield from _of_the_end(result)
    yield from _of_failures(result)


def _of_the_end(result: Result) -> Iterator[RunValue]:
    commits = result.commits[~result.commits["again"].astype(bool)]
    for vertex, rows in commits.groupby("vertex", sort=False):
        yield "committed", str(vertex), float(rows["records"].sum())
    if result.job_status != "FINISHED":
        return
    ends_ms = _ends_of_data_ms(result)
    for vertex, rows in commits[commits["records"] > 0].groupby("vertex", sort=False):
        yield "tail_checkpoint", str(vertex), float(rows["checkpoint"].max())
        last = rows.groupby("index")["commit_timestamp"].max()
        heard_ms = {(str(vertex), index): time for index, time in zip(last.index.tolist(), last.tolist(), strict=True)}
        delays = [heard_ms[subtask] - ends_ms[subtask] for subtask in heard_ms.keys() & ends_ms.keys()]
        ended_ms = (
            max(ends_ms[subtask] for subtask in heard_ms.keys() & ends_ms.keys())
            if delays
            else stopped_ms(result.checkpoints)
        )
        yield (
            "checkpoints_to_commit",
            str(vertex),
            completed_between(result.checkpoints, ended_ms, rows["checkpoint"].max()),
        )
        if delays:
            yield "tail_commit_delay", str(vertex), max(delays)
    if ends_ms:
        yield "job_end_delay", "", result.ended_ns / 1e6 - max(ends_ms.values())


def _ends_of_data_ms(result: Result) -> dict[tuple[str, int], float]:
    """(vertex, subtask index) -> end of its input, for vertices with inputs; empty if the job stopped without drain."""
    readers = {vertex.name for vertex in result.scenario.job.vertices if vertex.inputs}
    names = list(result.tasks[["vertex", "index"]].itertuples(index=False, name=None))
    drained = (row for row in result.journal if row.event_type is EventType.END_OF_DATA and row.detail == "drain")
    return {names[row.task]: row.time_ns / 1e6 for row in drained if names[row.task][0] in readers}


def _of_failures(result: Result) -> Iterator[RunValue]:
    """The first failure, and the recovery from it."""
    back = result.recoveries[result.recoveries["first_record"] >= 0]
    if back.empty:
        return
    first = back.iloc[0]
    yield "restored_checkpoint", "", float(first["restored_checkpoint"])
    yield "time_to_first_record", "", float(first["first_record"] - first["failed"])
    yield "replayed_records", "", float(first["replayed_records"])
    if first["running"] >= 0:
        yield "downtime", "", float(first["downtime"])
    if (caught_up := _caught_up_ms(result, float(first["failed"]), float(first["served_again"]))) is not None:
        yield "recovery_time", "", caught_up - float(first["failed"])


def _caught_up_ms(result: Result, failed_ms: float, again: float) -> float | None:
    vertices = result.scenario.job.vertices
    read = {inlet.upstream for vertex in vertices for inlet in vertex.inputs}
    rows = result.series[~result.series["vertex"].isin(read) & (1000 * result.series["time"] > failed_ms)]
    served = rows.groupby("time")["numRecordsInPerSecond"].sum()
    rates = [
        vertex.source.rates[-1].per_second if vertex.source.rates else 0
        for vertex in vertices
        if vertex.source is not None
    ]
    widths = [vertex.emitting for vertex in vertices if vertex.source is not None]
    rate = (
        float(sum(per_second * width for per_second, width in zip(rates, widths, strict=True))) if all(rates) else 0.0
    )
    times_ms = 1000 * served.index.to_numpy(dtype=float)
    return caught_up_ms(
        failed_ms, times_ms, served.to_numpy(dtype=float) * np.diff(times_ms, prepend=failed_ms) / 1000, again, rate
    )
