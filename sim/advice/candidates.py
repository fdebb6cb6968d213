"""The search among candidate settings: their trials, results, limits, and which ones were not run."""

# State of a CandidateSearch ("race"): trials of each setting, which are repeated until the choice is certain.
#
#   runs           Candidate -> replications          {(10 s, aligned): 3, (30 s, unaligned): 1}
#   rows           all rows of these trials           table from TrialRunner
#   _measured      name -> world -> values            a line per replication, a column per MEASURED
#   trials         the same, corrected by the         what `settings`, `chosen` and `choice` judge
#                  backtest and by long runs
#   longer_ms      name -> longest checkpoint         only settings that ran long
#   left_out       [LeftOut(reason, settings)]        reported as not run
#
#   replicate(candidates, n) --> Bench.trials --> run --> rows --> _measure --> _correct --> trials
#         ^                                                                                    |
#         +---- replicate_until_sure: redraw the means; keep today's setting and each setting <+
#               that 1 % of the draws choose; double their runs until 95 % of the draws agree
#
# All settings meet the same random numbers, and all share the draws, so effects common to all cancel
# (`redrawn`).

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import pandas as pd

from sim.advice.judgement import (
    EQUAL_LOSS_RELATIVE,
    EQUAL_SHORTFALL,
    MEASURED,
    NOTABLE_LOSS_SHARE,
    SPREAD_RUNS,
    Choice,
    Limits,
    Margins,
    Setting,
    Trials,
    choose,
    judged,
    measured,
    recoveries_ms,
    redrawn,
)
from sim.advice.settings import (
    BINDING,
    Candidate,
    Protocol,
    allowed,
    candidate,
    checkpoint_period_ns,
    todays_setting,
    without_binding_keys,
    writes_changes,
)
from sim.advice.trials import (
    ALL,
    CERTAINTY,
    FAILING_TASK,
    FAILURE,
    INTERVAL,
    LONG,
    PROTOCOL,
    RACE,
    TASK_MANAGER,
    TRIAL,
    UNDISTURBED,
    WORLD,
    Affords,
    Bench,
    BudgetUsedError,
    Lack,
    TimeUpError,
    Trial,
    any_amount,
    over_budget,
    slots_ms,
)
from sim.advice.uncertainty import MIN_CHECKPOINTS_FOR_P99, corrected, margins
from sim.jobs.evidence.what_ifs import Kind, chance, kinds_of, within
from sim.model.scenario import Scenario
from sim.model.schema.axes import path_of
from sim.model.schema.text import ScenarioError
from sim.model.text import listed
from sim.model.units import parse_duration
from sim.studies.sweeps.design import Point

# ---- The factor by which a setting exceeds its limits. Checkpoints are compared by p90, which needs few of them.

COMPARED = {"checkpoint_ms": "checkpoint_p90_ms"}
"""Limited column -> compared column: the longest of 106 checkpoints and the longest of 12 are not comparable."""


def excess(setting: Setting, limits: Limits) -> float:
    """Return the largest ratio of a value to its limit: 1.2 exceeds it by a fifth; at most 1 if all limits are kept.

    inf if no checkpoint completed.
    """
    found = [
        getattr(setting, COMPARED.get(limit.column, limit.column)) / limit.at_most
        for limit in limits.of_means()
        if limit.at_most > 0
    ]
    if not setting.completed:
        return math.inf
    return max((value for value in found if not math.isnan(value)), default=0.0)


# ---- The probability that a setting keeps the limit on checkpoints, from the accuracy of such predictions on recordings.


class Chances(NamedTuple):
    """Probabilities for a setting, from recorded changes of the same kinds."""

    kept: float  # share of recorded changes with which the limit would be kept
    likely_ms: float  # duration that is kept with four of five recorded changes


def chances(race: CandidateSearch, setting: Setting) -> Chances | None:
    """Return the chances of a setting, or None if there is no limit on checkpoints, no history, or no change."""
    bound_ms, value_ms = race.limits.checkpoint_ms, setting.checkpoint_ms
    is_todays = race.today is not None and setting.name == race.today.name
    if bound_ms is None or race.bench.backtest is None or not 0 < value_ms < math.inf or is_todays:
        return None
    kinds = race.kinds_of(setting.name)
    return Chances(chance(kinds, bound_ms / value_ms), value_ms * within(kinds))


# ---- Settings that were not run, and why.

_Name = tuple[str, str]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Settings that were not run, and the reason."""

    reason: str
    settings: tuple[_Name, ...] = ()  # (interval, protocol) of each
    what: str = ""  # description, if `settings` is empty

    def sentence(self, ran: Collection[_Name]) -> str:
        """Return ``every 3 min and 10 min: recovery takes too long``, or "" if all of them have run since."""
        left = [name for name in self.settings if name not in ran]
        if self.settings and not left:
            return ""
        return f"{_every(left, self.settings, ran) if left else self.what}: {self.reason}"


def _every(left: Collection[_Name], all_of: Collection[_Name], ran: Collection[_Name]) -> str:
    """Return the intervals in ascending order; if some of their settings ran, these are named."""
    found = []
    for interval in sorted({interval for interval, _ in left}, key=parse_duration):
        missing, own = ({protocol for other, protocol in names if other == interval} for names in (left, all_of))
        others = {protocol for other, protocol in ran if other == interval}
        if done := own - missing:
            found.append(f"{interval} ({'only ' if len(done) < len(missing) else ''}{listed(sorted(done))} ran)")
        else:
            found.append(f"{interval} without levers" if others else interval)
    return f"every {listed(found)}"


# ---- The search. All settings run a few times, the promising ones more often.
#
# Means are redrawn from their distributions many times. The current setting, and every setting that some draw chooses, run
# again until nearly all draws choose the same setting: racing under common random numbers (Maron and Moore, Artificial
# Intelligence Review 11, 1997).

RACE_CONFIDENCE = 0.95
"""The search ends when this share of the draws makes the same choice."""
POSSIBLE = 0.01
"""Settings chosen by a smaller share of the draws are not repeated."""
MIN_REPLICATIONS = 3
"""Minimum replications of the settings that may be chosen, for an estimate of their spread."""
REPEATED = 2
"""Minimum replications of the current and the chosen setting, also if the budget is nearly used."""
REASON = 1.5
"""Without a limit on recovery, a recovery longer than this multiple of the current one must be justified by a gain."""
LONGER = 4
"""Factor of the assumed checkpoint duration for the next trial of a setting in which no checkpoint completed."""
AS_NAMED = 1.1
"""Maximum ratio of the effective interval to the configured one for a setting that represents its interval."""
COSTLY = 0.003
"""Minimum share of throughput that is above the noise of a run of minutes."""
LONG_RUNS = 3
"""Long runs, with 100 checkpoints each: if none of 299 exceeds a limit, p99 is below it with 95 % confidence."""

RunTrials = Callable[[Sequence[Scenario], Sequence[Scenario]], pd.DataFrame]
"""(undisturbed runs, runs with a failure) -> rows of these and all earlier runs."""


class NoTuning:
    """Tuning of nothing but barriers and intervals.  `sim.advice.search.Levers` changes other keys too."""

    def pull(self, race: CandidateSearch) -> None:
        """Try other changes if no barrier mode and interval keeps the limits."""

    def relax(self, race: CandidateSearch) -> None:
        """Try non-binding values of all Flink keys that may bind, if nothing else keeps the limits."""

    def stuck(self, race: CandidateSearch) -> str:
        """Return why no barrier mode and interval can keep the limits, or "" if they may."""
        del race
        return ""


@dataclass
class CandidateSearch:
    """The search among all settings of a job.  `run` stores every row, so that a repeated search runs nothing again."""

    bench: Bench
    limits: Limits
    mtbf_s: float
    run: RunTrials
    max_replications: int  # maximum replications of one setting
    affords: Affords = any_amount
    lack: Lack = over_budget
    levers: NoTuning = field(default_factory=NoTuning)

    def __post_init__(self) -> None:
        self.scenario = self.bench.load(self.bench.common)
        self.unlimited = any(
            vertex.source is not None and not vertex.source.rates for vertex in self.scenario.job.vertices
        )
        self.runs: dict[Candidate, int] = {}
        self.protocols: dict[str, Protocol] = {}
        self.trials: Trials = {}
        self.other_trials: dict[Trial, int] = {}  # replications of long runs, failing tasks and changed jobs
        self.longer_ms: dict[tuple[str, str], float] = {}  # setting -> longest checkpoint of its long runs
        self.long_checkpoints: dict[tuple[str, str], int] = {}  # setting -> number of checkpoints in long runs
        self.failing_task_ms: dict[tuple[str, str], float] = {}  # setting -> recovery from a failing task
        self._measured: Trials = {}
        self.rows = pd.DataFrame()  # rows of all settings
        self.left_out: list[LeftOut] = []
        now_ns, self.now = todays_setting(self.scenario)
        self.today = candidate(self.scenario, now_ns, self.now) if now_ns is not None else None
        self.is_forbidden = not self.now.aligned and all(protocol.aligned for protocol in allowed(self.scenario))
        self.unbound = None if self.is_forbidden else without_binding_keys(self.scenario, self.now)

    def judged(self, trials: Trials, mtbf_s: float | None = None) -> tuple[Setting, ...]:
        """Return the settings judged by the limits and by the prediction errors of this job."""
        patience_ms, rate_s = self.bench.patience_ns / 1e6, self.mtbf_s if mtbf_s is None else mtbf_s
        found = judged(trials, self.limits, rate_s, patience_ms=patience_ms, margins=self.margins)
        if trials is not self.trials:
            return found
        return tuple(
            replace(setting, checkpoints=self.seen(setting.name), ran_long=setting.name in self.longer_ms)
            for setting in found
        )

    @property
    def margins(self) -> Margins:
        return margins(self.bench.backtest, self._today, self.kinds_of, self.recovery_range)

    def slots_ms(self, name: tuple[str, str]) -> tuple[float, float] | None:
        """Return (min, max) time [ms] without slots after a lost TaskManager, or None if the job may fail permanently."""
        return slots_ms(self.bench.load({**self.bench.common, **self.candidate_of(name).point}))

    def recovery_range(self, name: tuple[str, str]) -> float:
        """Return the width of the outage distribution as a share of the recovery; 0 if there are enough runs to show it."""
        if self.bench.failure != TASK_MANAGER or name not in self.trials:
            return 0.0
        worlds = self.trials[name].values()
        slots, recovery_ms = (
            self.slots_ms(name),
            max(float(values[:, MEASURED.index("recovery_ms")].mean()) for values in worlds),
        )
        if slots is None or not 0 < recovery_ms < math.inf or min(map(len, worlds)) >= SPREAD_RUNS:
            return 0.0
        return (slots[1] - slots[0]) / recovery_ms

    @property
    def settings(self) -> tuple[Setting, ...]:
        return self.judged(self.trials)

    @property
    def changes(self) -> dict[tuple[str, str], int]:
        """Return the number of keys that each setting changes."""
        return {candidate.name: len(candidate.point) for candidate in self.runs}

    @property
    def chosen(self) -> Setting | None:
        return self.choose([setting for setting in self.settings if self.permits(setting.name)])

    def todays(self, settings: Sequence[Setting]) -> Setting | None:
        """Return the current setting among `settings`, or None if it is not there, or the job has no checkpoints."""
        return next((setting for setting in settings if setting.name == self._today), None)

    @property
    def replaced(self) -> Setting | None:
        """Return the current setting if another one is advised, else None."""
        chosen = self.chosen
        return None if chosen is None or chosen.name == self._today else self.todays(self.settings)

    def choose(self, settings: Sequence[Setting]) -> Setting | None:
        """Return the setting to advise among these, or None."""
        return choose(self._within_reason(settings), self.changes)

    def _within_reason(self, settings: Sequence[Setting]) -> Sequence[Setting]:
        """Return the settings to choose from.

        Without a limit on recovery, these are the settings that recover about as fast as the current one, unless another
        one has more room or loses notably less.  A limit on checkpoints alone should not lead to much longer recoveries.
        """
        now = self.todays(settings)
        if self.limits.recovery_ms is not None or now is None:
            return settings
        kept = [setting.recovery_ms for setting in settings if setting.keeps_limits]
        # all settings that keep the limits may recover more slowly than the current one
        usual_ms = max(now.recovery_ms, min(kept, default=0.0))
        near = [setting for setting in settings if setting.recovery_ms <= usual_ms * REASON]
        own, best = choose(near, self.changes), choose(settings, self.changes)
        if (
            own is None
            or best is None
            or own.lack > best.lack * (1 + EQUAL_SHORTFALL)
            or own.lost > best.lost + NOTABLE_LOSS_SHARE
        ):
            return settings
        return near

    @property
    def has_room(self) -> bool:
        """Return True if some setting keeps the limits by more than its prediction error."""
        chosen = self.chosen
        return chosen is not None and not chosen.tight

    def permits(self, name: tuple[str, str]) -> bool:
        """Return True if the sinks of the job allow a setting.  Only the current one may be forbidden."""
        return name != self._today or not self.is_forbidden

    @property
    def nearest(self) -> Setting:
        """Return the setting that exceeds the limits least; among equals, the one with fewest changes."""
        settings = [setting for setting in self.settings if self.permits(setting.name)] or self.settings
        least = min(excess(setting, self.limits) for setting in settings)
        near = [setting for setting in settings if excess(setting, self.limits) <= least * (1 + EQUAL_LOSS_RELATIVE)]
        if math.isinf(least):  # no setting recovers within its trial
            return min(near, key=lambda setting: (not setting.completed, setting.lost, self.changes[setting.name]))
        return min(near, key=lambda setting: (self.changes[setting.name], setting.lost))

    def period_ns(self, setting: Setting) -> float:
        """Return the effective interval [ns], given how long checkpoints took in trials."""
        return self._period_ns(setting.name, setting.checkpoint_p50_ms)

    def _period_ns(self, name: tuple[str, str], p50_ms: float) -> float:
        options = self.bench.load({**self.bench.common, **self.candidate_of(name).point}).checkpoint
        return checkpoint_period_ns(options, p50_ms * 1e6 if math.isfinite(p50_ms) else 0.0)

    def binding_keys(self, name: tuple[str, str]) -> Point:
        """Return the keys that change with a setting because their current values would make it ineffective."""
        own, protocol = self.candidate_of(name), self.protocols.get(name[1], self.now)
        return {key: value for key, value in own.point.items() if key in BINDING and key not in protocol.point}

    def unasked_updates(self, candidates: Iterable[Candidate]) -> list[str]:
        """Return the `update` keys missing from the file, for states of which these settings write only changes."""
        scenarios = [self.bench.load({**self.bench.common, **own.point}) for own in candidates]
        return [
            key
            for key in self.bench.unasked_updates
            if any(writes_changes(own, str(path_of(key)[1])) for own in scenarios)
        ]

    def has_named_interval(self, setting: Setting) -> bool:
        """Return True if checkpoints complete and start at about the configured interval."""
        return bool(setting.completed) and self.period_ns(setting) <= AS_NAMED * parse_duration(setting.interval)

    @property
    def cost_s(self) -> float:
        """Return the processing time [s] lost to one checkpoint of the chosen protocol, or 0 if it is below the noise."""
        chosen = self.chosen
        alike = [setting for setting in self.settings if chosen is not None and setting.protocol == chosen.protocol]
        dearest = max(alike, key=lambda setting: setting.loss, default=None)
        if dearest is None or dearest.loss < COSTLY:
            return 0.0
        return dearest.loss * self.period_ns(dearest) / 1e9

    def choice(self, mtbf_s: float | None = None) -> Choice:
        """Return the choice and its certainty, for a mean time between failures (default: the assumed one)."""
        considered = self._within_reason([setting for setting in self.settings if self.permits(setting.name)])
        trials = {setting.name: self.trials[setting.name] for setting in considered}
        patience_ms = self.bench.patience_ns / 1e6
        return redrawn(
            trials, self.limits, mtbf_s or self.mtbf_s, self.changes, patience_ms=patience_ms, margins=self.margins
        )

    def advised_at(self, mtbf_s: float) -> Setting | None:
        """Return the setting to advise for another mean time between failures; the chosen one, unless it is unlikely there."""
        own = self.chosen
        other = self.choose([setting for setting in self.judged(self.trials, mtbf_s) if self.permits(setting.name)])
        if own is None or other is None or other.name == own.name:
            return other
        redrawn_there = self.choice(mtbf_s)
        again = (
            redrawn_there.same_setting
            if redrawn_there.chosen == own.name
            else dict(redrawn_there.others).get(own.name, 0.0)
        )
        return own if again > 1 - RACE_CONFIDENCE else other

    @property
    def confirmed(self) -> bool:
        """Return whether the choice keeps all limits with room, in more than one run.

        If a limit is on the tail of checkpoints, which short runs do not show, one long run decides.
        """
        chosen = self.chosen
        if chosen is None or chosen.tight:
            return chosen is None
        if self.limits.checkpoint_ms is not None:
            return chosen.name in self.longer_ms
        return chosen.runs >= min(REPEATED, self.max_replications) and self.settled

    @property
    def settled(self) -> bool:
        """Return False if the choice has few runs, and repeating all trials may well change it."""
        chosen = self.chosen
        return chosen is None or chosen.runs > MIN_REPLICATIONS or self.choice().same_setting >= RACE_CONFIDENCE

    def candidate_of(self, name: tuple[str, str]) -> Candidate:
        return next(candidate for candidate in self.runs if candidate.name == name)

    def kinds_of(self, name: tuple[str, str]) -> tuple[Kind, ...]:
        """Return the kinds of changes from the imported job to a setting."""
        bench = self.bench
        imported = None if bench.backtest is None else bench.backtest.imported
        changed = bench.load({**bench.common, **self.candidate_of(name).point})
        return kinds_of(imported or bench.load(bench.common), changed)

    def replicate(self, candidates: Sequence[Candidate], replications: int) -> None:
        """Run these candidates until each has this many replications."""
        missing = {candidate: replications for candidate in candidates if self.runs.get(candidate, 0) < replications}
        if not missing:
            return
        self._run(self.runs | missing)
        while longer := {
            setting.name: own for setting in self.settings if (own := self._longer_than_known_ns(setting))
        }:
            before = self.bench.durations_ns
            self.bench.durations_ns = before | longer
            if not self.affords(*self._scenarios(self.runs), CERTAINTY):
                self.bench.durations_ns = before
                return
            self._run(self.runs)

    def _longer_than_known_ns(self, setting: Setting) -> float:
        """Return the checkpoint duration [ns] for which trials must be repeated, or 0 if they were long enough.

        Longer trials place the failure late in the effective interval.  If no checkpoint completed, the trials may have
        been too short, unless checkpoints expire earlier.
        """
        own, known_ns = self.candidate_of(setting.name), self.bench.durations_ns.get(setting.name, 0.0)
        if setting.completed:
            is_known = self.period_ns(setting) <= AS_NAMED * self.bench.period_ns(own)
            return 0.0 if is_known or known_ns else setting.checkpoint_p50_ms * 1e6
        longer_ns = max(LONGER * known_ns, self.bench.observed_s(own) * 1e9)
        timeout_ns = self.bench.load({**self.bench.common, **own.point}).checkpoint.timeout_ns
        return longer_ns if longer_ns <= timeout_ns and longer_ns > known_ns else 0.0

    def _run(self, planned: dict[Candidate, int]) -> None:
        try:
            rows = self.run(*self._scenarios(planned))
        except TimeUpError as stopped:
            self.runs = finished(planned, stopped.rows, len(self.bench.worlds))
            self._measure(stopped.rows)
            raise
        self.runs = planned
        self._measure(rows)

    def _measure(self, rows: pd.DataFrame) -> None:
        """Compute the values of all settings from the replications that are complete."""
        self.rows = rows
        if not self.runs:
            return
        counts = {candidate.name: count for candidate, count in self.runs.items()}
        own = zip(rows[INTERVAL], rows[PROTOCOL], rows["replication"], strict=True)
        counted = [replication < counts.get((interval, protocol), 0) for interval, protocol, replication in own]
        self._measured = self._measured_in(rows[counted], unlimited=self.unlimited)
        self._correct()

    def _scenarios(self, runs: Mapping[Candidate, int]) -> tuple[list[Scenario], list[Scenario]]:
        """Return (undisturbed runs, runs with a failure)."""
        trials = [(trial, count) for candidate, count in runs.items() for trial in self.bench.trials(candidate)]
        steady = [self._scenario(trial, count) for trial, count in trials if trial.kind == UNDISTURBED]
        return steady, [self._scenario(trial, count) for trial, count in trials if trial.kind == FAILURE]

    def affords_runs(self, candidates: Sequence[Candidate], replications: int, share: float) -> bool:
        """Return True if a share of budget and time covers these runs."""
        return self.affords(*self._scenarios(self.runs | dict.fromkeys(candidates, replications)), share)

    def covers(self, candidates: Sequence[Candidate], replications: int, share: float, what: str) -> bool:
        """Return True if a share of budget and time covers these runs; if not, record that they were left out."""
        return self.noted(what, covered=self.affords_runs(candidates, replications, share))

    def noted(self, what: str, *, covered: bool) -> bool:
        """Return `covered`; if it is False, record that `what` was left out."""
        if not covered:
            self.left_out.append(LeftOut(self.lack(), what=what))
        return covered

    @property
    def given_up(self) -> list[str]:
        """Return sentences on what was not run, and why."""
        sentences = (left.sentence(self.trials) for left in self.left_out)
        return list(dict.fromkeys(sentence for sentence in sentences if sentence))

    def measured(
        self,
        steady: Sequence[Scenario],
        failing: Sequence[Scenario],
        *,
        unlimited: bool,
        longer_ms: Mapping[tuple[str, str], float] | None = None,
    ) -> Trials:
        """Run these scenarios and return their corrected values.  `longer_ms`: longest checkpoints of long runs."""
        found = self._measured_in(self.run(steady, failing), unlimited=unlimited)
        return self._with_losses(corrected(found, self.bench.backtest, self._today, longer_ms or {}))

    def under_change(
        self,
        candidate: Candidate,
        extra: Point,
        *,
        ahead_s: float | None = None,
        long: bool = False,
    ) -> Setting | None:
        """Run a setting in a changed job and judge it.  Returns None if the change is not a valid scenario.

        `extra`: the change.  `ahead_s`: use the state that the job has at that time.  `long`: use long runs for the limit on
        checkpoints.

        BudgetUsedError: the budget does not cover the runs.
        """
        try:
            longer = list(self.bench.long_trials(candidate, extra)) if long else []
            long_runs = [self.bench.scenario(trial) for trial in longer]
            trials = list(self.bench.trials(candidate, extra, ahead_s=ahead_s))
            steady, failing = (
                [self.bench.scenario(trial) for trial in trials if (trial.kind == UNDISTURBED) == is_steady]
                for is_steady in (True, False)
            )
        except ScenarioError:
            return None
        if not self.affords(steady, [*failing, *long_runs], ALL):
            raise BudgetUsedError
        self.other_trials |= dict.fromkeys([*trials, *longer], 1)
        longer_ms = {candidate.name: self.longest(long_runs, candidate.name)[0]} if long else {}
        unlimited = any(vertex.source is not None and not vertex.source.rates for vertex in steady[0].job.vertices)
        settings = self.judged(self.measured(steady, failing, unlimited=unlimited, longer_ms=longer_ms))
        return next((setting for setting in settings if setting.name == candidate.name), None)

    def _measured_in(self, rows: pd.DataFrame, *, unlimited: bool) -> Trials:
        return measured(
            rows,
            now=self.now.name,
            unlimited=unlimited,
            prices=self.bench.prices,
            observed=lambda name: self.bench.observed_s(self.candidate_of(name)),
            period=lambda name, p50_ms: self._period_ns(name, p50_ms) / 1e9,
        )

    def seen(self, name: tuple[str, str]) -> int:
        """Return the number of simulated checkpoints that a setting is judged by."""
        own = min(int(values[:, MEASURED.index("completed")].sum()) for values in self.trials[name].values())
        return own + self.long_checkpoints.get(name, 0)

    def _correct(self) -> None:
        self.trials = self._with_losses(corrected(self._measured, self.bench.backtest, self._today, self.longer_ms))

    def _with_losses(self, trials: Trials) -> Trials:
        """Set recoveries to inf for jobs without completed checkpoints, and for jobs that may fail permanently.

        Their trials may have recovered by chance.
        """
        completed, recovery = MEASURED.index("completed"), MEASURED.index("recovery_ms")
        for worlds in trials.values():
            for values in worlds.values():
                # the job restarts from the beginning, which takes longer the longer it has run
                values[values[:, completed] == 0, recovery] = math.inf
        for name, worlds in trials.items() if self.bench.failure == TASK_MANAGER else ():
            if self.slots_ms(name) is None:
                for values in worlds.values():
                    values[:, recovery] = math.inf
        return trials

    def _scenario(self, trial: Trial, count: int) -> Scenario:
        scenario = self.bench.scenario(trial)
        return replace(scenario, run=replace(scenario.run, replications=count))

    @property
    def _today(self) -> tuple[str, str] | None:
        return None if self.today is None else self.today.name

    def replicate_until_sure(self) -> None:
        while True:
            choice = self.choice()
            names = {choice.chosen, self._today, *(name for name, share in choice.others if share >= POSSIBLE)}
            stay = [self.candidate_of(name) for name in names if name is not None and name in self.trials]
            fewest = min((self.runs[candidate] for candidate in stay), default=self.max_replications)
            if fewest >= self.max_replications or (
                fewest >= MIN_REPLICATIONS and choice.same_setting >= RACE_CONFIDENCE
            ):
                return
            runs = min(max(MIN_REPLICATIONS, fewest * 2), self.max_replications)
            if not self.covers(stay, runs, CERTAINTY, f"{runs} runs of each setting that may be the best"):
                return
            self.replicate(stay, runs)

    def repeat(self) -> None:
        """Run the current and the chosen setting twice if they ran once, for a confidence interval of their difference."""
        chosen = self.chosen
        once = (
            []
            if chosen is None
            else [self.candidate_of(name) for name in dict.fromkeys([chosen.name, self._today]) if name is not None]
        )
        once = [candidate for candidate in once if self.runs[candidate] < min(REPEATED, self.max_replications)]
        if once and self.covers(once, REPEATED, CERTAINTY, f"{REPEATED} runs of the advised and of today's setting"):
            self.replicate(once, REPEATED)

    def confirm(self) -> None:
        """Do long runs of the chosen setting if there is a limit on checkpoint p99, which short runs do not show."""
        for _ in range(len(self.runs)):  # a long run may break the limit, and then another setting is chosen
            chosen = self.chosen
            if self.limits.checkpoint_ms is None or chosen is None or chosen.name in self.longer_ms:
                return
            if not self._run_for_long(chosen.name):
                return

    def fail_tasks(self) -> None:
        """Run the current and the chosen setting with a failing task, the more frequent and milder failure."""
        chosen = self.chosen
        if chosen is None or self.bench.failure != TASK_MANAGER:
            return
        names = [name for name in dict.fromkeys([chosen.name, self._today]) if name is not None]
        trials = [trial for name in names for trial in self.bench.failing_task(self.candidate_of(name))]
        scenarios = [self._scenario(trial, 1) for trial in trials]
        if not self.noted("the recovery from a failing task", covered=self.affords([], scenarios, RACE)):
            return
        self.other_trials |= dict.fromkeys(trials, 1)
        rows = self.run([], scenarios)
        settings = {setting.name: setting for setting in self.settings}
        for name in names:
            own = rows[(rows[TRIAL] == FAILING_TASK) & (rows[INTERVAL] == name[0]) & (rows[PROTOCOL] == name[1])]
            own = own[(own["status"] == "ok") & (own["strategy"] != "none")]
            found = recoveries_ms(own, settings[name].per_second, unlimited=self.unlimited)
            self.failing_task_ms[name] = float(found.max()) if len(found) else math.inf

    def _run_for_long(self, name: tuple[str, str]) -> bool:
        """Do long runs of a setting until one breaks the limit.  Return False if the budget does not cover them."""
        trials = list(self.bench.long_trials(self.candidate_of(name)))
        for runs in (1, LONG_RUNS):
            scenarios = [self._scenario(trial, runs) for trial in trials]
            what = f"{name[1]}, every {name[0]} for {runs * MIN_CHECKPOINTS_FOR_P99} checkpoints"
            if not self.noted(what, covered=self.affords([], scenarios, RACE)):
                return False
            self.other_trials |= dict.fromkeys(trials, runs)
            self.longer_ms[name], self.long_checkpoints[name] = self.longest(scenarios, name)
            self._correct()
            if "checkpoint_ms" in next(setting for setting in self.settings if setting.name == name).breaks:
                return True
        return True

    def longest(self, scenarios: Sequence[Scenario], name: tuple[str, str]) -> tuple[float, int]:
        """Return (longest checkpoint [ms] of long runs, inf if one failed; number of checkpoints in the world with fewest)."""
        rows = self.run([], scenarios)  # as runs with a failure, which have no baseline
        rows = rows[(rows[TRIAL] == LONG) & (rows["status"] == "ok") & (rows["strategy"] != "none")]
        rows = rows[(rows[INTERVAL] == name[0]) & (rows[PROTOCOL] == name[1])]
        complete = (
            len(rows) and (rows["failed"] == rows["interrupted"]).all() and rows["end_to_end_max_ms"].notna().all()
        )
        count = int(rows.groupby(WORLD)["completed"].sum().min()) if len(rows) else 0
        return (float(rows["end_to_end_max_ms"].max()) if complete else math.inf), count


def finished(planned: Mapping[Candidate, int], rows: pd.DataFrame, worlds: int) -> dict[Candidate, int]:
    """Return the number of replications of each setting that are complete, including their baselines."""
    complete = rows[(rows[TRIAL] == FAILURE) | rows["throughput_change"].notna() | (rows["status"] != "ok")]
    kinds = complete[complete[TRIAL].isin([UNDISTURBED, FAILURE])].groupby([INTERVAL, PROTOCOL, "replication"]).size()
    found = {}
    for setting, count in planned.items():
        has_all = [kinds.get((*setting.name, replication), 0) >= 2 * worlds for replication in range(count)]
        if done := next((place for place, is_complete in enumerate(has_all) if not is_complete), count):
            found[setting] = done
    return found
