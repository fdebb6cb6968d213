"""Rates and latencies that a recorded job has counted itself: its ends count each second, other vertices count in every snapshot."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import pandas as pd

from benchmarks.lab.recording import Recording
from sim.jobs.evidence.prediction import (
    SETTLED_AFTER,
    RunValue,
    growth_per_ms,
    recorded_series_values,
    steady_window_of_recording,
)
from sim.jobs.source.recorded_job import RecordedVertex


def of_counted_series(recording: Recording) -> Iterator[RunValue]:
    """Values of the whole run and its samples."""
    served = recording.event_table("sink_second")
    yield from recorded_series_values(recording, partial(_counted, recording, served))
    yield from _latencies(served)


def _counted(recording: Recording, served: pd.DataFrame, node: RecordedVertex) -> float | None:
    rate = _served(recording, served[served["node"] == node.id]) if len(served) else None
    if rate is not None:
        return rate
    return _passed(recording, node.id, *(("snapshot", "in") if node.inputs else ("source_snapshot", "emitted")))


def _latencies(served: pd.DataFrame) -> Iterator[RunValue]:
    """Mean over the records of each second, all subtasks together; the last second is incomplete."""
    if served.empty:
        return
    for vertex, ours in served.groupby("node", sort=False):
        begun, ended = ours["second"].min(), ours["second"].max()
        settled = ours[(ours["second"] >= begun + SETTLED_AFTER * (ended - begun)) & (ours["second"] < ended)]
        total = (settled["n"] * settled["lat_mean"]).groupby(settled["second"]).sum()
        yield from (("latency", str(vertex), float(value)) for value in total / settled.groupby("second")["n"].sum())


def _served(recording: Recording, seconds: pd.DataFrame) -> float | None:
    """Records per ms that a vertex served, from its own count of each second."""
    counts = seconds.groupby("second")["n"].sum()
    if len(counts) < 2:
        return None
    times_ms = 1000 * (counts.index.to_numpy(dtype=float) + 1)
    return growth_per_ms(
        times_ms,
        counts.to_numpy(dtype=float).cumsum(),
        steady_window_of_recording(recording, times_ms[0], times_ms[-1]),
    )


def _passed(recording: Recording, vertex: str, kind: str, counted: str) -> float | None:
    """Records per ms, from each subtask's position in its snapshots.  A restored subtask does not count: it repeats an earlier position."""
    rows = recording.event_table(kind)
    if rows.empty:
        return None
    rates = []
    for _, ours in rows[rows["node"] == vertex].groupby("sub"):
        times_ms, positions = ours["t"].to_numpy(dtype=float), ours[counted].to_numpy(dtype=float)
        if len(ours) < 2 or (np.diff(positions) < 0).any():
            return None
        rates.append(
            growth_per_ms(times_ms, positions, steady_window_of_recording(recording, times_ms[0], times_ms[-1]))
        )
    known = [rate for rate in rates if rate is not None]
    return sum(known) if known and len(known) == len(rates) else None
