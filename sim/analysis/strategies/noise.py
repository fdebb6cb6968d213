"""What counts as equal: durations that differ by less than repetitions of a real run do, 10 % or 100 ms.

Below about 150 ms scheduling noise prevails.
"""

from __future__ import annotations

NOISE_SHARE, NOISE_MS = 0.10, 100.0


def is_noise(slow_ms: float, fast_ms: float) -> bool:
    """Whether repetitions of a real run differ by as much."""
    return slow_ms - fast_ms < max(NOISE_MS, NOISE_SHARE * slow_ms)
