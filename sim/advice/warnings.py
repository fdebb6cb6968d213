"""What the user should know before and after a change: recovery from the other kind of failure, what to watch, when to revert."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from sim.advice.file_runs import advised_point
from sim.advice.settings import make_candidate
from sim.advice.trials import TASK, is_lost_silently
from sim.jobs.evidence.what_ifs import factors_of
from sim.model.faults import Restart
from sim.model.units import parse_duration
from sim.protocol.recovery import added_ns
from sim.results.formats import bytes_text, ms_text, per_second_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sim.advice.candidates import CandidateSearch
    from sim.advice.judgement import Limits, Setting
    from sim.jobs.evidence.what_ifs import Kind
    from sim.model.scenario import Backtest, Scenario


# ---- Recovery from the failure that trials do not judge: a failing task, or a lost TaskManager.

_GIVES_UP = "the restart strategy gives up before there are slots"


def judged(search: CandidateSearch) -> str:
    """Return the label of the recovery that is judged."""
    if search.bench.failure == TASK:
        return "recovery, a task failing"
    return "recovery, machine silent" if is_lost_silently(search.scenario) else "recovery, task manager lost"


class OtherFailure(NamedTuple):
    """The recovery from the failure by which the limit is not judged."""

    short: str  # a line of the overview
    sentence: str
    data: dict[str, Any]  # for JSON
    breaks: bool = False  # it may exceed the limit


def other_failure(search: CandidateSearch, chosen: Setting) -> OtherFailure | None:
    """Return the recovery from the failure by which the limit is not judged, or None if it is not known (`lost_task_manager`)."""
    if search.bench.failure == TASK:
        setting = _without_local_copy(search, chosen)
        scenario = search.bench.load({**search.bench.common, **advised_point(search, chosen)})
        if setting is None:
            short = "a lost task manager has no local copy: not judged (--failure task-manager)"
            sentence = (
                "Recovery is judged of a failing task, which reads a local copy of its state. A lost task manager takes its copy with "
                "it: how long that recovery takes is not judged; --failure task-manager does."
            )
            return OtherFailure(short, sentence, {"recovery_ms": None})
        lost = lost_task_manager(scenario, setting, search.limits)
        if lost is None or setting.name == chosen.name:
            return lost
        without = f"It takes its local copy with it: {ms_text(setting.recovery_ms)} are without one."
        return lost._replace(sentence=f"{lost.sentence} {without}")
    slots_ms, recovery_ms = search.slots_ms(chosen.name), search.failing_task_ms.get(chosen.name)
    today, restart = search.current_candidate, search.bench.with_setting(search.candidate_of(chosen.name)).restart
    rescales = restart.scheduler == "adaptive"
    is_spare = restart.replacement == Restart().replacement  # nothing is said about what replaces a lost one
    if today is None or today.name == chosen.name:
        return failing_task(slots_ms, recovery_ms, is_spare=is_spare, rescales=rescales)
    gives_up = search.slots_ms(today.name) is None
    before_ms = search.failing_task_ms.get(today.name)
    return failing_task(slots_ms, recovery_ms, before_ms, today_gives_up=gives_up, is_spare=is_spare, rescales=rescales)


def _without_local_copy(search: CandidateSearch, chosen: Setting) -> Setting | None:
    """Return the chosen setting without local recovery, as it recovers from a lost TaskManager; None: it has not run."""
    candidate = search.candidate_of(chosen.name)
    if not search.bench.with_setting(candidate).checkpoint.state.local_recovery:
        return chosen
    others = tuple(change for change in candidate.changes if "checkpoint.local-recovery" not in change.point)
    return search.setting(
        make_candidate(search.scenario, candidate.interval_ns, candidate.barriers, others).name
        if others != candidate.changes
        else None
    )


def failing_task(
    slots_ms: tuple[float, float] | None,
    recovery_ms: float | None = None,
    today_ms: float | None = None,
    *,
    today_gives_up: bool = False,
    is_spare: bool = False,
    rescales: bool = False,
) -> OtherFailure:
    """Return the recovery from a failing task, for the case that the limit is judged by the loss of a TaskManager.

    `slots_ms`: (min, max) time [ms] without slots after that loss; None: the job may fail permanently.  `recovery_ms`,
    `today_ms`: recovery from a failing task with the chosen and with the current setting; None: not run, or nothing
    changes.  `today_gives_up`: the current restart strategy may give up before there are slots.  `is_spare`: a TaskManager
    with free slots is assumed, though the cluster has to start one.  `rescales`: the job goes on with the slots that are left.
    """
    short = until = _GIVES_UP
    if slots_ms is not None:
        least, most = map(ms_text, slots_ms)
        after = least if least == most else f"{least} to {most}"
        short, until = (
            f"slots after {after}",
            f"{after} until there are slots{'' if least == most else ', as heartbeats happen to fall'}",
        )
        if rescales:
            short, until = f"all slots after {after}", f"{until}; it goes on with those that are left"
    sentence = f"Recovery is judged of a lost task manager: {until}."
    if is_spare and slots_ms is not None:
        short += ", if one is spare"
        sentence += (
            " Assumed: another one has free slots (in a standalone cluster nobody starts one); restart.replacement says how long a new "
            "one takes to start."
        )
    if today_gives_up:
        sentence += f" Today it fails the job: {_GIVES_UP}."
    if recovery_ms is not None:
        before, today = ("", "") if today_ms is None else (f"{ms_text(today_ms)} -> ", f" (today {ms_text(today_ms)})")
        within = f"recovers in {ms_text(recovery_ms)}"
        recovers = within if math.isfinite(recovery_ms) else "does not recover within its trial"
        short += f"; a failing task: {before}{ms_text(recovery_ms)}"
        sentence += f" A failing task, whose slots stay, {recovers}{today}."
    times = {"slots_ms": slots_ms, "recovery_ms": recovery_ms, "today_ms": today_ms, "today_gives_up": today_gives_up}
    return OtherFailure(short, sentence, times)


def lost_task_manager(scenario: Scenario, setting: Setting, limits: Limits) -> OtherFailure | None:
    """Return the recovery from the loss of a TaskManager, for the case that the limit is judged by a failing task.

    It takes longer by the time without slots, and by the time to catch up with the records that arrive meanwhile.  None if
    recovery has no limit, or a trial did not recover.
    """
    if limits.recovery_ms is None or not math.isfinite(setting.recovery_ms):
        return None
    overheads = scenario.overheads
    added = added_ns(scenario.restart, fail_ns=overheads.fail_ns, restart_ns=overheads.restart_ns)
    # factor by which arriving records slow down catching up
    slower = max(setting.recovery_ms / setting.again_ms, 1.0) if setting.again_ms > 0 else 1.0
    return added_outage(
        setting.recovery_ms,
        None if added is None else (added[0] / 1e6 * slower, added[1] / 1e6 * slower),
        limits.recovery_ms,
    )


def added_outage(recovery_ms: float, added_ms: tuple[float, float] | None, limit_ms: float) -> OtherFailure:
    """Return a recovery that takes longer by a range (min, max) [ms], compared with its limit; None: the job may fail permanently."""
    breaks = added_ms is None or recovery_ms + added_ms[1] > limit_ms
    times = {"recovery_ms": recovery_ms, "added_ms": added_ms, "limit_ms": limit_ms, "breaks_limit": breaks}
    judged = "Recovery is judged of a failing task, whose slots stay."
    if added_ms is None:
        short = "judged of a failing task; a lost task manager may fail the job"
        sentence = f"{judged} A lost task manager may fail the job for good: the restart strategy gives up."
        return OtherFailure(short, sentence, times, breaks)
    added = " to ".join(map(ms_text, added_ms))
    sums = " to ".join(ms_text(recovery_ms + ms) for ms in added_ms)
    where = f"{'beyond' if breaks else 'within'} {ms_text(limit_ms)}"
    sentence = (
        f"{judged} A lost task manager adds {added}, until there are slots and what arrives by then is caught up: "
        f"{ms_text(recovery_ms)} would become {sums}, {where}."
    )
    return OtherFailure(f"lost task manager: +{added}: {sums}, {where}", sentence, times, breaks)


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
