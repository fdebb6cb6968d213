"""What to watch after a change, as predicted ranges, and when to take it back.

The rule for taking it back allows for the error of the prediction: whatever is observed within the factors is no reason to go back.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sim.analysis.number_texts import bytes_text, ms_text, per_second_text
from sim.evidence.what_ifs.factors import factors_of
from sim.units import parse_duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sim.advice.judgement import Limits, Setting
    from sim.evidence.what_ifs.changes import Kind
    from sim.model.backtest import Backtest

FACTOR = 1.66
"""Within which p50 under other barriers was predicted where a history says nothing better: all 80 settings (benchmarks/lab/what_ifs.csv).

A move to RocksDB on a real Flink was off by 1.66 (docs/your-own-job.md).
"""
FACTOR_LONGEST = 1.9
"""The same for the longest checkpoints: p90 of 95 % of these settings."""
FACTOR_UNSEEN = 3.6
"""Within which p50 and p90 were predicted where a job was moved to another backend, or put on a changelog (the same file)."""
CHECKPOINTS = 10
"""So many are watched: enough for a median, and for the longest of them, not for a 99 % quantile."""
CHANCE = 2 * 1.2533 / math.sqrt(CHECKPOINTS) / 1.2816
"""Two standard errors of a median of so many, as a multiple of the distance from p50 to p90, for logarithms that are normal."""
SLOWER = 0.05
"""Throughput below its prediction by this share is no noise: repetitions of one job differ by 1.5 %."""
SLOWER_RESCALED = 0.15
"""The same at another parallelism: recordings came out up to 13 % below their prediction."""


@dataclass(frozen=True, slots=True)
class Watch:
    """The ranges to watch after a change, in ms, bytes and records per second, and the bounds beyond which it is taken back.

    `factor`: within which p50 is predicted.  `back_*`: bounds, rounded to the side on which the error of the prediction is.
    """

    factor: float
    least_ms: float
    most_ms: float
    checkpointed_bytes: float
    per_second: float
    least_per_second: float
    back_p50_ms: float
    back_longest_ms: float | None  # None: no limit on checkpoints
    is_most: bool  # how often records rewrite state is unknown: fewer bytes are no surprise
    keeps_up: bool  # throughput is what arrives, and may become less at any time

    def watched(self) -> str:
        most = "up to " if self.is_most else ""
        return (
            f"p50 {ms_text(self.least_ms)} to {ms_text(self.most_ms)}, {most}{bytes_text(self.checkpointed_bytes)} each, "
            f"{per_second_text(self.per_second)} served"
        )

    def taken_back(self) -> str:
        longest = "" if self.back_longest_ms is None else f", longest > {ms_text(self.back_longest_ms)}"
        growing = " and lag grows" if self.keeps_up else ""
        return f"p50 of {CHECKPOINTS} > {ms_text(self.back_p50_ms)}{longest}, or under {per_second_text(self.least_per_second)}{growing}"

    def plain(self) -> dict[str, Any]:
        return {
            "factor": self.factor, "p50_ms": [self.least_ms, self.most_ms], "checkpointed_bytes": self.checkpointed_bytes,
            "per_second": self.per_second, "roll_back_below_per_second": self.least_per_second,
            "roll_back_above_p50_ms": self.back_p50_ms, "roll_back_above_longest_ms": self.back_longest_ms, "checkpoints": CHECKPOINTS,
            "roll_back_only_if_lag_grows": self.keeps_up,
        }  # fmt: skip


def watch(
    chosen: Setting,
    limits: Limits,
    backtest: Backtest | None,
    interval_s: float,
    kinds: Sequence[Kind] = (),
    *,
    keeps_up: bool = False,
    is_most: bool = False,
) -> Watch:
    """The ranges of the advised setting.

    `backtest`: its history says how far the setting is off, by the kinds of what it changes.  `keeps_up`: the job serves what arrives.
    `is_most`: the bytes are the most that is possible.
    """
    known = None if backtest is None else factors_of(backtest, kinds)
    usual = (FACTOR_UNSEEN, FACTOR_UNSEEN) if "backend" in kinds else (FACTOR, FACTOR_LONGEST)
    found = usual if known is None else (known.p50, known.p90)
    factor, factor_longest = (own if math.isfinite(own) else other for own, other in zip(found, usual, strict=True))
    p50_ms, p90_ms = chosen.checkpoint_p50_ms, chosen.checkpoint_p90_ms
    spread = max(p90_ms / p50_ms, 1.0) if p50_ms > 0 and math.isfinite(p90_ms) else 1.0
    longest_ms = limits.checkpoint_ms
    if longest_ms is not None and math.isfinite(p90_ms):  # in logarithms the longest of ten is within twice the distance of p90
        longest_ms = _up(max(longest_ms, p50_ms * spread**2 * factor_longest))
    slower = SLOWER_RESCALED if "parallelism" in kinds else SLOWER
    return Watch(
        factor, p50_ms / factor, p50_ms * factor, chosen.written_per_hour / 3600 * interval_s, chosen.per_second,
        _down(chosen.per_second * (1 - slower)), _up(p50_ms * factor * spread**CHANCE), longest_ms, is_most, keeps_up,
    )  # fmt: skip


def _up(ms: float) -> float:
    """The next duration that its text does not make shorter."""
    found = ms
    while math.isfinite(ms) and parse_duration(ms_text(found)) / 1e6 < ms:
        found *= 1.003
    return found


def _down(rate: float) -> float:
    """The next rate that has three digits."""
    digit = 10.0 ** (math.floor(math.log10(rate)) - 2) if rate > 0 else 1.0
    return math.floor(rate / digit + 1e-9) * digit
