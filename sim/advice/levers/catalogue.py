"""The levers, in the order in which an operator would reach for them: configuration first, machines last."""

from __future__ import annotations

from collections.abc import Iterator

from sim.advice.levers import flight, machines, outage, state
from sim.advice.levers.lever import Change, Lever, Situation

LEVERS: tuple[Lever, ...] = (
    flight.BARRIERS, flight.INTERVAL, flight.NO_PAUSE, flight.MIN_PAUSE, flight.TIMEOUT, flight.TOLERANCE,
    state.INCREMENTAL, state.ROCKSDB, state.CHANGELOG,
    state.LOCAL_RECOVERY, outage.RESTARTS, outage.HEARTBEATS, state.TRANSFER_THREADS,
    flight.SEGMENTS, flight.FLOATING, machines.FILE_MERGING,
    machines.PARALLELISM, machines.PREFIXES, machines.CORES,
)  # fmt: skip
NOTICED = 0.05
"""A lever that can shorten no more than this share of what breaks the limits is not tried."""
_STEPS = 4
"""Shares are compared in quarters: among levers that help about as much, the order of the list decides."""


def ranked(situation: Situation) -> Iterator[tuple[Lever, tuple[Change, ...]]]:
    """The levers that apply, the most helpful first; what takes no machines comes before what does."""
    order = sorted(LEVERS, key=lambda lever: (not lever.is_configuration, -round(lever.share(situation) * _STEPS)))
    for lever in order:
        changes = tuple(lever.proposes(situation)) if lever.share(situation) > NOTICED else ()
        if changes:
            yield lever, changes
