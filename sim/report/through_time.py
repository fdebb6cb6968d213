"""What is drawn through time: throughput, lag, data in flight, back-pressure; a curve per strategy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from sim.analysis.strategies.summary import Tables
from sim.quantities.populations import PLANNED_RESTARTS

if TYPE_CHECKING:
    import pandas as pd

    from sim.comparison.comparison import Comparison

_MOST_TRIGGERS = 200


class PlottedQuantity(NamedTuple):
    """A quantity that is drawn through time."""

    title: str
    unit: str  # in words, for the axis
    column: str  # of the table `series`
    scale: float  # the column is divided by it
    how: str  # vertices are added up, or the largest counts
    at_sinks: bool = False


QUANTITIES = {
    "throughput": PlottedQuantity("Throughput", "records per second", "numRecordsInPerSecond", 1.0, "sum", at_sinks=True),
    "lag": PlottedQuantity("Lag of the sources", "seconds behind", "lag", 1.0, "max"),
    "in_flight": PlottedQuantity("In-flight data", "megabytes in queues", "queued", 1e6, "sum"),
    "back_pressure": PlottedQuantity("Back-pressure of the most back-pressured vertex", "per cent of time", "backPressured", 0.01, "max"),
}


def curves_of(quantity: PlottedQuantity, comparison: Comparison) -> dict[str, pd.Series[float]]:
    """Strategy -> the quantity by time [s], of its first run; strategies without samples are left out."""
    tables = {name: found[0].tables["series"] for name, found in comparison.results.items()}
    sinks = _sinks(comparison) if quantity.at_sinks else None
    return {name: _curve(rows, quantity, sinks) for name, rows in tables.items() if len(rows)}


def failures_s(runs: Mapping[str, Tables]) -> list[float]:
    """Times of failures; planned restarts are none."""
    rows = (tables["recoveries"] for tables in runs.values())
    return sorted({at_ms / 1e3 for own in rows for at_ms in own.loc[~own["kind"].isin(PLANNED_RESTARTS), "failed"]})


def triggers_s(runs: Mapping[str, Tables]) -> list[float]:
    """Triggers of the first strategy; empty: too many to draw."""
    first = next(iter(runs.values()))["checkpoints"]
    return list(first["trigger_timestamp"] / 1e3) if len(first) <= _MOST_TRIGGERS else []


def end_s(runs: Mapping[str, Tables]) -> float | None:
    """Where a common axis of time ends.  None: there are no samples."""
    return max((float(tables["series"]["time"].max()) for tables in runs.values() if len(tables["series"])), default=None)


def _sinks(comparison: Comparison) -> list[str]:
    job = next(iter(comparison.results.values()))[0].scenario.job
    readers = {inlet.upstream for vertex in job.vertices if not vertex.committer_of for inlet in vertex.inputs}
    return [vertex.name for vertex in job.vertices if vertex.name not in readers and not vertex.committer_of]


def _curve(rows: pd.DataFrame, quantity: PlottedQuantity, vertices: list[str] | None) -> pd.Series[float]:
    rows = rows.assign(queued=rows["inputQueueSize"] + rows["outputQueueSize"])
    if vertices is not None:
        rows = rows[rows["vertex"].isin(vertices)]
    curve: pd.Series[float] = rows.groupby("time")[quantity.column].agg(quantity.how) / quantity.scale
    return curve
