"""Record latency from the sources to a vertex without readers, from two curves: records that have left, records that have arrived.

First in, first out, a record's time is the horizontal distance of the curves; whatever the order, the mean is the same (Little).
Curves are straight between their points.  Who counts, and when, is left to the runtime.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sim.metrics.growing_column import GrowingColumn


class Latency:
    """The latency at one vertex [ns].

    Records are counted as the vertex counts them: the records of its sources, times the copies that reach it.
    `room`: so many points may come, where that is known.
    """

    def __init__(self, now: int, emitted: float, served: float, room: int = 0) -> None:
        self._times, self._emitted, self._area = (GrowingColumn(np.float64, room + 1) for _ in range(3))
        # the area is that under the times of emission, over the records up to each point
        for curve, first in ((self._times, now), (self._emitted, emitted), (self._area, 0.0)):
            curve.extend([first])
        self._seen = float(now), served

    def means(self, times: np.ndarray, emitted: np.ndarray, served: np.ndarray, stride: int) -> np.ndarray:
        """Add points to both curves.  Returns for `stride` of them the mean over the records served since those before [ns]; -1: none."""
        then, before = np.concatenate([self._seen[:1], times[:-1]]), np.concatenate([self._seen[1:], served[:-1]])
        area = np.zeros(len(times))  # under the times of emission, over the records served since the point before
        for part in self._extended(times.astype(float), np.maximum(emitted, self._emitted.cells[0])):
            points = np.arange(len(self._times) - (part.stop - part.start), len(self._times)) + 1  # there were when each was added
            area[part] = self._emission(served[part], points) - self._emission(before[part], points)
        self._seen = float(times[-1]), float(served[-1])
        counts = served > before
        gained = np.where(counts, served - before, 0.0)
        waited = np.where(counts, (served - before) * (then + times) / 2 - area, 0.0)
        records, spent = (_one_by_one(values.reshape(-1, stride)) for values in (gained, waited))
        means: np.ndarray = np.maximum(np.divide(spent, records, out=np.full(len(records), -1.0), where=records > 0), -1.0)
        return means

    def _extended(self, times: np.ndarray, emitted: np.ndarray) -> Iterator[slice]:
        """Add points of the first curve, all up to the next restore at once; which they are.

        A source restored goes back: what it emits again leaves again, what is restored in flight left when it did.
        """
        back = emitted < np.concatenate([self._emitted.cells[-1:], emitted[:-1]])
        ends = [*np.flatnonzero(back).tolist(), len(times)]
        for begin, end in zip([0, *ends[:-1]], ends, strict=True):
            if begin < end:
                if back[begin]:
                    self._cut(float(emitted[begin]))
                self._extend(times[begin:end], emitted[begin:end])
                yield slice(begin, end)

    def _cut(self, emitted: float) -> None:
        """The curve ends at a record: behind the last point that is kept it goes on to where it is cut."""
        records, times = self._emitted.cells, self._times.cells
        kept = max(int(np.searchsorted(records, emitted, "right")), 1)
        rise, run = records[kept] - records[kept - 1], times[kept] - times[kept - 1]
        cut = times[kept - 1] + run * max(0.0, emitted - records[kept - 1]) / rise
        for curve in (self._times, self._emitted, self._area):
            curve.cut(kept)
        self._extend(np.array([cut]), np.array([emitted]))

    def _extend(self, times: np.ndarray, emitted: np.ndarray) -> None:
        time, record = (np.concatenate([curve.cells[-1:], after]) for curve, after in ((self._times, times), (self._emitted, emitted)))
        area = np.add.accumulate(np.concatenate([self._area.cells[-1:], (record[1:] - record[:-1]) * (time[:-1] + time[1:]) / 2]))
        for curve, after in ((self._times, times), (self._emitted, emitted), (self._area, area[1:])):
            curve.extend(after)

    def _emission(self, records: np.ndarray, points: np.ndarray) -> np.ndarray:
        """The area up to each record, on a curve of so many points; behind the last of them it stands still."""
        times, emitted, area = self._times.cells, self._emitted.cells, self._area.cells
        i = np.minimum(np.searchsorted(emitted, records, "right"), points) - 1
        after = np.minimum(i + 1, points - 1)
        rise, run = emitted[after] - emitted[i], times[after] - times[i]
        slope = np.divide(run, rise, out=np.zeros(len(i)), where=after > i)
        rest = records - emitted[i]
        found: np.ndarray = area[i] + rest * (times[i] + rest * slope / 2)
        return found


def _one_by_one(rows: np.ndarray) -> np.ndarray:
    """The sum of each row, added from left to right."""
    total = np.zeros(len(rows))
    for column in rows.T:
        total += column
    return total
