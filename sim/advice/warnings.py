"""What the user should know before and after a change: which failure is judged, what to watch, when to revert."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sim.advice.trials import TASK, is_lost_silently
from sim.jobs.evidence.what_ifs import factors_of
from sim.model.faults import Restart
from sim.model.units import parse_duration
from sim.results.formats import bytes_text, ms_text, per_second_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sim.advice.candidates import CandidateSearch
    from sim.advice.judgement import Limits, Setting
    from sim.jobs.evidence.what_ifs import Kind
    from sim.model.scenario import Backtest


# ---- The failure by which recovery is judged.


def judged(search: CandidateSearch) -> str:
    """Return the label of the recovery that is judged."""
    if search.bench.failure == TASK:
        return "recovery, a task failing"
    return "recovery, machine silent" if is_lost_silently(search.scenario) else "recovery, task manager lost"


def slots_texts(search: CandidateSearch, chosen: Setting) -> tuple[str, str]:
    """Return (a line of the overview, a sentence) on when a lost TaskManager is replaced, or that its loss is not judged."""
    if search.bench.failure == TASK:
        return "a lost task manager is not judged (--failure task-manager)", (
            "Recovery is judged of a failing task, whose slots stay. How long it takes after a lost task manager is not judged; "
            "--failure task-manager does."
        )
    restart, slots_ms = (
        search.bench.with_setting(search.candidate_of(chosen.name)).restart,
        search.slots_ms(chosen.name),
    )
    if slots_ms is None:
        gives_up = "the restart strategy gives up before there are slots"
        return gives_up, f"Recovery is judged of a lost task manager: {gives_up}."
    after = " to ".join(dict.fromkeys(map(ms_text, slots_ms)))
    is_adaptive = restart.scheduler == "adaptive"
    short = f"{'all ' * is_adaptive}slots after {after}"
    sentence = f"Recovery is judged of a lost task manager: {after} until there are slots, as heartbeats happen to fall"
    sentence += f"{'; it goes on with those that are left' * is_adaptive}."
    if restart.replacement == Restart().replacement:  # the file does not say what replaces a lost one
        short += ", if one is spare"
        sentence += (
            " Assumed: another one has free slots (in a standalone cluster nobody starts one); restart.replacement says how long a new "
            "one takes to start."
        )
    return short, sentence


# ---- Predicted ranges to watch after a change, and bounds beyond which it should be reverted. The bounds allow for the error of
# predictions: a value within the error factor is not a reason to revert.

P50_ERROR_FACTOR = 1.66
"""Error factor of predicted p50 under other barriers, if a history does not give a better one.

All 80 settings in benchmarks/lab/what_ifs.csv are within it.  A move to RocksDB on a real Flink was off by 1.66
(docs/your-own-job.md).
"""
BACKEND_ERROR_FACTOR = 3.6
"""Error factor of predicted p50 and p90 after a change of the state backend or to the changelog (what_ifs.csv)."""
WATCHED_CHECKPOINTS = 10
"""Number of checkpoints to watch: enough for the median and the longest, not for a p99."""
MEDIAN_STANDARD_ERRORS = 2 * 1.2533 / math.sqrt(WATCHED_CHECKPOINTS) / 1.2816
"""Two standard errors of the median, as a multiple of the distance from p50 to p90, if logarithms are normally distributed."""
MAX_SHORTFALL = 0.05
"""Relative shortfall of throughput that is above the noise: repetitions of one job differ by 1.5 %."""
MAX_RESCALED_SHORTFALL = 0.15
"""SLOWER for a changed parallelism, because recordings of such changes were up to 13 % below their predictions."""


@dataclass(frozen=True, slots=True)
class Watch:
    """Predicted ranges to watch after a change, and bounds beyond which the change should be reverted.

    Bounds are rounded away from the prediction, so that their text is never stricter than they are.
    """

    factor: float  # error factor of p50
    p50_ms: tuple[float, float]
    checkpointed_bytes: float  # NaN: unknown
    per_second: float
    roll_back_below_per_second: float
    roll_back_above_p50_ms: float
    roll_back_above_longest_ms: float | None  # at least the limit on checkpoints; None: there is no such limit
    checkpoints: int
    roll_back_only_if_lag_grows: bool  # the job serves all arrivals, so that throughput may decrease with them
    is_most: bool  # bytes are an upper bound, because the rate at which records rewrite state is unknown

    def watch_text(self) -> str:
        """Return what to watch, for the overview, e.g. ``p50 325 ms to 900 ms, 1.2 GB each, 10,000/s served``."""
        least, most = map(ms_text, self.p50_ms)
        size = f", {'up to ' if self.is_most else ''}{bytes_text(self.checkpointed_bytes)} each"
        known = size if math.isfinite(self.checkpointed_bytes) else ""
        return f"p50 {least} to {most}{known}, {per_second_text(self.per_second)} served"

    def roll_back_text(self) -> str:
        """Return when to revert the change, for the overview, e.g. ``p50 of 10 > 900 ms, or under 9,500/s and lag grows``."""
        p50, longest_ms = ms_text(self.roll_back_above_p50_ms), self.roll_back_above_longest_ms
        longest = "" if longest_ms is None else f", longest > {ms_text(longest_ms)}"
        slow = f"under {per_second_text(self.roll_back_below_per_second)}"
        growing = " and lag grows" if self.roll_back_only_if_lag_grows else ""
        return f"p50 of {self.checkpoints} > {p50}{longest}, or {slow}{growing}"


def watch(
    chosen: Setting,
    limits: Limits,
    backtest: Backtest | None,
    kinds: Sequence[Kind] = (),
    *,
    keeps_up: bool = False,
    is_most: bool = False,
) -> Watch:
    """Return the ranges and bounds for the advised setting.

    `backtest`: determines the error factor of predictions, together with `kinds`, the kinds of changes.  `keeps_up`: the job
    serves all arrivals, so that a lower throughput may be due to a lower load.  `is_most`: bytes are an upper bound.
    """
    factors = None if backtest is None else factors_of(backtest, kinds)
    usual = BACKEND_ERROR_FACTOR if "backend" in kinds else P50_ERROR_FACTOR
    factor, tail_factor = (
        own if own is not None and math.isfinite(own) else usual
        for own in ((None, None) if factors is None else (factors.p50, factors.p90))
    )
    p50_ms, p90_ms = chosen.checkpoint_p50_ms, chosen.checkpoint_p90_ms
    spread = max(p90_ms / p50_ms, 1.0) if p50_ms > 0 and math.isfinite(p90_ms) else 1.0
    limit_ms, longest_ms = limits.checkpoint_ms, max(chosen.checkpoint_ms, chosen.longest_ms)
    slower = MAX_RESCALED_SHORTFALL if "parallelism" in kinds else MAX_SHORTFALL
    return Watch(
        factor,
        (p50_ms / factor, p50_ms * factor),
        chosen.checkpointed_bytes,
        chosen.per_second,
        _down(chosen.per_second * (1 - slower)),
        _up(p50_ms * factor * spread**MEDIAN_STANDARD_ERRORS),
        None if limit_ms is None else max(limit_ms, _up(longest_ms * tail_factor)),
        WATCHED_CHECKPOINTS,
        keeps_up,
        is_most,
    )


def _up(ms: float) -> float:
    """Return a duration rounded up until its text, which is rounded, is not shorter than the duration."""
    rounded_ms = ms
    while math.isfinite(ms) and parse_duration(ms_text(rounded_ms)) / 1e6 < ms:
        rounded_ms *= 1.003
    return rounded_ms


def _down(rate: float) -> float:
    """Return a rate rounded down to three digits."""
    digit = 10.0 ** (math.floor(math.log10(rate)) - 2) if rate > 0 else 1.0
    return math.floor(rate / digit + 1e-9) * digit
