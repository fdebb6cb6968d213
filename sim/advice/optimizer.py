"""The stages of the search: which candidates run next, and how often."""

# Call graph.  `report.py` creates a CandidateSearch and calls `run_until_decided`; every run goes through TrialRunner.
#
#   report.py --> optimizer.run_until_decided       which candidates, in which order (this module)
#                   |            |
#                   |            +--> search.py         keys other than interval and barrier mode
#                   v                        |
#                 candidates.CandidateSearch <+     results of each setting; `chosen`, `choice`
#                   |            \
#                   |             +--> judgement    rows -> Setting: cost, limits, which one is best
#                   v
#                 trials.Bench                      setting -> scenarios: undisturbed, with a failure
#                 trials.TrialRunner                budget check (`affords`), then sweeps.run -> Store -> rows
#
# The stages of `run_until_decided`, and the share of the budget up to which each may plan runs (trials.py).  Functions of
# search.py are marked with *, methods of CandidateSearch with +:
#
#   try_intervals            all barrier modes at intervals from short to long       GRID       50 %
#   try_optimum              the interval that theory proposes                       REPEAT     65 %
#   round, at most MAX_ROUNDS = 3:
#     try_neighbours         intervals next to the best one                          REPEAT     65 %
#     add_levers *           only if no setting keeps the limits with margin         LEVER      60 %
#     confirm +              one long run, which may reject a setting at once        CONFIRM    85 %
#     replicate_until_decided +  more runs of the settings that may be best          REPEAT     65 %
#     try_neighbours         once more                                               REPEAT     65 %
#     repeat +               a second run of the choice and of today's setting       REPEAT     65 %
#     confirm +              long runs, if there is a limit on p99                   CONFIRM    85 %
#   relax_limiting_keys *, if no setting keeps the limits                            REST       95 %, then all
#   add_levers_against_restarts *, if failing checkpoints restart the job            all       100 %
#   simplify *               settings with fewer changes than the chosen one         REST       95 %
#   run_file                 the choice and today's setting with events of the file  all       100 %
#   measure_bytes +          a long run, if too few checkpoints show bytes written   CONFIRM    85 %
#
# If the choice is not confirmed after these rounds, they are repeated with the budget reserved for later stages: up to
# REST_SHARE (95 %), or CONFIRM_SHARE if growing state needs further runs, or if no setting keeps the limits yet.
#
# Another round follows only if this one tried a new setting or made a long run after `add_levers`, and no setting keeps the
# limits with margin: a long run may break a limit that short runs kept.  Once one does, levers are tried with long runs, and
# settings without a long run are not advised (`has_unseen_tail`), because short runs do not show p99.  Every row is stored, so
# the same command resumes and runs nothing twice.
#
# The budget counts work, a function of what is simulated.  A budget of CPU time would allow fewer runs on a busy
# machine, and so change the answer (trials.py).  We considered a frozen copy of the CandidateSearch for the functions that
# write the report, and rejected it: every result would have two names (docs/decisions/13-what-stays-although-it-is-long.md).

from __future__ import annotations

import math

from sim.advice.candidates import CandidateSearch
from sim.advice.file_runs import run_file
from sim.advice.judgement import EQUAL_LOSS_RELATIVE, EQUAL_LOSS_SHARE
from sim.advice.search import (
    add_levers,
    add_levers_against_restarts,
    reason_for_levers,
    relax_limiting_keys,
    simplify,
)
from sim.advice.settings import (
    ROUND_INTERVALS_NS,
    BarrierSetting,
    Candidate,
    allowed_protocols,
    intervals,
    make_candidate,
    neighbouring_intervals,
    with_files_after_barrier,
)
from sim.advice.trials import (
    CONFIRM_SHARE,
    GRID_SHARE,
    REPEAT_SHARE,
    REST_SHARE,
    NothingRanError,
    TimeUpError,
)
from sim.model.units import format_duration, parse_duration
from sim.results.estimates import renewal

# ---- Intervals: a grid that includes the current one, the theoretical optimum, and the neighbours of the best one.
#
# Intervals are tried in ascending order, because long ones are the most expensive to simulate. The search stops at the first
# interval beyond which no setting can keep the limits or reduce lost time.

MIN_EXCESS_TO_STOP = 1.15
"""Longer intervals are skipped once a limit is exceeded by this factor."""
COST_SHARE_TO_SKIP = 0.8
"""Longer intervals are skipped if this share of their expected cost of failures exceeds the total loss of the best setting."""


def try_intervals(search: CandidateSearch) -> None:
    """Run every barrier mode at every interval of the grid that may keep the limits, in ascending order.

    Raises NothingRanError if every run fails.
    """
    grid = intervals(search.scenario, recovery_ms=search.limits.recovery_ms, visible_ms=search.limits.visible_ms)
    tried = _barrier_modes(search)
    if search.current_candidate is not None:
        search.replicate([search.current_candidate], 1)
        broken = () if search.current is None else search.current.breaks
        if broken == ("loss",):  # only throughput: shorter intervals would make it worse
            grid = [interval_ns for interval_ns in grid if interval_ns >= search.current_candidate.interval_ns]
        if broken and not {"recovery_ms", "visible_ms"} & set(broken):  # another mode at this interval may be enough
            at_current_interval = [
                make_candidate(search.scenario, search.current_candidate.interval_ns, mode) for mode in tried
            ]
            search.replicate_if_affordable(at_current_interval, GRID_SHARE)
    for i, interval_ns in enumerate(grid):
        remaining = [make_candidate(search.scenario, other, protocol) for other in grid[i:] for protocol in tried]
        if reason := _reason_to_skip(search, interval_ns):
            search.skip("", remaining, reason)
            return
        settings = remaining[: len(tried)]  # the first interval in all modes
        if i and not search.affords_runs(settings, 1, GRID_SHARE):
            search.skip("", remaining)
            return
        search.replicate(settings, 1)
        if not search.trials:
            raise NothingRanError(f"every run failed: {search.rows['error'].iloc[0]}")
        if reason := reason_for_levers(search):
            if skipped := remaining[len(tried) :]:
                search.skip("", skipped, reason)
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


def try_neighbours(search: CandidateSearch) -> bool:
    """Run the best setting so far at the next shorter and the next longer interval, until it stays the best.

    An interval that is shorter than needed costs more checkpoints, bytes and commits.  Return True if any setting ran.
    """
    before = len(search.runs)
    for _ in ROUND_INTERVALS_NS if search.settings else ():
        best = search.chosen or search.nearest
        ran = _run_once(search, _neighbours(search, search.candidate_of(best.name)))
        if not ran or (search.chosen or search.nearest).name == best.name:
            break
    return len(search.runs) > before


def _neighbours(search: CandidateSearch, base: Candidate) -> list[Candidate]:
    """Return the candidate at the next shorter and the next longer interval, except those that have run or are skipped."""
    shorter, longer = neighbouring_intervals(base.interval_ns)
    worth = [*shorter[:1], *(other for other in longer[:1] if not _reason_to_skip(search, other))]
    return [neighbour for other in worth if (neighbour := search.at_interval(base, other)) not in search.runs]


def _run_once(search: CandidateSearch, settings: list[Candidate]) -> bool:
    """Run the settings once.  Return False if there are none, or if budget or time limit do not cover them."""
    return bool(settings) and search.replicate_if_affordable(settings, REPEAT_SHARE)


def _barrier_modes(search: CandidateSearch) -> list[BarrierSetting]:
    """Return the barrier modes to try: those that sinks allow, and today's unless sinks forbid it.

    If operators write files before the barrier, today's mode with files written after it is added (FLINK-37375).
    """
    allowed = allowed_protocols(search.scenario)
    after_barrier = with_files_after_barrier(search.scenario, search.current_barriers)
    current = [search.current_barriers] if search.current_barriers not in allowed and not search.is_forbidden else []
    return [*allowed, *current, *([after_barrier] if after_barrier else [])]


def _reason_to_skip(search: CandidateSearch, interval_ns: int) -> str:
    """Return the reason to skip this interval and all longer ones, or "" if it is worth a run.

    Recovery, and the time until output is visible, grow with the interval.  So if they clearly exceed a limit at the
    longest interval so far, or if recovery costs more than the best setting loses in all, longer intervals are not worth it.
    """
    done = [setting for setting in search.settings if setting.completed and search.period_ns(setting) < interval_ns]
    if not done:
        return ""
    longest_ns = max(parse_duration(setting.interval) for setting in done)
    at_longest = [setting for setting in done if parse_duration(setting.interval) == longest_ns]
    for column, bound, subject in (
        ("recovery_ms", search.limits.recovery_ms, "recovery"),
        ("visible_ms", search.limits.visible_ms, "output"),
    ):
        if bound is not None and min(getattr(setting, column) for setting in at_longest) > MIN_EXCESS_TO_STOP * bound:
            return f"{subject} exceeds its limit at {format_duration(longest_ns)} already"
    kept = [setting.lost for setting in done if not setting.breaks and math.isfinite(setting.lost)]
    # `again_ms` is of a failure late in an interval; one at a random time costs half of it, and more with longer intervals
    failure_costs = [
        setting.again_ms / 1e3 / search.mtbf_s / 2 * interval_ns / search.period_ns(setting) for setting in at_longest
    ]
    if kept and min(failure_costs) * COST_SHARE_TO_SKIP > min(kept) * (1 + EQUAL_LOSS_RELATIVE) + EQUAL_LOSS_SHARE:
        return "failures would cost more than fewer checkpoints save"
    return ""


# ---- The stages of the search.

MAX_ROUNDS = 3
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
        for setting in (search.chosen, search.replaced):
            if setting is not None:
                run_file(search, setting)
        search.measure_bytes()
    except TimeUpError:
        search.skip("interrupted runs, and all later stages")
    search.is_over = True
    if not search.runs:
        raise NothingRanError(
            "time limit reached before any setting had run: increase --within, or shorten run.duration"
        )


def _refine(search: CandidateSearch) -> None:
    """Tune the best setting so far, and repeat its runs, until it keeps the limits with room or nothing new has run."""
    for _ in range(MAX_ROUNDS):
        try_neighbours(search)
        if not search.has_margin:
            add_levers(search)
        before = len(search.runs), len(search.longer_ms)
        search.confirm(runs=1)
        search.replicate_until_decided()
        if try_neighbours(search):
            search.replicate_until_decided()
        search.repeat()
        search.confirm()
        if search.has_margin or before == (len(search.runs), len(search.longer_ms)):
            break  # no long run has broken a limit that short runs kept
