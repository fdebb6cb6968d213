"""What a Kafka consumer's own metrics show of its lag and its rate, and what a monitor sees of several consumers.

Kafka keeps such metrics in samples of 30 s, the current one and the one before (`metrics.sample.window.ms`,
`metrics.num.samples`; SampledStat).  Lag is shown as its maximum over both, so a backlog that is gone stays visible for
30 to 60 s.  A rate is what both counted, over their age (Rate#windowSize).  Samples begin when the consumer does.
Times are whole seconds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Monitor", "consumed_rate", "lag_max", "lag_seen_until"]

SAMPLE_S = 30
Series = npt.NDArray[np.float64]


def lag_max(lag: Series) -> Series:
    """`records-lag-max` in each second since the consumer began, from its lag in each second."""
    values = np.empty_like(lag)
    for begin in range(0, len(lag), SAMPLE_S):
        end, before = min(begin + SAMPLE_S, len(lag)), max(begin - SAMPLE_S, 0)
        values[begin:end] = np.maximum.accumulate(lag[before:end])[begin - before :]
    return values


def lag_seen_until(gone_s: Series) -> Series:
    """In which second `records-lag-max` ends to show a lag that was there until second `gone_s`, both since the consumer began."""
    return np.asarray(SAMPLE_S * (gone_s // SAMPLE_S + 2))


def consumed_rate(records: Series) -> Series:
    """`records-consumed-rate` in each second since the consumer began, from the records read in each second.

    The first sample counts as if a full one had gone before it.  A consumer that reads evenly shows half its rate at
    first, and all of it after 30 s.
    """
    total = np.concatenate([[0.0], np.cumsum(records)])
    second = np.arange(1, len(records) + 1)
    oldest = np.maximum(SAMPLE_S * ((second - 1) // SAMPLE_S - 1), 0)
    age = second - oldest
    return np.asarray((total[second] - total[oldest]) / np.where(age < SAMPLE_S, age + SAMPLE_S, age))


@dataclass(frozen=True, slots=True)
class Monitor:
    """Prometheus: so many consumers, each as it was when its TaskManager was last asked."""

    consumers: int = 12
    first_s: int = 1  # after it has begun a consumer is first seen by the monitor, at the soonest ...
    last_s: int = 7  # ... and at the latest

    def total(self, values: Series) -> Series:
        """The sum over consumers that all show `shown` since they began, of those that have been seen."""
        return self._seen(values)[0]

    def mean(self, values: Series) -> Series:
        """Likewise the mean; NaN: none has been seen."""
        total, seen = self._seen(values)
        return np.divide(total, seen, out=np.full(len(values), np.nan), where=seen > 0)

    def _seen(self, values: Series) -> tuple[Series, Series]:
        total, seen = np.zeros(len(values)), np.zeros(len(values))
        for late_s in np.linspace(self.first_s, self.last_s, self.consumers).round().astype(int):
            total[late_s:] += values[: max(len(values) - late_s, 0)]
            seen[late_s:] += 1
        return total, seen
