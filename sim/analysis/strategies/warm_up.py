"""The beginning of a run that is left out of its results: as long as the scenario says, or until the run has settled.

The rule is Conway's (Some Tactical Problems in Digital Simulation, Management Science 10, 1963).  Observations are left out until the
first that stays is neither the largest nor the smallest of all that stay.  A first checkpoint that writes all state is the largest,
queues that fill begin as the smallest, a backlog begins as the largest.  An extreme is one by more than a tenth here: else a drift
of a per mille, which has no end, would hide the first upload.

Rules that minimise an error of the mean (MSER) leave out more.  They also leave out a slow node that strikes in the first half of a
run, and with it the tail that people ask about.  An extreme that comes later never lengthens the warm-up of this rule.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from sim.analysis.number_texts import ms_text
from sim.analysis.strategies.kinds_of_checkpoints import is_periodic
from sim.analysis.strategies.summary import Tables

if TYPE_CHECKING:
    import pandas as pd

BY = 0.1
"""So much larger or smaller than all that follow an extreme is, as a share."""


_SMOOTHED, _FALLS = 5, 1.5
"""Samples of a mean, and the factor by which a queue falls that is worked off."""


class WarmUpEnd(NamedTuple):
    """The end of a warm-up, and what settled last."""

    ns: int
    cause: str = ""  # what settled last; empty: the scenario says how long

    def __str__(self) -> str:
        """``30 s, until the size of checkpoints settled``."""
        return f"{ms_text(self.ns / 1e6)}, until {self.cause} settled" if self.cause else ms_text(self.ns / 1e6)


class HasTables(Protocol):
    """A result of a run."""

    @property
    def scenario(self) -> Any: ...
    @property
    def tables(self) -> Tables: ...


def warm_up(results: Sequence[HasTables]) -> WarmUpEnd:
    """The longest warm-up among the replications of one setting, so that all leave out the same."""
    run = results[0].scenario.run
    if not run.finds_warm_up:
        return WarmUpEnd(run.warmup_ns)
    return max(_found(result.tables) for result in results)


def cold_start(results: Sequence[HasTables]) -> WarmUpEnd:
    """The longest cold start among the replications of one setting: until tasks are warm, and queues and lag have settled."""
    scenario = results[0].scenario
    least_ns = scenario.run.cold_start_ns
    if not least_ns:
        return WarmUpEnd(0)
    warm = WarmUpEnd(least_ns + scenario.restart.warm_up_ns)
    settled = [WarmUpEnd(ns, cause) for result in results for cause, ns in _of_queues(result.tables, drained_after)]
    served = [WarmUpEnd(_served_as_later_ns(result.tables), "throughput") for result in results]
    return max((warm, *settled, *served), key=lambda end: end.ns)


def _served_as_later_ns(tables: Tables) -> int:
    """From when on as many records are served as in the last third, nearly."""
    curve = tables["series"].groupby("time")["numRecordsInPerSecond"].sum()
    if len(curve) < 3 * _SMOOTHED:
        return 0
    below = np.flatnonzero(curve.to_numpy(dtype=float) < (1 - BY) * curve.iloc[-len(curve) // 3 :].median())
    early = below[below < len(curve) // 2]
    return round(float(curve.index[early[-1]]) * 1e9) if len(early) else 0


def drained_after(values: np.ndarray[Any, np.dtype[Any]]) -> int:
    """How many values to leave out until what the start has left is worked off: all of them, if it is not in this run.

    What follows is no higher than the last third, in means of a few values: checkpoints and bursts let queues rise and fall.
    """
    if len(values) < 3 * _SMOOTHED:
        return 0
    means = np.convolve(values, np.ones(_SMOOTHED) / _SMOOTHED, "valid")
    last = means[-len(means) // 3 :]
    early, late = np.array_split(last, 2)
    if early.mean() > _FALLS * late.mean():
        return len(values)
    above = np.flatnonzero(means > _FALLS * last.max())
    return int(above[-1]) + _SMOOTHED if len(above) else 0


def settled_after(values: np.ndarray[Any, np.dtype[Any]]) -> int:
    """How many values to leave out at the beginning; 0: none, or there is no end to it in the first half."""
    if len(values) < 3:
        return 0
    largest = np.maximum.accumulate(values[::-1])[::-1][1:]  # of all that come later
    smallest = np.minimum.accumulate(values[::-1])[::-1][1:]
    inside = np.flatnonzero((values[:-1] <= largest * (1 + BY)) & (values[:-1] >= smallest * (1 - BY)))
    return int(inside[0]) if len(inside) and 2 * inside[0] <= len(values) else 0


def _found(tables: Tables) -> WarmUpEnd:
    ends = [WarmUpEnd(ns, cause) for cause, ns in (*_of_checkpoints(tables), *_of_queues(tables)) if ns > 0]
    return max(ends, default=WarmUpEnd(0))


def _of_checkpoints(tables: Tables) -> Iterator[tuple[str, int]]:
    """(what settles, when [ns]).  The warm-up ends before the trigger of the first checkpoint that counts."""
    rows = tables["checkpoints"]
    rows = rows[is_periodic(rows)]
    rows = rows[(rows["status"] == "COMPLETED") & (rows["trigger_timestamp"] <= _first_failure_ms(tables))].sort_values("trigger_timestamp")
    for cause, column in (("the size of checkpoints", "checkpointed_size"), ("the duration of checkpoints", "end_to_end_duration")):
        if count := settled_after(rows[column].to_numpy(dtype=float)):
            yield cause, (math.ceil(rows["trigger_timestamp"].iloc[count]) - 1) * 1_000_000


def _of_queues(tables: Tables, after: Callable[[np.ndarray[Any, np.dtype[Any]]], int] = settled_after) -> Iterator[tuple[str, int]]:
    series = tables["series"]
    series = series.loc[series["time"] * 1e3 <= _first_failure_ms(tables), ["time", "inputQueueSize", "outputQueueSize", "lag"]]
    queued: pd.Series[float] = (series["inputQueueSize"] + series["outputQueueSize"]).groupby(series["time"]).sum()
    for cause, curve in (("data in queues", queued), ("the lag of sources", series.groupby("time")["lag"].max())):
        if count := after(curve.to_numpy(dtype=float)):
            yield cause, round(float(curve.index[count - 1]) * 1e9)


def _first_failure_ms(tables: Tables) -> float:
    """A failure, and what follows from it, is no warm-up."""
    failed = tables["recoveries"]["failed"]
    return float(failed.min()) if len(failed) else math.inf
