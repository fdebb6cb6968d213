"""What to watch after a change, as predicted ranges, and when to take it back."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sim.analysis.number_texts import bytes_text, ms_text, per_second_text
from sim.evidence.what_ifs.factors import factors_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sim.advice.judgement import Limits, Setting
    from sim.evidence.what_ifs.changes import Kind
    from sim.model.backtest import Backtest

FACTOR = 1.66
"""Within which p50 under other barriers was predicted where a history says nothing better: all 80 settings (benchmarks/what_ifs.csv).

A move to RocksDB on a real Flink was off by 1.66 (docs/your-own-job.md).
"""
CHECKPOINTS = 10
"""So many are watched: enough for a median, and for the longest of them, not for a 99 % quantile."""
SLOWER = 0.05
"""Throughput below its prediction by this share is no noise: repetitions of one job differ by 1.5 %."""


@dataclass(frozen=True, slots=True)
class Watch:
    """The ranges to watch after a change, in ms, bytes and records per second.  `factor`: within which durations are predicted."""

    factor: float
    least_ms: float
    most_ms: float
    checkpointed_bytes: float
    per_second: float
    least_per_second: float
    limit_ms: float | None

    def watched(self) -> str:
        return (
            f"p50 {ms_text(self.least_ms)} to {ms_text(self.most_ms)}, {bytes_text(self.checkpointed_bytes)} each, "
            f"{per_second_text(self.per_second)} served"
        )

    def taken_back(self) -> str:
        over = "" if self.limit_ms is None else f", longest > {ms_text(self.limit_ms)}"
        return f"if of {CHECKPOINTS} checkpoints p50 > {ms_text(self.most_ms)}{over}, or under {per_second_text(self.least_per_second)}"

    def plain(self) -> dict[str, Any]:
        return {
            "factor": self.factor, "p50_ms": [self.least_ms, self.most_ms], "checkpointed_bytes": self.checkpointed_bytes,
            "per_second": self.per_second, "roll_back_below_per_second": self.least_per_second,
            "roll_back_above_p50_ms": self.most_ms, "roll_back_above_longest_ms": self.limit_ms, "checkpoints": CHECKPOINTS,
        }  # fmt: skip


def watch(chosen: Setting, limits: Limits, backtest: Backtest | None, interval_s: float, kinds: Sequence[Kind] = ()) -> Watch:
    """The ranges of the advised setting.  `backtest`: its history says how far it is off, by the kinds of what the setting changes."""
    known = None if backtest is None else factors_of(backtest, kinds)
    factor = FACTOR if known is None or not math.isfinite(known.p50) else known.p50
    p50_ms = chosen.checkpoint_p50_ms
    return Watch(
        factor, p50_ms / factor, p50_ms * factor, chosen.written_per_hour / 3600 * interval_s, chosen.per_second,
        chosen.per_second * (1 - SLOWER), limits.checkpoint_ms,
    )  # fmt: skip
