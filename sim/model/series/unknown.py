"""Values that mean "unknown" in the reports of Flink and its exporters.

    -1                      not acknowledged, not ended (REST API), no committed offset (kafka-exporter), no metric yet
    Long.MIN_VALUE          no watermark yet
    Long.MAX_VALUE          never: an interval that is not set; the watermark at the end of the input
    NaN, +Inf, -Inf, ""     a metric that cannot be computed, such as busyTimeMsPerSecond of a legacy source

A 0 is a known number.  Only as a time since 1970 it means "unknown", because no job ran in 1970.
"""

from __future__ import annotations

from fractions import Fraction

_MAX_KNOWN = 2**62
"""Larger values mean "never".  They are half of Long.MAX_VALUE or more, because Flink divides it, and doubles round it."""


def is_known(value: object) -> bool:
    """Return whether a value from outside is a number that does not mean "unknown".

    The result is False for -1, NaN, infinities, values near Long.MIN_VALUE or Long.MAX_VALUE, texts and booleans.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float, Fraction)):
        return False
    return -_MAX_KNOWN < value < _MAX_KNOWN and value != -1  # comparisons with NaN are False
