"""Which reader each record goes to, chosen once more.  Law 119.

Flink: KeyGroupStreamPartitioner, RebalancePartitioner, RescalePartitioner, GlobalPartitioner.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from sim.checkers.ledger import Numbers
from sim.checkers.story import Teller
from sim.checkers.violation import Violation, number_of
from sim.model.randomness.streams import Stream, draws

CHOSEN = "each record goes to the reader that its edge chooses"
MOST_DRAWN = 100_000
"""Records of one run whose readers are drawn again: a long run is judged by its first outputs."""


class Route(NamedTuple):
    """How an output of a task chooses among its channels.  `keys`: the stream of its keys; None: the channels take turns."""

    task: int
    channels: Numbers
    keys: Stream | None = None
    weights: Numbers | None = None  # the channel of each slice of the keys; None: equal slices
    first: int = 0  # the channel that begins, where they take turns


def chosen(route: Route, records: int) -> Numbers:
    """The number of the first `records` that belong to each channel."""
    channels = len(route.channels)
    if route.keys is None:
        turns = np.arange(channels, dtype=np.int64)
        return (records - (turns - route.first) % channels + channels - 1) // channels
    keys = draws(route.keys, records)
    if route.weights is None:
        return np.bincount(keys * channels >> 32, minlength=channels)
    return np.bincount(route.weights[keys * len(route.weights) >> 32], minlength=channels)


def astray(time_ns: int, routes: Iterable[Route], written: Numbers, teller: Teller) -> Iterator[Violation]:
    """The first output whose channels hold other numbers of records; `written`: since the job began, by channel."""
    left = MOST_DRAWN
    for route in routes:
        own = written[route.channels]
        records = int(own.sum())
        if route.keys is not None:
            if records > left:
                continue
            left -= records
        expected = chosen(route, records)
        if not np.array_equal(own, expected):
            place = int((own != expected).argmax())
            fact = f"its channel {place} has {number_of(int(own[place]), 'record')} of {records}, {expected[place]} choose it"
            yield Violation(CHOSEN, time_ns, f"an output of {teller.task(route.task)}", fact)
            return
