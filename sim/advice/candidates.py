"""The state of the search among candidate settings: trials, results, the choice, and what was not run.

Which candidates run, and in which order, is decided in `sim.advice.optimizer`.
"""

# State of a CandidateSearch (the parameter `search` of most functions in this package): trials of each setting, which are
# repeated until the choice is certain.
#
#   runs           Candidate -> replications          {(10 s, aligned): 3, (30 s, unaligned): 1}
#   rows           all rows of these trials           table from TrialRunner
#   _measured      name -> world -> values            a row per replication, a column per name in MEASURED
#   trials         the same, corrected by the         what `settings`, `chosen` and `choice` judge
#                  backtest and by long runs
#   longer_ms      name -> longest checkpoint         only settings that ran long
#   skipped        [Skipped(reason, settings)]        reported as not run
#
#   replicate(candidates, n) --> Bench.trials --> run --> rows --> _measure --> _correct --> trials
#         ^                                                                                    |
#         +---- replicate_until_decided: redraw means; keep today's setting and each setting  <+
#               that 1 % of the draws choose; double their runs until 95 % of the draws agree
#
# All settings run with the same random numbers and share the draws, so that effects common to all settings cancel
# (`resample_choice`).

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd

from sim.advice.judgement import (
    EQUAL_LOSS_RELATIVE,
    EQUAL_SHORTFALL,
    MEASURED,
    NOTABLE_LOSS_SHARE,
    SPREAD_RUNS,
    Choice,
    FileRun,
    Limits,
    Margins,
    Setting,
    Trials,
    choose,
    falls_behind,
    judge,
    measure,
    paired_noise,
    resample_choice,
    rows_of,
    rows_of_kind,
)
from sim.advice.settings import (
    PAUSE,
    TIMEOUT,
    Candidate,
    RareCheckpoints,
    SettingName,
    allowed_protocols,
    checkpoint_period_ns,
    make_candidate,
    sinks_of,
    todays_setting,
    writes_changes,
)
from sim.advice.trials import (
    CONFIRM_SHARE,
    FAILURE,
    FULL_BUDGET,
    INTERVAL,
    LONG,
    OUT_OF_TIME,
    PROTOCOL,
    REPEAT_SHARE,
    TASK_MANAGER,
    TRIAL,
    UNDISTURBED,
    WORLD,
    Bench,
    BudgetUsedError,
    TimeUpError,
    Trial,
    TrialRunner,
    slots_ms,
)
from sim.advice.uncertainty import (
    MIN_CHECKPOINTS_FOR_P99,
    margins,
    rare_checkpoints,
    with_corrected_durations,
    with_rare_checkpoints,
)
from sim.jobs.evidence.what_ifs import Kind, kinds_of
from sim.model.scenario import Scenario
from sim.model.schema.option_values import non_default_keys
from sim.model.schema.study import path_of
from sim.model.schema.text import ScenarioError
from sim.model.sinks import SINKS
from sim.model.text import listed
from sim.model.units import SECOND, format_duration, parse_duration
from sim.results.sweep_answers import ended
from sim.studies.sweeps.design import Point

# ---- The factor by which a setting exceeds its limits. Checkpoints are compared by p90, for which a few are enough.

COMPARED = {"checkpoint_ms": "checkpoint_p90_ms"}
"""Limited column -> column by which settings are compared.

With few checkpoints p99 is the longest one, and the longest of 106 is not comparable with the longest of 12.
"""


def excess(setting: Setting, limits: Limits) -> float:
    """Return the largest ratio of a value to its limit, or inf if no checkpoint completed.

    At 1.2 a limit is exceeded by a fifth.  At 1 or less all limits are kept.
    """
    if not setting.completed:
        return math.inf
    compared = {} if setting.ran_long else COMPARED
    ratios = [
        setting.value(compared.get(column, column)) / bound for column, bound in limits.bounds.items() if bound > 0
    ]
    return max((value for value in ratios if not math.isnan(value)), default=0.0)


# ---- Settings that were not run, and why.


@dataclass(frozen=True, slots=True)
class Skipped:
    """Settings or other trials that were not run, and the reason."""

    reason: str
    settings: tuple[SettingName, ...] = ()  # (interval, protocol) of each
    what: str = ""  # description of what was not run, used if `settings` is empty

    def sentence(self, ran: Collection[SettingName]) -> str:
        """Return e.g. ``every 3 min and 10 min: recovery takes too long``, or "" if all settings are in `ran` by now."""
        left = [name for name in self.settings if name not in ran]
        if self.settings and not left:
            return ""
        return f"{_intervals_text(left, self.settings, ran) if left else self.what}: {self.reason}"


def _intervals_text(
    left: Collection[SettingName], all_of: Collection[SettingName], ran: Collection[SettingName]
) -> str:
    """Return e.g. ``every 30 s and 3 min (only aligned ran)``: intervals in ascending order, and their settings that did run."""
    texts = []
    for interval in sorted({interval for interval, _ in left}, key=parse_duration):
        missing, planned = ({protocol for other, protocol in names if other == interval} for names in (left, all_of))
        others = {protocol for other, protocol in ran if other == interval}
        if done := planned - missing:
            texts.append(f"{interval} ({'only ' if len(done) < len(missing) else ''}{listed(sorted(done))} ran)")
        else:
            texts.append(f"{interval} without levers" if others else interval)
    return f"every {listed(texts)}"


# ---- The search. All settings run a few times, the promising ones more often.
#
# Means are redrawn from their distributions many times. The current setting, and every setting that some draw chooses, run
# again until nearly all draws choose the same setting: racing under common random numbers (Maron and Moore, Artificial
# Intelligence Review 11, 1997).

SURE_SHARE = 0.95
"""The search ends when this share of the draws makes the same choice."""
MIN_DRAWN_SHARE = 0.01
"""Settings chosen by a smaller share of the draws get no further replications."""
MIN_REPLICATIONS = 3
"""Minimum replications of the settings that may be chosen, for an estimate of their spread."""
MIN_COMPARED_RUNS = 2
"""Minimum replications of the current and the chosen setting, for a confidence interval of their difference."""
MAX_RECOVERY_RATIO = 1.5
"""Without a limit on recovery, a recovery longer than this multiple of the current one must be justified by a gain."""
LONGER_TRIAL_FACTOR = 4
"""Factor of the assumed checkpoint duration for the next trial of a setting in which no checkpoint completed."""
MAX_INTERVAL_RATIO = 1.1
"""Maximum ratio of the effective interval to the configured one for a setting that represents its interval."""
MIN_MEASURABLE_LOSS = 0.003
"""Minimum loss, as a share of throughput, that stands out from the noise of a run of some minutes."""
BURST_RATIO, MAX_SETTLING_NS = 1.2, 960 * SECOND
"""Minimum ratio of completed checkpoints to intervals that counts as a burst, and longest time to settle because of it."""
TIMEOUT_PER_LONGEST_CHECKPOINT = 2
"""Minimum ratio of the checkpoint timeout to the longest simulated checkpoint."""
MAX_CALM_SHARE = 0.95
"""Maximum busy share of a subtask with which a job clearly keeps up.  A short trial begins with idle tasks, so it shows less than there is."""
SHOWN_BY_LONG_RUNS = ("checkpoint_p50_ms", "checkpointed_bytes", "written_per_hour", "storage_cost", "restarting")
"""Values that few checkpoints show badly, in addition to p90."""
LONG_RUNS = 3
"""Number of long runs, with 100 checkpoints each.  If none of 299 checkpoints exceeds a limit, p99 is below it with 95 % confidence."""


@dataclass
class CandidateSearch:
    """All settings of one job that have run, their results, and the choice among them.

    `mtbf_s`: mean time between failures [s].  `runner` stores every row, so that a repeated search runs nothing again.
    """

    bench: Bench
    limits: Limits
    mtbf_s: float
    runner: TrialRunner
    max_replications: int  # maximum replications of one setting

    def __post_init__(self) -> None:
        self.scenario = self.bench.load(self.bench.common)
        self.unlimited = any(
            vertex.source is not None and not vertex.source.rates for vertex in self.scenario.job.vertices
        )
        self.runs: dict[Candidate, int] = {}
        # keys relaxed by `sim.advice.optimizer.relax_limiting_keys`; None: it has not run, or not to its end
        self.relaxed: tuple[str, ...] | None = None
        self.trials: Trials = {}
        self.other_trials: dict[Trial, int] = {}  # replications of long runs, failing tasks and changed jobs
        self.rare: dict[SettingName, RareCheckpoints | None] = {}  # setting -> checkpoints that its trials may not show
        self.longer_ms: dict[SettingName, float] = {}  # setting -> longest checkpoint of its long runs
        self.long_checkpoints: dict[SettingName, int] = {}  # setting -> number of checkpoints in long runs
        self.long_rows: dict[SettingName, pd.DataFrame] = {}  # setting -> rows of its long runs
        self._measured: Trials = {}
        self.file_runs: dict[SettingName, FileRun] = {}  # setting -> what its runs of the file as it is show
        self._judged_pairs: dict[tuple[SettingName, SettingName, int], tuple[Setting, ...]] = {}  # by `trials`
        self._todays_keys, self._change_counts = non_default_keys(self.scenario), dict[SettingName, int]()
        self._unfinished: set[SettingName] = set()  # settings of trials that ended before the job had caught up
        self.losing: set[SettingName] = set()  # settings that lost output in a run without a failure
        self.steady = pd.DataFrame()  # by setting: means of its undisturbed runs
        self.behind: set[SettingName] = set()  # settings with which the job falls behind
        self.rows = pd.DataFrame()  # rows of all settings
        self.skipped: list[Skipped] = []
        self.is_over = False  # whether nothing will run any more
        self.min_share = 0.0  # share of the budget that every stage may plan at least
        now_ns, self.current_barriers = todays_setting(self.scenario)
        self.current_candidate = (
            make_candidate(self.scenario, now_ns, self.current_barriers) if now_ns is not None else None
        )
        self.current_name = None if self.current_candidate is None else self.current_candidate.name
        self.is_forbidden = not self.current_barriers.aligned and all(
            protocol.aligned for protocol in allowed_protocols(self.scenario)
        )

    def judge(self, trials: Trials) -> tuple[Setting, ...]:
        """Return the settings judged by the limits and by the prediction errors of this job."""
        patience_ms = self.bench.patience_ns / 1e6
        settings = judge(trials, self.limits, self.mtbf_s, patience_ms=patience_ms, margins=self.margins)
        if trials is not self.trials:
            return settings
        return tuple(
            replace(
                setting,
                checkpoints=self.checkpoint_count(setting.name),
                ran_long=setting.name in self.longer_ms,
                rare=rare.why
                if setting.name not in self.longer_ms
                and (rare := self.rare[setting.name]) is not None
                and setting.checkpoint_ms <= rare.ms * (1 + 1e-9)  # a mean of equal values is rounded
                else "",
                is_extrapolated=setting.name in self._unfinished and math.isfinite(setting.recovery_ms),
                gives_up=self._gives_up(setting),
            )
            for setting in settings
        )

    @property
    def margins(self) -> Margins:
        """Return the prediction errors that judgements allow for (`sim.advice.uncertainty.margins`)."""
        return margins(self.bench.backtest, self.current_name, self.kinds_of, self.recovery_range)

    def slots_ms(self, name: SettingName) -> tuple[float, float] | None:
        """Return (min, max) time [ms] without slots after a lost TaskManager, or None if the job may fail permanently."""
        return slots_ms(self.bench.with_setting(self.candidate_of(name)))

    def _gives_up(self, setting: Setting) -> str:
        """Return the text on a job that the restart strategy ends, or may end, after the failure; "" if it does not."""
        if math.isfinite(setting.recovery_ms):
            return ""
        if rows_of(self.rows, setting.name, FAILURE)["job_status"].astype(str).str.startswith("FAILED").any():
            return "FAILED"
        may_end = self.bench.failure == TASK_MANAGER and self.slots_ms(setting.name) is None
        return "may fail" if may_end else ""

    def recovery_range(self, name: SettingName) -> float:
        """Return the width of the outage distribution, relative to the recovery.

        0 if trials lose no TaskManager, if recovery is not finite, or if there are enough runs to show the spread themselves.
        """
        if self.bench.failure != TASK_MANAGER or name not in self.trials:
            return 0.0
        worlds, slots = self.trials[name].values(), self.slots_ms(name)
        recovery_ms = max(float(values[:, MEASURED.index("recovery_ms")].mean()) for values in worlds)
        if slots is None or not 0 < recovery_ms < math.inf or min(map(len, worlds)) >= SPREAD_RUNS:
            return 0.0
        return (slots[1] - slots[0]) / recovery_ms

    @cached_property
    def settings(self) -> tuple[Setting, ...]:
        """All settings that have run, judged by the limits."""
        return self.judge(self.trials)

    def setting(self, name: SettingName | None) -> Setting | None:
        """Return a setting that ran, or None."""
        return next((setting for setting in self.settings if setting.name == name), None)

    @property
    def permitted(self) -> list[Setting]:
        """Return the settings that can be advised."""
        return [setting for setting in self.settings if self.permits(setting.name)]

    @property
    def changes(self) -> dict[SettingName, int]:
        """Return the number of changes of each setting (`change_count`)."""
        return {candidate.name: self.change_count(candidate) for candidate in self.runs}

    def change_count(self, candidate: Candidate) -> int:
        """Return how many keys of Flink a candidate changes, and levers that are no keys, e.g. parallelism."""
        if candidate.name not in self._change_counts:
            before, after = self._todays_keys, non_default_keys(self.bench.with_setting(candidate))
            keys = [key for key in {*before, *after} if before.get(key) != after.get(key)]
            others = [change for change in candidate.changes if not change.lever.is_configuration]
            self._change_counts[candidate.name] = len(keys) + len(others)
        return self._change_counts[candidate.name]

    @property
    def chosen(self) -> Setting | None:
        """Return the setting to advise by the results so far, or None if no permitted setting keeps the limits."""
        return self.choose(self.permitted)

    @property
    def current(self) -> Setting | None:
        """Return the current setting, or None if it has not run, or the job has no checkpoints."""
        return self.setting(self.current_name)

    @property
    def replaced(self) -> Setting | None:
        """Return the current setting if another one is advised, else None."""
        chosen = self.chosen
        return None if chosen is None or chosen.name == self.current_name else self.current

    def choose(self, settings: Sequence[Setting]) -> Setting | None:
        """Return the setting to advise among these, or None."""
        return choose(self._eligible(settings), self.changes)

    @property
    def eligible(self) -> Sequence[Setting]:
        """Return the settings from which the advised one is chosen."""
        return self._eligible(self.permitted)

    def _eligible(self, settings: Sequence[Setting]) -> Sequence[Setting]:
        """Return the settings to choose from: those that need all of their changes, unless none of these keeps the limits."""
        by_name = {setting.name: setting for setting in settings}
        needed = [
            setting
            for setting in settings
            if all(
                self._improves(setting, by_name[simpler.name])
                for simpler in self.simpler(self.candidate_of(setting.name))
                if simpler.name in by_name and simpler.name != setting.name
            )
        ]
        found = needed if any(setting.keeps_limits for setting in needed) else settings
        if self.behind:  # prefer other intervals and barrier modes if the job clearly keeps up with them
            levers = {setting.name: set(self.candidate_of(setting.name).changes) for setting in found}
            is_calm = self.steady["busiest_subtask_share"] < MAX_CALM_SHARE
            calm = [
                levers[setting.name]
                for setting in found
                if setting.keeps_limits and setting.name not in self.behind and is_calm[setting.name]
            ]
            found = [
                setting
                for setting in found
                if setting.name not in self.behind or not any(own <= levers[setting.name] for own in calm)
            ]
        if timeouts_ms := self.timeouts_ms:  # prefer settings with which a failure loses no output
            safe = [setting for setting in found if self.transactions_ms(setting) <= min(timeouts_ms.values())]
            found = safe if any(setting.keeps_limits for setting in safe) else found
        return self._within_reason(found)

    @property
    def timeouts_ms(self) -> dict[str, float]:
        """Return {sink: timeout of its transactions [ms]}."""
        commits = {vertex.name: vertex.commit for vertex in self.scenario.job.vertices}
        return {
            name: commit.transaction_timeout_ns / 1e6
            for name, commit in commits.items()
            if commit is not None and commit.transaction_timeout_ns is not None
        }

    def transactions_ms(self, setting: Setting) -> float:
        """Return for how long a transaction is open if the job fails late in an interval [ms]: interval, checkpoint and downtime."""
        down_ms = float(rows_of(self.rows, setting.name, FAILURE)["downtime_ms"].max())
        slots = self.slots_ms(setting.name) if self.bench.failure == TASK_MANAGER else None
        return self.period_ns(setting) / 1e6 + setting.longest_ms + max(down_ms, slots[1] if slots else 0.0)

    def _improves(self, setting: Setting, other: Setting) -> bool:
        """Return True if a setting is needed next to a simpler one: it is notably better where that one has too little room.

        Where that one has room, this one must lose notably less time; today's setting, and all without limits, stay in the choice.

        Only the replications that both have are compared, and what these do not tell apart is as good.
        """
        if not (lacking := {*other.breaks, *(tight.column for tight in other.tight)}):
            is_open = other.name == self.current_name or not self.limits.bounds or not other.completed
            return is_open or not other.lost <= setting.lost + NOTABLE_LOSS_SHARE
        common = min(setting.runs, other.runs)
        if (key := (setting.name, other.name, common)) not in self._judged_pairs:
            self._judged_pairs[key] = self.judge(
                {name: {world: values[:common] for world, values in self.trials[name].items()} for name in key[:2]}
            )
        mine, others = self._judged_pairs[key]
        compared = {COMPARED.get(column, column) for column in lacking}
        # the longest of few checkpoints, if it breaks a limit, may be compared with that of many, not the reverse
        if setting.ran_long or not other.ran_long:
            compared |= lacking
        return any(
            others.value(column)
            > mine.value(column) + max(mine.value(column) * EQUAL_SHORTFALL, self._noise(mine, others, column))
            for column in compared
        )

    def _noise(self, setting: Setting, other: Setting, column: str) -> float:
        """Return the difference of a value that the runs of two settings do not tell from 0, in the world where it is largest."""
        at, before, after = MEASURED.index(column), self.trials[setting.name], self.trials[other.name]
        runs = min(setting.runs, other.runs)
        with np.errstate(invalid="ignore"):  # inf - inf
            return max(paired_noise(after[world][:runs, at] - before[world][:runs, at]) for world in before)

    def simpler(self, complete: Candidate) -> Iterator[Candidate]:
        """Yield the candidate with today's interval, with today's barrier mode, and with one lever less."""
        if self.current_candidate is not None:
            yield self.at_interval(complete, self.current_candidate.interval_ns)
        yield make_candidate(self.scenario, complete.interval_ns, self.current_barriers, complete.changes)
        for i, change in enumerate(complete.changes):
            # keep RocksDB if state grows, because it will not fit on the heap
            if not (self.bench.horizon.states and any(path_of(key)[-1] == "backend" for key in change.point)):
                others = complete.changes[:i] + complete.changes[i + 1 :]
                yield make_candidate(self.scenario, complete.interval_ns, complete.barriers, others)

    def _within_reason(self, settings: Sequence[Setting]) -> Sequence[Setting]:
        """Return the settings to choose from.

        Without a limit on recovery, only settings that recover about as fast as the current one are eligible, unless the
        best of the others has more room or loses notably less time.  Otherwise a limit on checkpoints alone could lead to
        much longer recoveries.
        """
        now = next((setting for setting in settings if setting.name == self.current_name), None)
        if self.limits.recovery_ms is not None or now is None:
            return settings
        kept = [setting.recovery_ms for setting in settings if setting.keeps_limits]
        # all settings that keep the limits may recover more slowly than the current one
        typical_ms = max(now.recovery_ms, min(kept, default=0.0))
        near = [setting for setting in settings if setting.recovery_ms <= typical_ms * MAX_RECOVERY_RATIO]
        best_near, best = choose(near, self.changes), choose(settings, self.changes)
        if (
            best_near is None
            or best is None
            or best_near.lack > best.lack * (1 + EQUAL_SHORTFALL)
            or best_near.lost > best.lost + NOTABLE_LOSS_SHARE
        ):
            return settings
        return near

    @property
    def has_margin(self) -> bool:
        """Return True if some setting keeps the limits by more than its prediction error."""
        chosen = self.chosen
        return chosen is not None and not chosen.tight

    def permits(self, name: SettingName) -> bool:
        """Return True if a setting can be advised.

        A sink may forbid those with the current barriers, transactions may time out under others, and Flink has no option
        for files written behind the barrier.
        """
        is_allowed = not self.is_forbidden or self.candidate_of(name).barriers.aligned
        return (
            is_allowed
            and name not in self.losing
            and not self.needs_async_operate(name)
            and not self.has_unseen_tail(name)
        )

    def has_unseen_tail(self, name: SettingName) -> bool:
        """Return True if a short run of a setting does not count, as long runs of others show rare checkpoints that break the limit.

        During the search that is a long run of the same protocol, at the nearest interval; durations of its rare checkpoints are
        taken to be in proportion to the median.  At the end it is any.
        """
        bound_ms, p50 = self.limits.checkpoint_ms, MEASURED.index("checkpoint_p50_ms")
        alike = [other for other in self.longer_ms if other[1] == name[1]]
        if bound_ms is None or name in self.longer_ms or (not alike and not self.is_over):
            return False
        if self.is_over:
            return self.has_broken_tail
        other = min(alike, key=lambda other: abs(math.log(parse_duration(other[0]) / parse_duration(name[0]))))
        own_ms, other_ms = (
            max(float(values[:, p50].mean()) for values in self.trials[each].values()) for each in (name, other)
        )
        longest_ms = self.longer_ms[other] * own_ms / other_ms
        return math.isfinite(longest_ms) and longest_ms > bound_ms

    @property
    def has_broken_tail(self) -> bool:
        """Return True if long runs broke the limit on checkpoints, so that settings are told apart by long runs alone."""
        bound_ms = self.limits.checkpoint_ms
        return bound_ms is not None and any(longest_ms > bound_ms for longest_ms in self.longer_ms.values())

    @property
    def loses_today(self) -> bool:
        """Return True if today's setting loses output."""
        return self.current_name in self.losing

    def needs_async_operate(self, name: SettingName) -> bool:
        """Return True if a setting needs operators that write files behind the barrier (FLINK-37375), and today's do not."""
        return self.candidate_of(name).point.get("checkpoint.operator-io") == "async"

    @property
    def nearest(self) -> Setting:
        """Return the setting that exceeds fewest limits, and these least; among equals, the one with fewest changes.

        One that costs notably more throughput than today's is nearest only if all others complete no checkpoint.
        """
        now = self.current
        loss = math.inf if now is None or self.limits.loss is not None else now.loss + NOTABLE_LOSS_SHARE
        settings = self.permitted or list(self.settings)
        cheap = [setting for setting in settings if setting.loss <= loss and setting.completed]
        settings = sorted(cheap or settings, key=_broken)
        settings = [setting for setting in settings if _broken(setting) == _broken(settings[0])]
        least = min(excess(setting, self.limits) for setting in settings)
        near = [setting for setting in settings if excess(setting, self.limits) <= least * (1 + EQUAL_LOSS_RELATIVE)]
        if math.isinf(least):  # no setting recovers within its trial
            return min(near, key=lambda setting: (not setting.completed, self.changes[setting.name], setting.lost))
        return min(near, key=lambda setting: (self.changes[setting.name], setting.lost))

    def period_ns(self, setting: Setting) -> float:
        """Return the effective interval [ns], given how long checkpoints took in trials."""
        return self._period_ns(setting.name, setting.checkpoint_p50_ms)

    def _period_ns(self, name: SettingName, p50_ms: float) -> float:
        options = self.bench.with_setting(self.candidate_of(name)).checkpoint
        return checkpoint_period_ns(options, p50_ms * 1e6 if math.isfinite(p50_ms) else 0.0)

    def own_keys(self, setting: Setting) -> Point:
        """Return today's values of keys that the trials of a setting change and the job may keep.

        Trials raise a checkpoint timeout that is short, and lower a min-pause that extends the interval.  The job keeps its own
        timeout if `TIMEOUT_PER_LONGEST_CHECKPOINT` times the longest simulated checkpoint is within it, and its own min-pause
        if the pause and that time are within the interval.
        """
        candidate, today = self.candidate_of(setting.name), self.scenario.checkpoint
        # rare checkpoints, which trials may not show, are in `checkpoint_ms`
        longest_ns = max(setting.longest_ms, setting.checkpoint_ms) * TIMEOUT_PER_LONGEST_CHECKPOINT * 1e6
        keys = Point()
        if candidate.has_longer_timeout and longest_ns <= today.timeout_ns:
            keys[TIMEOUT] = format_duration(today.timeout_ns)
        if PAUSE in candidate.binding_keys and today.min_pause_ns + longest_ns <= candidate.interval_ns:
            keys[PAUSE] = format_duration(today.min_pause_ns)
        return keys

    def unasked_updates(self, candidates: Iterable[Candidate]) -> list[str]:
        """Return the `update` keys missing from the file, for states of which these settings write only changes."""
        scenarios = [self.bench.with_setting(candidate) for candidate in candidates]
        return [
            key
            for key in self.bench.unasked_updates
            if any(writes_changes(candidate, str(path_of(key)[1])) for candidate in scenarios)
        ]

    def has_named_interval(self, setting: Setting) -> bool:
        """Return True if checkpoints complete and start at about the configured interval."""
        return bool(setting.completed) and self.period_ns(setting) <= MAX_INTERVAL_RATIO * parse_duration(
            setting.interval
        )

    @property
    def cost_s(self) -> float:
        """Return the processing time [s] lost to one checkpoint of the chosen protocol, or 0 if it is below the noise."""
        chosen = self.chosen
        alike = [setting for setting in self.settings if chosen is not None and setting.protocol == chosen.protocol]
        dearest = max(alike, key=lambda setting: setting.loss, default=None)
        if dearest is None or dearest.loss < MIN_MEASURABLE_LOSS:
            return 0.0
        return dearest.loss * self.period_ns(dearest) / 1e9

    def choice(self) -> Choice:
        """Return the choice and its certainty."""
        trials = {setting.name: self.trials[setting.name] for setting in self.eligible}
        patience_ms = self.bench.patience_ns / 1e6
        return resample_choice(
            trials, self.limits, self.mtbf_s, self.changes, patience_ms=patience_ms, margins=self.margins
        )

    @property
    def confirmed(self) -> bool:
        """Return True if more than one run shows that the choice keeps all limits with room, or if nothing is chosen.

        With a limit on checkpoints `LONG_RUNS` long runs are needed as well, because others do not show the tail.
        """
        chosen = self.chosen
        if chosen is None or chosen.tight:
            return chosen is None
        is_repeated = chosen.runs >= min(MIN_COMPARED_RUNS, self.max_replications)
        if self.limits.checkpoint_ms is not None:
            return is_repeated and self._long_replications(chosen.name) >= LONG_RUNS
        return is_repeated and self.settled

    def _long_replications(self, name: SettingName) -> int:
        """Return the number of long runs of a setting in each world."""
        rows = self.long_rows.get(name)
        return 0 if rows is None else int(rows["replication"].nunique())

    @property
    def settled(self) -> bool:
        """Return False if the chosen setting has few runs, and the choice may well change if all trials were repeated."""
        chosen = self.chosen
        return chosen is None or chosen.runs > MIN_REPLICATIONS or self.choice().same_setting >= SURE_SHARE

    def candidate_of(self, name: SettingName) -> Candidate:
        """Return the candidate of a setting that ran.  Raise StopIteration for any other."""
        return next(candidate for candidate in self.runs if candidate.name == name)

    def at_interval(self, base: Candidate, interval_ns: int) -> Candidate:
        """Return a candidate with another interval, and with the key changes that this interval needs (`Candidate.binding_keys`).

        Key changes that were only needed at the current interval are dropped.
        """
        return make_candidate(self.scenario, interval_ns, base.barriers, base.changes)

    def kinds_of(self, name: SettingName) -> tuple[Kind, ...]:
        """Return the kinds of changes (`sim.jobs.evidence.what_ifs.Kind`) from the imported job to a setting."""
        imported = None if self.bench.backtest is None else self.bench.backtest.imported
        return kinds_of(imported or self.scenario, self.bench.with_setting(self.candidate_of(name)))

    def replicate(self, candidates: Iterable[Candidate], replications: int) -> None:
        """Run candidates until each has this many replications.  Trials that turn out too short are repeated with longer ones."""
        missing = {candidate: replications for candidate in candidates if self.runs.get(candidate, 0) < replications}
        if not missing:
            return
        self._run(self.runs | missing)
        self._repeat_with_longer(self.bench.settled_ns, self._longer_settling_ns)
        self._repeat_with_longer(self.bench.durations_ns, self._longer_than_known_ns)

    def _repeat_with_longer(self, known_ns: dict[SettingName, float], longer_ns: Callable[[Setting], float]) -> None:
        """Repeat trials while a setting needs longer ones than its value in `known_ns` gives, and the budget covers them."""
        while longer := {setting.name: time_ns for setting in self.settings if (time_ns := longer_ns(setting))}:
            before = dict(known_ns)
            known_ns |= longer
            if not self._affords(self._scenarios(self.runs), REPEAT_SHARE):
                known_ns.clear()
                known_ns |= before
                return
            self._run(self.runs)

    def _longer_settling_ns(self, setting: Setting) -> float:
        """Return the time to settle [ns] with which trials must be repeated, as more checkpoints completed than are due; else 0.

        Triggers that are due during a long first upload are queued (CheckpointRequestDecider) and run in a burst behind it:
        durations and sizes of these checkpoints are not those of checkpoints at the interval.
        """
        candidate = self.candidate_of(setting.name)
        settled_ns, options = self.bench.settling_ns(candidate), self.bench.with_setting(candidate).checkpoint
        due = self.bench.observed_ns(candidate) / checkpoint_period_ns(options)
        has_burst = (rows_of(self.rows, setting.name, UNDISTURBED)["completed"] > BURST_RATIO * due + 1).any()
        return 2 * settled_ns if settled_ns < MAX_SETTLING_NS and has_burst else 0

    def _longer_than_known_ns(self, setting: Setting) -> float:
        """Return the checkpoint duration [ns] for which trials of a setting must be repeated, or 0 if they were long enough.

        If checkpoints take so long that they extend the interval, longer trials are needed to place the failure late in
        the effective interval.  If no checkpoint completed, the trials may have been too short, unless checkpoints expire
        earlier.
        """
        candidate, known_ns = self.candidate_of(setting.name), self.bench.durations_ns.get(setting.name, 0.0)
        if setting.completed:
            is_known = self.period_ns(setting) <= MAX_INTERVAL_RATIO * self.bench.period_ns(candidate)
            return 0.0 if is_known or known_ns else setting.checkpoint_p50_ms * 1e6
        longer_ns = max(LONGER_TRIAL_FACTOR * known_ns, self.bench.observed_ns(candidate))
        timeout_ns = self.bench.with_setting(candidate).checkpoint.timeout_ns
        return longer_ns if known_ns < longer_ns <= timeout_ns else 0.0

    def _run(self, planned: dict[Candidate, int]) -> None:
        """Run what is missing of these replications, and measure all settings, also if the time limit interrupts the runs."""
        try:
            rows = self.runner.run(self._scenarios(planned))
        except TimeUpError as stopped:
            self.runs = count_complete(planned, stopped.rows, len(self.bench.worlds))
            self._measure(stopped.rows)
            raise
        self.runs = planned
        self._measure(rows)
        if self.settings:  # not every run has failed
            best = self.chosen or self.nearest
            self.runner.best = (
                f"best so far: {best.name[1]}, every {best.name[0]}{'' if self.chosen else ', over a limit'}"
            )

    def _measure(self, rows: pd.DataFrame) -> None:
        """Compute the values of all settings from the replications that are complete.  `rows`: all rows of their trials."""
        self.rows = rows
        if not self.runs:
            return
        counts = {candidate.name: count for candidate, count in self.runs.items()}
        replications = zip(rows[INTERVAL], rows[PROTOCOL], rows["replication"], strict=True)
        counted = [
            replication < counts.get((interval, protocol), 0) for interval, protocol, replication in replications
        ]
        self._measured = self._measure_rows(rows[counted])
        self.rare = {name: self._rare_checkpoints(name, rows, {}) for name in self._measured}
        failed = rows[rows[TRIAL] == FAILURE]
        open_rows = failed[ended(failed, "caught_up_ms").isna()]
        self._unfinished = set(zip(open_rows[INTERVAL], open_rows[PROTOCOL], strict=True))
        losing = rows[(rows[TRIAL] == UNDISTURBED) & (rows["lost_records"] > 0)]
        self.losing = set(zip(losing[INTERVAL], losing[PROTOCOL], strict=True))
        self.steady = rows_of_kind(rows, UNDISTURBED).groupby([INTERVAL, PROTOCOL]).mean(numeric_only=True)
        self.behind = set() if self.unlimited else set(self.steady.index[falls_behind(self.steady)])
        self._correct()

    def _scenarios(self, runs: Mapping[Candidate, int]) -> list[Scenario]:
        """Return the scenarios of the trials by which settings are compared, with their replications."""
        return [
            self.bench.scenario(trial, count)
            for candidate, count in runs.items()
            for trial in self.bench.trials(candidate)
        ]

    def affords_runs(self, candidates: Iterable[Candidate], replications: int, share: float) -> bool:
        """Return True if this share of the budget, and the time limit, cover the runs."""
        return self._affords(self._scenarios(self.runs | dict.fromkeys(candidates, replications)), share)

    def _affords(self, scenarios: Sequence[Scenario], share: float) -> bool:
        return self.runner.affords(scenarios, max(share, self.min_share))

    def spend_rest(self, share: float) -> None:
        """Let every stage plan up to this share of the budget, because no later one needs what was kept for it.

        Trials that the budget did not cover so far are forgotten; those that it still does not cover are recorded again.
        """
        self.min_share = share
        self.skipped = [left for left in self.skipped if left.settings]

    def replicate_if_affordable(
        self, candidates: Sequence[Candidate], share: float, description: str = "", replications: int = 1
    ) -> bool:
        """Run candidates if this share of the budget, and the time limit, cover it.

        Otherwise record what was left out, described by `what` or else by the candidates, and return False.
        """
        if not self.affords_runs(candidates, replications, share):
            self.skip(description, () if description else candidates)
            return False
        self.replicate(candidates, replications)
        return True

    def skip(self, description: str, candidates: Iterable[Candidate] = (), reason: str = "") -> None:
        """Record that candidates, or the trials described by `what`, were not run.

        `reason`: if "", the limit of budget or time that the runner met last.
        """
        names = tuple(candidate.name for candidate in candidates)
        self.skipped.append(Skipped(reason or self.runner.lack, names, description))

    @property
    def is_cut(self) -> bool:
        """Return True if the time limit ended the search early, so that the same command goes on."""
        return any(left.reason == OUT_OF_TIME for left in self.skipped)

    @property
    def skipped_sentences(self) -> list[str]:
        """Return a sentence without full stop for everything that was not run, with the reason."""
        sentences = (left.sentence(self.trials) for left in self.skipped)
        return list(dict.fromkeys(sentence for sentence in sentences if sentence))

    def under_change(self, candidate: Candidate, extra: Point, *, long: bool = False) -> Setting | None:
        """Run a setting in a changed job and judge it.  Return None if the changed scenario is invalid.

        `extra`: the change of the job.  `long`: judge the limit on checkpoints by long runs.

        Raises BudgetUsedError if the budget does not cover the runs.
        """
        kinds = (UNDISTURBED, FAILURE, LONG) if long else (UNDISTURBED, FAILURE)
        try:
            trials = list(self.bench.trials(candidate, kinds, extra=extra))
            rows = self.run_others(trials, 1, FULL_BUDGET)
        except ScenarioError:
            return None
        if rows is None:
            raise BudgetUsedError
        longer_ms = {candidate.name: longest_checkpoint(rows, candidate.name)[0]} if long else {}
        results = with_corrected_durations(self._measure_rows(rows), self.bench.backtest, self.current_name, longer_ms)
        if not long:
            with_rare_checkpoints(results, {candidate.name: self._rare_checkpoints(candidate.name, rows, extra)})
        settings = self.judge(self._with_losses(results))
        return next((setting for setting in settings if setting.name == candidate.name), None)

    def run_others(self, trials: Sequence[Trial], replications: int, share: float) -> pd.DataFrame | None:
        """Run trials that do not count in the comparison of settings, and return their rows.

        None: this share of the budget, or the time limit, does not cover them.
        """
        scenarios = [self.bench.scenario(trial, replications) for trial in trials]
        if not self._affords(scenarios, share):
            return None
        self.other_trials |= dict.fromkeys(trials, replications)
        return self.runner.run(scenarios)

    def _measure_rows(self, rows: pd.DataFrame) -> Trials:
        return measure(
            rows,
            now=self.current_barriers.name,
            unlimited=self.unlimited,
            prices=self.bench.prices,
            observed=lambda name: self.bench.observed_ns(self.candidate_of(name)) / 1e9,
            period=lambda name, p50_ms: self._period_ns(name, p50_ms) / 1e9,
            # the first checkpoint comes at a random time, so that trials do not fail late in an interval
            has_random_start=self.scenario.cluster.profile != "2.x",
            # a compacted file is committed by the checkpoint after the one in which its parts were written
            intervals_later=int(SINKS["file-sink-compaction"] in sinks_of(self.scenario).values()),
        )

    def checkpoint_count(self, name: SettingName) -> int:
        """Return the number of simulated checkpoints that a setting is judged by, in the world with fewest."""
        short_count = min(int(values[:, MEASURED.index("completed")].sum()) for values in self.trials[name].values())
        return short_count + self.long_checkpoints.get(name, 0)

    def _correct(self) -> None:
        """Compute `trials` from `_measured`."""
        self.trials = self._with_losses(
            with_corrected_durations(self._of_long_runs(), self.bench.backtest, self.current_name, self.longer_ms)
        )
        short = {name: worlds for name, worlds in self.trials.items() if name not in self.longer_ms}
        with_rare_checkpoints(short, self.rare)
        self._judged_pairs.clear()
        self.__dict__.pop("settings", None)

    def _of_long_runs(self) -> Trials:
        """Return `_measured`, with p50, p90, bytes and costs of long runs where there are any: few checkpoints show them badly.

        Bytes and costs that only long runs show are NaN without.
        """
        found = {
            name: {world: values.copy() for world, values in worlds.items()} for name, worlds in self._measured.items()
        }
        completed, p90, *columns = map(MEASURED.index, ("completed", "checkpoint_p90_ms", *SHOWN_BY_LONG_RUNS))
        of_bytes = list(map(MEASURED.index, ("checkpointed_bytes", "written_per_hour", "storage_cost")))
        for name in filter(self._has_unknown_bytes, found):
            for values in found[name].values():
                values[:, of_bytes] = math.nan
        for name, rows in self.long_rows.items():
            for world, runs in self._measure_rows(rows.assign(**{TRIAL: UNDISTURBED}))[name].items():
                if runs[:, completed].any():
                    values, means = found[name][world], runs.mean(axis=0)
                    values[:, columns] = means[columns]
                    values[:, p90] = np.where(np.isfinite(values[:, p90]), means[p90], values[:, p90])
        return found

    def _rare_checkpoints(self, name: SettingName, rows: pd.DataFrame, extra: Point) -> RareCheckpoints | None:
        """Return the rare checkpoints of a setting in a job that is changed by `extra`.  `rows`: its undisturbed runs and others."""
        scenario = self.bench.load({**self.bench.common, **extra, **self.candidate_of(name).point})
        return rare_checkpoints(scenario, rows_of(rows, name, UNDISTURBED))

    def _with_losses(self, trials: Trials) -> Trials:
        """Set the recovery to inf where no checkpoint completed, or where the restart strategy may give up.

        Trials of such settings may have recovered by chance.
        """
        completed, recovery = MEASURED.index("completed"), MEASURED.index("recovery_ms")
        for name, worlds in trials.items():
            is_lost = self.bench.failure == TASK_MANAGER and self.slots_ms(name) is None
            for values in worlds.values():
                # without checkpoints the job restarts from the beginning, which takes longer the longer it has run
                values[(values[:, completed] == 0) | is_lost, recovery] = math.inf
        return trials

    def replicate_until_decided(self) -> None:
        """Repeat the settings that may be chosen, until the choice is certain or a limit on runs is reached."""
        while True:
            choice = self.choice()
            names = {
                choice.chosen,
                self.current_name,
                *(name for name, share in choice.others if share >= MIN_DRAWN_SHARE),
            }
            stay = [self.candidate_of(name) for name in names if name is not None and name in self.trials]
            fewest = min((self.runs[candidate] for candidate in stay), default=self.max_replications)
            if fewest >= self.max_replications or (fewest >= MIN_REPLICATIONS and choice.same_setting >= SURE_SHARE):
                return
            runs = min(max(MIN_REPLICATIONS, fewest * 2), self.max_replications)
            description = f"{runs} runs of each setting that may be the best"
            if not self.replicate_if_affordable(stay, REPEAT_SHARE, description, runs):
                return

    def _compared_candidates(self) -> list[Candidate]:
        """Return the chosen and the current setting, or [] if none is chosen."""
        chosen = self.chosen
        names = [] if chosen is None else dict.fromkeys([chosen.name, self.current_name])
        return [self.candidate_of(name) for name in names if name is not None]

    def repeat(self) -> None:
        """Run the current and the chosen setting twice if they ran once, for a confidence interval of their difference."""
        once = [
            candidate
            for candidate in self._compared_candidates()
            if self.runs[candidate] < min(MIN_COMPARED_RUNS, self.max_replications)
        ]
        if once:
            description = f"{MIN_COMPARED_RUNS} runs of the advised and of today's setting"
            self.replicate_if_affordable(once, REPEAT_SHARE, description, MIN_COMPARED_RUNS)

    def confirm(self, runs: int = LONG_RUNS) -> None:
        """Do long runs of the chosen setting if checkpoint p99 has a limit, because short runs do not show p99."""
        for _ in range(len(self.runs)):  # a long run may break the limit, and then another setting is chosen
            chosen = self.chosen
            if self.limits.checkpoint_ms is None or chosen is None:
                return
            if self._long_replications(chosen.name) >= runs:
                return
            if not self.run_for_long(chosen.name, runs):
                return

    def _has_unknown_bytes(self, name: SettingName) -> bool:
        """Return True if a setting writes changes, and has no long run.

        Checkpoints of changes alone, incremental or of a changelog, are larger now and then: files are merged, or state is
        materialized.  All short runs of a setting show the same few of them.
        """
        scenario = self.bench.with_setting(self.candidate_of(name))
        return name not in self.long_rows and any(
            writes_changes(scenario, vertex.name) for vertex in scenario.job.vertices
        )

    def measure_bytes(self) -> None:
        """Do a long run of the chosen and of the current setting if their bytes are unknown without."""
        for name in [candidate.name for candidate in self._compared_candidates()]:
            if self.checkpoint_count(name) and self._has_unknown_bytes(name) and not self.run_for_long(name, 1):
                return

    def run_for_long(self, name: SettingName, runs: int, share: float = CONFIRM_SHARE) -> bool:
        """Do up to this many long runs of a setting, and stop if the first breaks the limit.

        Return False if this share of the budget does not cover them.
        """
        trials = list(self.bench.trials(self.candidate_of(name), (LONG,)))
        for count in dict.fromkeys((1, runs)):
            rows = self.run_others(trials, count, share)
            if rows is None:
                self.skip(f"{name[1]}, every {name[0]} for {count * MIN_CHECKPOINTS_FOR_P99} checkpoints")
                return False
            self.long_rows[name] = rows_of(rows, name, LONG)
            self.longer_ms[name], self.long_checkpoints[name] = longest_checkpoint(rows, name)
            self._correct()
            setting = self.setting(name)
            if setting is not None and "checkpoint_ms" in setting.breaks:
                return True
        return True


def _broken(setting: Setting) -> float:
    """Return the number of limits that a setting exceeds, or inf if no checkpoint completes."""
    return len(setting.breaks) if setting.completed else math.inf


def longest_checkpoint(rows: pd.DataFrame, name: SettingName) -> tuple[float, int]:
    """Return (longest checkpoint of a setting's long runs [ms], number of completed checkpoints in the world with fewest).

    The longest is inf if there is no long run, or if in one of them no checkpoint completed, or one failed although the job
    did not.
    """
    rows = rows_of(rows, name, LONG)
    complete = len(rows) and (rows["failed"] == rows["interrupted"]).all() and rows["end_to_end_max_ms"].notna().all()
    count = int(rows.groupby(WORLD)["completed"].sum().min()) if len(rows) else 0
    return (float(rows["end_to_end_max_ms"].max()) if complete else math.inf), count


def count_complete(planned: Mapping[Candidate, int], rows: pd.DataFrame, worlds: int) -> dict[Candidate, int]:
    """Return {candidate: number of complete replications} of an interrupted run.  Candidates without any are left out.

    A replication is complete if its trials have run in all worlds, and so have their baselines.
    """
    own = rows[rows["strategy"] != "none"]  # without baselines
    complete = own[(own[TRIAL] == FAILURE) | own["throughput_change"].notna() | (own["status"] != "ok")]
    kinds = complete[complete[TRIAL].isin([UNDISTURBED, FAILURE])].groupby([INTERVAL, PROTOCOL, "replication"]).size()
    counts = {}
    for setting, count in planned.items():
        has_all = [kinds.get((*setting.name, replication), 0) >= 2 * worlds for replication in range(count)]
        if done := next((replication for replication, is_complete in enumerate(has_all) if not is_complete), count):
            counts[setting] = done
    return counts
