"""The stages of the search: which settings run next, how often, and for how long the choice holds if state grows."""

# Call graph.  `report.py` creates a CandidateSearch and calls `run_until_decided`; every run goes through TrialRunner.
#
#   report.py --> optimizer.run_until_decided       which settings, in which order (this module)
#                   |            |
#                   |            +--> search            keys other than interval and barrier mode
#                   v                        |
#                 candidates.CandidateSearch <+     results of each setting; `chosen`, `choice`
#                   |            \
#                   |             +--> judgement    rows -> Setting: cost, limits, which one is best
#                   v
#                 trials.Bench                      setting -> scenarios: undisturbed, with a failure
#                 trials.TrialRunner                limits (`affords`), then sweeps.run -> Store -> rows
#
# The stages of `run_until_decided`, and the share of the budget up to which each may plan runs (trials.py):
#
#   try_intervals            all barrier modes at intervals from short to long       GRID       50 %
#   try_optimum              the interval that theory proposes                       REPEAT     65 %
#   round, at most AGAIN = 3:
#     try_neighbours, try_shorter    intervals next to the best one                  REPEAT     65 %
#     search.add_levers      only while no setting keeps the limits with room        LEVER      60 %
#     try_between            longer intervals, up to the one that breaks the limits  REPEAT     65 %
#     confirm                one long run, which may reject a setting at once        CONFIRM    85 %
#     replicate_until_decided    more runs of the settings that may be best          REPEAT     65 %
#     repeat                 a second run of the choice and of today's setting       REPEAT     65 %
#     confirm                long runs, if the tail of checkpoints has a limit       CONFIRM    85 %
#   search.relax_limiting_keys, if no setting keeps the limits                       REST       95 %, then all
#   search.add_levers_against_restarts, if failing checkpoints restart the job        all       100 %
#   search.simplify          what changes less than the choice                       REST       95 %
#   run_as_the_file_is       with the file's faults, savepoints and backlog         all       100 %
#   measure_bytes            a long run, if few checkpoints show bytes of changes    CONFIRM    85 %
#   fail_tasks               a failing task instead of a lost TaskManager            all       100 %
#
# If the choice is not confirmed after these rounds, they are repeated with what was kept for later stages: up to REST_SHARE
# (95 %), or CONFIRM_SHARE if growing state needs further runs, or if no setting keeps the limits yet.
#
# Another round follows only if this one tried a new setting or made a long run after `search.add_levers`, and no setting keeps
# the limits with room: a long run may break a limit that short runs kept.  Once one does, levers run for long when they
# are tried, and settings without a long run are not advised (`has_unseen_tail`).  Every row is stored, so the same command
# resumes and runs nothing twice.
#
# The budget counts work, a function of what is simulated.  A budget of CPU time would allow fewer runs on a busy
# machine, and so change the answer (trials.py).  We considered a frozen copy of the CandidateSearch for the texts and
# rejected it: every result would have two names (docs/decisions/13-what-stays-although-it-is-long.md).

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from sim.advice.candidates import CandidateSearch
from sim.advice.file_runs import MAX_FILE_RUNS, run_file
from sim.advice.horizon import Horizon
from sim.advice.judgement import EQUAL_LOSS_RELATIVE, EQUAL_LOSS_SHARE, Setting
from sim.advice.search import (
    add_levers,
    add_levers_against_events,
    add_levers_against_restarts,
    reason_for_levers,
    relax_limiting_keys,
    simplify,
)
from sim.advice.settings import (
    BETWEEN_NS,
    ROUND_INTERVALS_NS,
    BarrierSetting,
    Candidate,
    SettingName,
    allowed_protocols,
    intervals,
    make_candidate,
    neighbouring_intervals,
    with_files_after_barrier,
    writes_changes,
)
from sim.advice.texts import breaks_text, name_of
from sim.advice.trials import (
    CONFIRM_SHARE,
    GRID_SHARE,
    REPEAT_SHARE,
    REST_SHARE,
    BudgetUsedError,
    NothingRanError,
    TimeUpError,
)
from sim.model.units import format_duration, parse_duration
from sim.results.estimates import renewal
from sim.results.formats import bytes_text, ms_text

# ---- Intervals: a grid that includes the current one, the theoretical optimum, and the neighbours of the best one.
#
# Intervals are tried in ascending order, because long ones are the most expensive to simulate. The search stops at the first
# interval from which on no setting can keep the limits or save time.

MIN_EXCESS_TO_STOP = 1.15
"""Longer intervals are skipped once a limit is exceeded by this factor."""
COST_SHARE_TO_SKIP = 0.8
"""Longer intervals are skipped if already this share of the expected cost of failures exceeds the time lost by the best setting."""
MAX_REFINEMENTS = 3
"""Maximum number of times that the neighbours of the best interval are tried."""


def try_intervals(search: CandidateSearch) -> None:
    """Run every barrier mode at every interval of the grid that may keep the limits, in ascending order.

    Raises NothingRanError if every run fails.
    """
    grid = intervals(search.scenario, recovery_ms=search.limits.recovery_ms, visible_ms=search.limits.visible_ms)
    tried = _protocols(search)
    if search.current_candidate is not None:
        search.replicate([search.current_candidate], 1)
        broken = () if search.current is None else search.current.breaks
        if broken == ("loss",):  # fewer checkpoints cost less
            grid = [interval_ns for interval_ns in grid if interval_ns >= search.current_candidate.interval_ns]
        if broken and not {"recovery_ms", "visible_ms"} & set(broken):  # other barriers alone may be enough
            modes = [*tried, *([search.effective_barriers] if search.effective_barriers else [])]
            at_current_interval = [
                make_candidate(search.scenario, search.current_candidate.interval_ns, mode) for mode in modes
            ]
            search.replicate_if_affordable(at_current_interval, GRID_SHARE)
    for i, interval_ns in enumerate(grid):
        rest = [make_candidate(search.scenario, other, protocol) for other in grid[i:] for protocol in tried]
        if reason := _reason_to_skip(search, interval_ns):
            search.skip("", rest, reason)
            return
        settings = rest[: len(tried)]
        if search.effective_barriers is not None and interval_ns == search.scenario.checkpoint.interval_ns:
            settings.append(make_candidate(search.scenario, interval_ns, search.effective_barriers))
        if i and not search.affords_runs(settings, 1, GRID_SHARE):
            search.skip("", rest)
            return
        search.replicate(settings, 1)
        if not search.trials:
            raise NothingRanError(f"every run failed: {search.rows['error'].iloc[0]}")
        if reason := reason_for_levers(search):
            if left := rest[len(tried) :]:
                search.skip("", left, reason)
            return


def try_optimum(search: CandidateSearch) -> None:
    """Run the chosen setting at the interval next to the theoretical optimum (`sim.results.estimates.renewal`).

    Do nothing if the cost of checkpoints is too small to be measured, because the optimum depends on it.
    """
    chosen, cost_s = search.chosen, search.cost_s
    if chosen is None or not cost_s:
        return
    optimum_s = renewal(cost_s, search.mtbf_s)
    nearest = min(ROUND_INTERVALS_NS, key=lambda interval_ns: abs(math.log(interval_ns / 1e9 / optimum_s)))
    _run_once(search, [search.at_interval(search.candidate_of(chosen.name), nearest)])


def try_neighbours(search: CandidateSearch) -> None:
    """Run the best setting so far at the next shorter and the next longer interval, until it stays the best."""
    for _ in range(MAX_REFINEMENTS):
        if not search.settings:
            return
        best = search.chosen or search.nearest
        if not _run_once(search, _neighbours(search, search.candidate_of(best.name))):
            return
        if (search.chosen or search.nearest).name == best.name:
            return


def try_shorter(search: CandidateSearch) -> None:
    """Run ever shorter intervals while no setting keeps the limits with room.

    With shorter intervals a failure loses less work, and incremental checkpoints are smaller.
    """
    for interval_ns in neighbouring_intervals(_shortest_ns(search))[0]:
        best = search.candidate_of((search.chosen or search.nearest).name)
        if search.has_margin or best.interval_ns > _shortest_ns(search) or search.nearest.breaks == ("loss",):
            return
        if not _run_once(search, [search.at_interval(best, interval_ns)]):
            return


def try_between(search: CandidateSearch) -> bool:
    """Bisect between the chosen interval and the next longer one that does not keep the limits with room.

    An interval shorter than needed costs more checkpoints, bytes and commits.  Return True if any setting ran.
    """
    before = len(search.runs)
    while search.has_margin and (chosen := search.chosen) is not None:
        shortest, now = search.candidate_of(chosen.name), search.current
        if now is not None and (not (now.breaks or now.tight) or now.interval == chosen.interval):
            break
        broken = [search.candidate_of(other.name) for other in search.settings if other.breaks or other.tight]
        longer_ns = min(
            (
                other.interval_ns
                for other in broken
                if other.interval_ns > shortest.interval_ns
                and search.at_interval(other, shortest.interval_ns).protocol == shortest.protocol
            ),
            default=0,
        )
        between = [
            untried
            for interval_ns in BETWEEN_NS
            if shortest.interval_ns < interval_ns < longer_ns
            and (untried := search.at_interval(shortest, interval_ns)) not in search.runs
        ]
        if not _run_once(search, between[len(between) // 2 :][:1]):
            break
    return len(search.runs) > before


def _shortest_ns(search: CandidateSearch) -> int:
    """Return the shortest interval that has run [ns], or 0 if nothing has run."""
    return min((parse_duration(setting.interval) for setting in search.settings), default=0)


def _neighbours(search: CandidateSearch, base: Candidate) -> list[Candidate]:
    """Return the candidate at the next shorter and the next longer interval, without those that have run or are not worth it."""
    shorter, longer = neighbouring_intervals(base.interval_ns)
    worth = [*shorter[:1], *(other for other in longer[:1] if not _reason_to_skip(search, other))]
    return [neighbour for other in worth if (neighbour := search.at_interval(base, other)) not in search.runs]


def _run_once(search: CandidateSearch, settings: list[Candidate]) -> bool:
    """Run the settings once.  Return False if there are none, or if budget or time limit do not cover them."""
    return bool(settings) and search.replicate_if_affordable(settings, REPEAT_SHARE)


def _protocols(search: CandidateSearch) -> list[BarrierSetting]:
    """Return the barrier modes to try: those that sinks allow, and today's unless sinks forbid it.

    If operators write files before the barrier, today's mode with files written after it is added (FLINK-37375).
    """
    advised, behind = (
        allowed_protocols(search.scenario),
        with_files_after_barrier(search.scenario, search.current_barriers),
    )
    current = [search.current_barriers] if search.current_barriers not in advised and not search.is_forbidden else []
    return [*advised, *current, *([behind] if behind else [])]


def _reason_to_skip(search: CandidateSearch, interval_ns: int) -> str:
    """Return the reason to skip this interval and all longer ones, or "" if it is worth a run.

    Recovery, and the time until output is visible, grow with the interval.  So if they clearly exceed a limit at the
    longest interval so far, or if recovery costs more than the best setting loses in all, longer intervals are not worth it.
    """
    done = [setting for setting in search.settings if setting.completed and search.period_ns(setting) < interval_ns]
    if not done:
        return ""
    last = max(parse_duration(setting.interval) for setting in done)
    longest = [setting for setting in done if parse_duration(setting.interval) == last]
    for column, bound, subject in (
        ("recovery_ms", search.limits.recovery_ms, "recovery"),
        ("visible_ms", search.limits.visible_ms, "output"),
    ):
        if bound is not None and min(getattr(setting, column) for setting in longest) > MIN_EXCESS_TO_STOP * bound:
            return f"{subject} takes too long at {format_duration(last)} already"
    kept = [setting.lost for setting in done if not setting.breaks and math.isfinite(setting.lost)]
    recoveries = [
        setting.again_ms / 1e3 / search.mtbf_s / 2 * interval_ns / search.period_ns(setting) for setting in longest
    ]
    if kept and min(recoveries) * COST_SHARE_TO_SKIP > min(kept) * (1 + EQUAL_LOSS_RELATIVE) + EQUAL_LOSS_SHARE:
        return "a failure would cost more than all that fewer checkpoints save"
    return ""


# ---- Growing state: how long a setting keeps the limits, and which limit breaks first.
#
# A setting that keeps the limits at the horizon is tried with the state of ever later times until it breaks one. A setting
# that does not keep them is tried with the state of ever earlier times until it keeps all. Then the time between is bisected.

LATER, EARLIER = (2.0, 4.0, 8.0, 16.0), (0.5, 0.25, 0.125, 0.0)
"""Times that are tried, as multiples of the horizon."""
BISECTION_STEPS = 2


@dataclass(frozen=True, slots=True)
class LimitBreak:
    """The time for which a setting keeps the limits while state grows.  Times count from now."""

    setting: SettingName
    kept_s: float | None  # latest tried time at which it keeps all limits; None if it never does
    broken_s: float | None  # earliest tried time at which it breaks a limit; None if it never does
    broken: Setting | None = None  # the judged setting at `broken_s`


def predict_limit_break(search: CandidateSearch, setting: Setting | None) -> LimitBreak | None:
    """Return how long a setting keeps the limits.  None if no state grows, there are no limits, or there is no setting."""
    ahead_s, limits = search.bench.horizon.ahead_ns / 1e9, search.limits.bounds
    if not search.bench.horizon.states or not limits or setting is None:
        return None
    candidate, is_kept = search.candidate_of(setting.name), bool(setting.completed) and not setting.breaks
    so_far = LimitBreak(setting.name, ahead_s, None) if is_kept else LimitBreak(setting.name, None, ahead_s, setting)
    try:
        for share in LATER if is_kept else EARLIER:
            so_far = _tried(search, candidate, share * ahead_s, so_far)
            if so_far.kept_s is not None and so_far.broken_s is not None:
                break
        for _ in range(BISECTION_STEPS):
            if so_far.kept_s is not None and so_far.broken_s is not None:
                so_far = _tried(search, candidate, (so_far.kept_s + so_far.broken_s) / 2, so_far)
    except BudgetUsedError:
        search.skip("the times at which growing state breaks a limit")
    return so_far


def _tried(search: CandidateSearch, candidate: Candidate, seconds: float, so_far: LimitBreak) -> LimitBreak:
    """Return `so_far`, updated by a trial with the state in this many seconds, or unchanged if that does not count."""
    setting = search.under_change(candidate, {}, ahead_s=seconds)
    if setting is None:
        return so_far
    if not setting.completed and any(
        writes_changes(search.bench.with_setting(candidate), state.vertex) for state in search.bench.horizon.states
    ):
        # the trial ended during its first upload, of the full state; a job whose state grew has uploaded most of it before
        return so_far
    if not setting.keeps_limits:
        return LimitBreak(candidate.name, so_far.kept_s, seconds, setting)
    return LimitBreak(candidate.name, seconds, so_far.broken_s, so_far.broken)


def limit_break_text(limit_break: LimitBreak | None) -> str:
    """Return until when a setting keeps the limits, or "" if it does not, or is not known to break them."""
    if limit_break is None or limit_break.kept_s is None or limit_break.broken_s is None:
        return ""
    kept, broken = ms_text(1e3 * limit_break.kept_s), ms_text(1e3 * limit_break.broken_s)
    return f"keeps the limits until some time between {kept} and {broken} from now"


def limit_break_sentence(search: CandidateSearch, limit_break: LimitBreak | None) -> str:
    """Return a sentence on when a limit breaks and at which size of state, or "" if there is nothing to say."""
    if limit_break is None:
        return ""
    name = name_of(limit_break.setting)
    if limit_break.kept_s is None:  # broken_s is 0 only if the setting was tried with the state of today
        return "" if limit_break.broken_s else f"{name} breaks them with the state of today already."
    if limit_break.broken_s is None or limit_break.broken is None:
        return f"{name} keeps them for the next {ms_text(1e3 * limit_break.kept_s)} as well."
    sizes = ", ".join(
        f"{state.vertex} between {bytes_text(state.after(limit_break.kept_s))} and {bytes_text(state.after(limit_break.broken_s))}"
        for state in search.bench.horizon.states
    )
    broken = breaks_text(limit_break.broken, search.limits) or "no checkpoint completes"
    return f"{name} {limit_break_text(limit_break)}: {broken} with {sizes}."


def horizon_to_json(horizon: Horizon, limit_break: LimitBreak | None) -> dict[str, Any]:
    """Return JSON data: `horizon_s`, `growing` (sizes now and at the horizon), `lasting` (how long a setting keeps the limits)."""
    ahead_s = horizon.ahead_ns / 1e9
    growing = {
        state.vertex: {"now_bytes": state.now_bytes, "then_bytes": state.after(ahead_s)} for state in horizon.states
    }
    times = None
    if limit_break is not None:
        broken_s = limit_break.broken_s
        sizes = {} if broken_s is None else {state.vertex: state.after(broken_s) for state in horizon.states}
        times = {
            "setting": limit_break.setting,
            "kept_s": limit_break.kept_s,
            "broken_s": broken_s,
            "broken_bytes": sizes,
        }
    return {"horizon_s": ahead_s, "growing": growing, "lasting": times}


# ---- The stages of the search.

AGAIN = 3
"""Maximum number of rounds.  Another round is needed if a long run breaks a limit that short runs kept."""


def run_until_decided(search: CandidateSearch) -> None:
    """Run all stages, or as much of them as budget and time limit allow.  Raises NothingRanError if no setting has run."""
    try:
        try_intervals(search)
        try_optimum(search)
        _refine(search)
        if search.chosen is None:  # most of the rest is for relaxed keys, and for changes that would be enough
            search.spend_rest(CONFIRM_SHARE)
            _refine(search)
        elif not search.confirmed:
            search.spend_rest(CONFIRM_SHARE if search.bench.horizon.states else REST_SHARE)
            _refine(search)
        if search.chosen is None:
            relax_limiting_keys(search)
            search.repeat()
            search.confirm()
        add_levers_against_restarts(search)
        simplify(search, REST_SHARE)
        search.repeat()
        search.confirm()
        run_as_the_file_is(search)
        search.measure_bytes()
        search.fail_tasks()
    except TimeUpError:
        search.skip("runs that were under way, and all that would have followed")
    search.is_over = True
    if not search.runs:
        raise NothingRanError("time was up before a single setting had run: give more with --within, or a shorter job")


def run_as_the_file_is(search: CandidateSearch) -> None:
    """Run the chosen setting and today's in the job as its file is; choose another setting if the file's events break a limit."""
    while len(search.file_runs) < MAX_FILE_RUNS and (chosen := search.chosen) is not None and run_file(search, chosen):
        add_levers_against_events(search, chosen)
        search.repeat()
        search.confirm()
    if search.replaced is not None:
        run_file(search, search.replaced)


def _refine(search: CandidateSearch) -> None:
    """Tune the best setting so far, and repeat its runs, until it keeps the limits with room or nothing new has run."""
    for _ in range(AGAIN):
        try_neighbours(search)
        try_shorter(search)
        if not search.has_margin:
            add_levers(search)
        before = len(search.runs), len(search.longer_ms)
        search.confirm(runs=1)
        search.replicate_until_decided()
        if try_between(search):
            search.replicate_until_decided()
        search.repeat()
        search.confirm()
        if search.has_margin or before == (len(search.runs), len(search.longer_ms)):
            break  # no long run has broken a limit that short runs kept
