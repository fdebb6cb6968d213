"""Candidate settings and what is known of each: trials, chances, limits exceeded, left out."""

# What a Race holds: one row of trials per setting, refined until a choice is firm.
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

# ---- How far a setting is from the limits, so that settings with few checkpoints and with many are compared by the same thing.

COMPARED = {"checkpoint_ms": "checkpoint_p90_ms"}
"""Limited column -> the one that is compared: the longest of 106 checkpoints and the longest of 12 are unlike things."""


def excess(setting: Setting, limits: Limits) -> float:
    """By what factor the worst limit is broken: 1.2 is a fifth too much; 1 or less: limits hold, the one on checkpoints for nine in ten."""
    found = [
        getattr(setting, COMPARED.get(limit.column, limit.column)) / limit.at_most
        for limit in limits.of_means()
        if limit.at_most > 0
    ]
    if not setting.completed:
        return math.inf
    return max((value for value in found if not math.isnan(value)), default=0.0)


# ---- The chance that a setting keeps the limit on checkpoints in reality, by how predictions of such changes came out on recordings.


class Chances(NamedTuple):
    """The chances of a setting.  `kept`: the share of recorded changes like it that keep the limit; `likely_ms`: what four of five keep."""

    kept: float
    likely_ms: float


def chances(race: CandidateSearch, setting: Setting) -> Chances | None:
    """The chances by the kinds of what a setting changes.  None: no such limit, no history, or no change."""
    bound_ms, value_ms = race.limits.checkpoint_ms, setting.checkpoint_ms
    is_todays = race.today is not None and setting.name == race.today.name
    if bound_ms is None or race.bench.backtest is None or not 0 < value_ms < math.inf or is_todays:
        return None
    kinds = race.kinds_of(setting.name)
    return Chances(chance(kinds, bound_ms / value_ms), value_ms * within(kinds))


# ---- What an advice did not run, and why: settings by their names, as far as they did not run for another reason.

_Name = tuple[str, str]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Settings that did not run, and the reason.

    `settings`: (interval, protocol) of each; none: `what` names them.
    """

    reason: str
    settings: tuple[_Name, ...] = ()
    what: str = ""

    def sentence(self, ran: Collection[_Name]) -> str:
        """``every 3 min and 10 min: recovery takes too long``; empty: all of them have run since."""
        left = [name for name in self.settings if name not in ran]
        if self.settings and not left:
            return ""
        return f"{_every(left, self.settings, ran) if left else self.what}: {self.reason}"


def _every(left: Collection[_Name], all_of: Collection[_Name], ran: Collection[_Name]) -> str:
    """Intervals ascending; beside those that have rows in the table, which ones these are."""
    found = []
    for interval in sorted({interval for interval, _ in left}, key=parse_duration):
        missing, own = ({protocol for other, protocol in names if other == interval} for names in (left, all_of))
        others = {protocol for other, protocol in ran if other == interval}
        if done := own - missing:
            found.append(f"{interval} ({'only ' if len(done) < len(missing) else ''}{listed(sorted(done))} ran)")
        else:
            found.append(f"{interval} without levers" if others else interval)
    return f"every {listed(found)}"


# ---- All settings of a job that ran, how often, and what they measured: all of them a few times, the promising ones more often.
#
# Means are redrawn again and again.  Today's setting and every setting that some draw chooses run more often, until
# nearly all draws choose the same one.  This is racing under common random numbers (Maron and Moore, Artificial
# Intelligence Review 11, 1997).

RACE_CONFIDENCE = 0.95
"""The race ends when this share of the draws makes the same choice."""
POSSIBLE = 0.01
"""A setting that fewer draws choose leaves the race."""
MIN_REPLICATIONS = 3
"""Replications of the settings that stay in the race: fewer give no spread."""
REPEATED = 2
"""Runs of today's setting and of the choice, where the budget has no room for more: the least that has a spread."""
REASON = 1.5
"""Where recovery has no limit, one that takes so many times as long as today's has to be worth it."""
LONGER = 4
"""A trial in which no checkpoint completed is repeated for checkpoints that take so many times as long."""
AS_NAMED = 1.1
"""A setting whose checkpoints begin at more than so many times its interval says nothing of that interval."""
COSTLY = 0.003
"""A share of throughput above the noise of a run of minutes."""
LONG_RUNS = 3
"""Each has 100 checkpoints: if none of 299 is over a limit, 99 % are below it, with 95 % confidence."""

RunTrials = Callable[[Sequence[Scenario], Sequence[Scenario]], pd.DataFrame]
"""(undisturbed runs, runs with a failure) -> the rows of these and all earlier runs."""


class NoTuning:
    """Barriers and intervals are all that is tried; `sim.advice` has the others."""

    def pull(self, race: CandidateSearch) -> None:
        """Try what else can be changed, where no barriers and no interval keep the limits."""

    def relax(self, race: CandidateSearch) -> None:
        """Try all keys of Flink that may bind at values that do not, where nothing else keeps the limits."""

    def stuck(self, race: CandidateSearch) -> str:
        """Why no barriers and no interval can keep the limits; empty: they may."""
        del race
        return ""


@dataclass
class CandidateSearch:
    """The race of all settings of a job.  `run` stores every row, so a repeated race runs nothing again."""

    bench: Bench
    limits: Limits
    mtbf_s: float
    run: RunTrials
    max_replications: int  # replications of one setting
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
        self.other_trials: dict[Trial, int] = {}  # long runs, failing tasks, changed jobs: their replications
        self.longer_ms: dict[tuple[str, str], float] = {}  # longest checkpoints of long runs
        self.long_checkpoints: dict[tuple[str, str], int] = {}
        self.failing_task_ms: dict[tuple[str, str], float] = {}  # recoveries, where a lost task manager is judged
        self._measured: Trials = {}
        self.rows = pd.DataFrame()  # of all runs of settings
        self.left_out: list[LeftOut] = []
        now_ns, self.now = todays_setting(self.scenario)
        self.today = candidate(self.scenario, now_ns, self.now) if now_ns is not None else None
        self.is_forbidden = not self.now.aligned and all(protocol.aligned for protocol in allowed(self.scenario))
        self.unbound = None if self.is_forbidden else without_binding_keys(self.scenario, self.now)

    def judged(self, trials: Trials, mtbf_s: float | None = None) -> tuple[Setting, ...]:
        """Settings by the limits of this race, and by how much predictions of its job may be off."""
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
        """For how long a lost task manager leaves tasks without slots, under a setting; None: the job may fail for good."""
        return slots_ms(self.bench.load({**self.bench.common, **self.candidate_of(name).point}))

    def recovery_range(self, name: tuple[str, str]) -> float:
        """The width of the law of a lost task manager's outage, as a share of the recovery; 0: there are enough runs to show it."""
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
        """The number of keys that each setting changes."""
        return {candidate.name: len(candidate.point) for candidate in self.runs}

    @property
    def chosen(self) -> Setting | None:
        return self.choose([setting for setting in self.settings if self.permits(setting.name)])

    def todays(self, settings: Sequence[Setting]) -> Setting | None:
        """Today's setting, as it came out; None: it is not among these, or today there are no checkpoints."""
        return next((setting for setting in settings if setting.name == self._today), None)

    @property
    def replaced(self) -> Setting | None:
        """Today's setting, where another one is advised; None: nothing changes."""
        chosen = self.chosen
        return None if chosen is None or chosen.name == self._today else self.todays(self.settings)

    def choose(self, settings: Sequence[Setting]) -> Setting | None:
        """The setting to advise of these."""
        return choose(self._within_reason(settings), self.changes)

    def _within_reason(self, settings: Sequence[Setting]) -> Sequence[Setting]:
        """Without a limit on recovery: those that recover about as fast as today's, unless another one has more room or loses notably less.

        A limit on checkpoints is no wish for an interval of many times today's.
        """
        now = self.todays(settings)
        if self.limits.recovery_ms is not None or now is None:
            return settings
        kept = [setting.recovery_ms for setting in settings if setting.keeps_limits]
        # what keeps the limits may all take longer than today's
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
        """Whether some setting keeps the limits by more than its prediction may be off."""
        chosen = self.chosen
        return chosen is not None and not chosen.tight

    def permits(self, name: tuple[str, str]) -> bool:
        """Whether the sinks of the job allow a setting: only today's may be one that they do not."""
        return name != self._today or not self.is_forbidden

    @property
    def nearest(self) -> Setting:
        """The setting nearest to the limits; among equals the one that changes least."""
        settings = [setting for setting in self.settings if self.permits(setting.name)] or self.settings
        least = min(excess(setting, self.limits) for setting in settings)
        near = [setting for setting in settings if excess(setting, self.limits) <= least * (1 + EQUAL_LOSS_RELATIVE)]
        if math.isinf(least):  # none recovers within its trial, and each would take another time
            return min(near, key=lambda setting: (not setting.completed, setting.lost, self.changes[setting.name]))
        return min(near, key=lambda setting: (self.changes[setting.name], setting.lost))

    def period_ns(self, setting: Setting) -> float:
        """The effective interval: the time from one checkpoint to the next, as long as they took in trials."""
        options = self.bench.load({**self.bench.common, **self.candidate_of(setting.name).point}).checkpoint
        p50_ms = setting.checkpoint_p50_ms
        return checkpoint_period_ns(options, p50_ms * 1e6 if math.isfinite(p50_ms) else 0.0)

    def binding_keys(self, name: tuple[str, str]) -> Point:
        """The keys that change with a setting because its interval or its barriers would have no effect under today's values."""
        own, protocol = self.candidate_of(name), self.protocols.get(name[1], self.now)
        return {key: value for key, value in own.point.items() if key in BINDING and key not in protocol.point}

    def unasked_updates(self, candidates: Iterable[Candidate]) -> list[str]:
        """The `update` keys that the file leaves out, of states of which these settings write no more than what changed."""
        scenarios = [self.bench.load({**self.bench.common, **own.point}) for own in candidates]
        return [
            key
            for key in self.bench.unasked_updates
            if any(writes_changes(own, str(path_of(key)[1])) for own in scenarios)
        ]

    def has_named_interval(self, setting: Setting) -> bool:
        """Whether checkpoints complete, and begin as often as the setting says."""
        return bool(setting.completed) and self.period_ns(setting) <= AS_NAMED * parse_duration(setting.interval)

    @property
    def cost_s(self) -> float:
        """Processing time that one checkpoint of the chosen protocol costs, at the interval where it shows best; 0: below the noise."""
        chosen = self.chosen
        alike = [setting for setting in self.settings if chosen is not None and setting.protocol == chosen.protocol]
        dearest = max(alike, key=lambda setting: setting.loss, default=None)
        if dearest is None or dearest.loss < COSTLY:
            return 0.0
        return dearest.loss * self.period_ns(dearest) / 1e9

    def choice(self, mtbf_s: float | None = None) -> Choice:
        """How firm the choice is, at this rate of failures [s between two] or at the assumed one."""
        considered = self._within_reason([setting for setting in self.settings if self.permits(setting.name)])
        trials = {setting.name: self.trials[setting.name] for setting in considered}
        patience_ms = self.bench.patience_ns / 1e6
        return redrawn(
            trials, self.limits, mtbf_s or self.mtbf_s, self.changes, patience_ms=patience_ms, margins=self.margins
        )

    def advised_at(self, mtbf_s: float) -> Setting | None:
        """The setting that would be advised at another rate of failures: the chosen one, unless redrawn runs rarely choose it there."""
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
        return chosen.runs >= min(REPEATED, self.max_replications)

    def candidate_of(self, name: tuple[str, str]) -> Candidate:
        return next(candidate for candidate in self.runs if candidate.name == name)

    def kinds_of(self, name: tuple[str, str]) -> tuple[Kind, ...]:
        """The kinds of what a setting changes of the job that was imported."""
        bench = self.bench
        imported = None if bench.backtest is None else bench.backtest.imported
        changed = bench.load({**bench.common, **self.candidate_of(name).point})
        return kinds_of(imported or bench.load(bench.common), changed)

    def replicate(self, candidates: Sequence[Candidate], replications: int) -> None:
        """Bring these candidates up to so many runs."""
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
        """How long checkpoints take, if trials were planned for shorter ones; 0: they were not.

        Trials are then longer, and their failure comes late in the effective interval.  Where no checkpoint completed,
        they may have been too short for one, unless that expires earlier.
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
        """The values of the settings that count as run, by as many replications as each has."""
        self.rows = rows
        if not self.runs:
            return
        counts = {candidate.name: count for candidate, count in self.runs.items()}
        own = zip(rows[INTERVAL], rows[PROTOCOL], rows["replication"], strict=True)
        counted = [replication < counts.get((interval, protocol), 0) for interval, protocol, replication in own]
        self._measured = self._measured_in(rows[counted], unlimited=self.unlimited)
        self._correct()

    def _scenarios(self, runs: Mapping[Candidate, int]) -> tuple[list[Scenario], list[Scenario]]:
        """(undisturbed runs, runs with a failure)."""
        trials = [(trial, count) for candidate, count in runs.items() for trial in self.bench.trials(candidate)]
        steady = [self._scenario(trial, count) for trial, count in trials if trial.kind == UNDISTURBED]
        return steady, [self._scenario(trial, count) for trial, count in trials if trial.kind == FAILURE]

    def affords_runs(self, candidates: Sequence[Candidate], replications: int, share: float) -> bool:
        """Whether a share of both bounds covers these runs."""
        return self.affords(*self._scenarios(self.runs | dict.fromkeys(candidates, replications)), share)

    def covers(self, candidates: Sequence[Candidate], replications: int, share: float, what: str) -> bool:
        """Whether a share of both bounds covers these runs.  If not, the left-out settings are noted."""
        return self.noted(what, covered=self.affords_runs(candidates, replications, share))

    def noted(self, what: str, *, covered: bool) -> bool:
        """The same answer; runs that the bounds do not cover are noted."""
        if not covered:
            self.left_out.append(LeftOut(self.lack(), what=what))
        return covered

    @property
    def given_up(self) -> list[str]:
        """What was not run, and why."""
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
        """The corrected values of these runs alone, and of the longest checkpoints of long ones."""
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
        """A setting in a changed job; None: the change does not make a scenario.

        `ahead_s`: with the state of that time.  `long`: long runs show its longest checkpoint.
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
        )

    def seen(self, name: tuple[str, str]) -> int:
        """Simulated checkpoints that a setting is judged by."""
        own = min(int(values[:, MEASURED.index("completed")].sum()) for values in self.trials[name].values())
        return own + self.long_checkpoints.get(name, 0)

    def _correct(self) -> None:
        self.trials = self._with_losses(corrected(self._measured, self.bench.backtest, self._today, self.longer_ms))

    def _with_losses(self, trials: Trials) -> Trials:
        """A job without checkpoints does not recover, nor one that a lost task manager may fail for good, however a trial came out."""
        completed, recovery = MEASURED.index("completed"), MEASURED.index("recovery_ms")
        for worlds in trials.values():
            for values in worlds.values():
                # it begins anew: the longer it ran, the longer that takes
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
        """Run today's setting and the choice twice if they have run once: a single difference has no confidence interval."""
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
        """Run the chosen setting for long where a limit is on the tail of checkpoints: a few of them show none."""
        for _ in range(len(self.runs)):  # state that grows breaks the limits of one interval after the other
            chosen = self.chosen
            if self.limits.checkpoint_ms is None or chosen is None or chosen.name in self.longer_ms:
                return
            if not self._run_for_long(chosen.name):
                return

    def fail_tasks(self) -> None:
        """Today's setting and the choice where a task fails, and a lost task manager is judged: the milder failure, and the usual one."""
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
        """The longest checkpoint of many long runs, or of one that breaks the limit already; False: the budget does not cover them."""
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
        """(the longest checkpoint of long runs of a setting [ms], infinite if one failed; how many there are in the world with fewest)."""
        rows = self.run([], scenarios)  # needs no run without checkpoints beside it
        rows = rows[(rows[TRIAL] == LONG) & (rows["status"] == "ok") & (rows["strategy"] != "none")]
        rows = rows[(rows[INTERVAL] == name[0]) & (rows[PROTOCOL] == name[1])]
        complete = (
            len(rows) and (rows["failed"] == rows["interrupted"]).all() and rows["end_to_end_max_ms"].notna().all()
        )
        count = int(rows.groupby(WORLD)["completed"].sum().min()) if len(rows) else 0
        return (float(rows["end_to_end_max_ms"].max()) if complete else math.inf), count


def finished(planned: Mapping[Candidate, int], rows: pd.DataFrame, worlds: int) -> dict[Candidate, int]:
    """How many replications of each setting have all their rows, and those without checkpoints that they are compared with."""
    complete = rows[(rows[TRIAL] == FAILURE) | rows["throughput_change"].notna() | (rows["status"] != "ok")]
    kinds = complete[complete[TRIAL].isin([UNDISTURBED, FAILURE])].groupby([INTERVAL, PROTOCOL, "replication"]).size()
    found = {}
    for setting, count in planned.items():
        has_all = [kinds.get((*setting.name, replication), 0) >= 2 * worlds for replication in range(count)]
        if done := next((place for place, is_complete in enumerate(has_all) if not is_complete), count):
            found[setting] = done
    return found
