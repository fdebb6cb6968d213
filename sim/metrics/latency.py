"""Record latency from the sources to a vertex without readers, from two curves: records that have left, records that have arrived.

First in, first out, a record's time is the horizontal distance of the curves; whatever the order, the mean is the same (Little).
Curves are straight between their points.  Who counts, and when, is left to the runtime.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right


class Latency:
    """The latency at one vertex [ns].

    Records are counted as the vertex counts them: the records of its sources, times the copies that reach it.
    """

    def __init__(self, now: int, emitted: float, served: float) -> None:
        self._times, self._emitted = array("d", [now]), array("d", [emitted])
        self._area = array("d", [0.0])  # under the times of emission, over the records up to this point
        self._seen = (now, served)
        self._waited = self._served = 0.0  # since the mean was taken last

    def count(self, now: int, emitted: float, served: float) -> None:
        """Add a point to both curves."""
        self._emit(now, emitted)
        then, before = self._seen
        if served > before:
            self._served += served - before
            self._waited += (served - before) * (then + now) / 2 - (self._emission(served) - self._emission(before))
        self._seen = (now, served)

    def mean(self) -> float:
        """Mean over the records served since the last call [ns]; -1: none."""
        mean = self._waited / self._served if self._served else -1.0
        self._waited = self._served = 0.0
        return max(mean, -1.0)

    def _emit(self, now: int, emitted: float) -> None:
        """A source restored goes back: what it emits again leaves again, what is restored in flight left when it did."""
        emitted = max(emitted, self._emitted[0])
        if emitted < self._emitted[-1]:
            kept = max(bisect_right(self._emitted, emitted), 1)  # points; behind the last of them the curve goes on to where it is cut
            rise, run = self._emitted[kept] - self._emitted[kept - 1], self._times[kept] - self._times[kept - 1]
            cut = self._times[kept - 1] + run * max(0.0, emitted - self._emitted[kept - 1]) / rise
            for curve in (self._times, self._emitted, self._area):
                del curve[kept:]
            self._extend(cut, emitted)
        self._extend(now, emitted)

    def _extend(self, time: float, emitted: float) -> None:
        self._area.append(self._area[-1] + (emitted - self._emitted[-1]) * (self._times[-1] + time) / 2)
        self._times.append(time)
        self._emitted.append(emitted)

    def _emission(self, record: float) -> float:
        """The area up to a record."""
        i = bisect_right(self._emitted, record) - 1
        rest = record - self._emitted[i]
        if i + 1 == len(self._emitted):
            return self._area[i] + rest * self._times[i]
        slope = (self._times[i + 1] - self._times[i]) / (self._emitted[i + 1] - self._emitted[i])
        return self._area[i] + rest * (self._times[i] + rest * slope / 2)
