"""Values that stand for "unknown" in what Flink and its exporters report.  The one place that tells them from numbers.

    -1                      no acknowledgement yet, no end, no offset committed (REST API, kafka-exporter), no metric yet
    Long.MIN_VALUE          no watermark yet
    Long.MAX_VALUE          never: an interval that is not set, the watermark after the end
    NaN, +Inf, -Inf, ""     a metric that cannot be computed, such as busyTimeMsPerSecond of a legacy source

A 0 is a number, except for an epoch: no time of a job is in 1970.
"""

from __future__ import annotations

from fractions import Fraction

_FARTHEST = 2**62
"""Values of half of a long's range and beyond: Flink divides Long.MAX_VALUE, and doubles round it."""


def is_known(value: object) -> bool:
    """Whether a value of a foreign source is a number, and not -1, an end of the range of longs, NaN or a text."""
    if isinstance(value, bool) or not isinstance(value, (int, float, Fraction)):
        return False
    return -_FARTHEST < value < _FARTHEST and value != -1  # NaN is neither
