"""Steps of a search, one at a time: what runs how often, what is left out, and what counts as run."""

import math

import pandas as pd
import pytest

from sim.advice.candidates import LONG_RUNS, CandidateSearch, count_complete, longest_checkpoint
from sim.advice.configuration import diff_flink_keys
from sim.advice.judgement import Limits
from sim.advice.levers import CHANGELOG, LOCAL_RECOVERY, TIMEOUT
from sim.advice.optimizer import (
    _neighbours,
    _reason_to_skip,
    _simpler,
    _writes_in_full,
    add_levers,
    simplify,
    try_intervals,
    try_neighbours,
    try_optimum,
)
from sim.advice.report import _configuration
from sim.advice.settings import Change, make_candidate, protocols, with_files_after_barrier
from sim.advice.trials import CONFIRM_SHARE, GRID_SHARE, LEVER_SHARE, REPEAT_SHARE, TASK, Bench
from sim.model.units import parse_duration
from sim.studies.sweeps.design import override
from tests.advice.levers.test_levers import situation
from tests.advice.made_up import DAY_S, JOB, MadeUp, row
from tests.scenarios import read_scenario

S = 10**9
NAMED = {protocol.name: protocol for protocol in protocols()}


def search_of(job, run, *settings, most=12, mtbf_s=DAY_S, failure="task-manager", **limits):
    """A search in which these settings, (interval [s], protocol), have run once."""
    search = CandidateSearch(Bench(job, {}, failure=failure), Limits(**limits), mtbf_s, run, most)
    for interval_s, protocol in settings:
        search.replicate([setting_of(search, interval_s, protocol)], 1)
    return search


def setting_of(search, interval_s, protocol="aligned", *changes):
    return make_candidate(search.scenario, interval_s * S, NAMED[protocol], changes)


def seconds(settings):
    return sorted({parse_duration(own.interval) // S for own in settings})


class Costly(MadeUp):
    """Recoveries and losses by interval [s]: a recovery [ms], a loss."""

    def __init__(self, by_interval, duration_ms=100.0):
        super().__init__({})
        self.by_interval, self.duration_ms = by_interval, duration_ms

    def row(self, axes, k, more_ms):
        recovery_ms, loss = self.by_interval[parse_duration(axes["interval"]) // S]
        again = {"downtime_ms": 1000.0, "replayed_records": 0.4 * (recovery_ms - 1000), "caught_up_ms": recovery_ms}
        return row(
            axes, k, self.duration_ms, throughput_per_second=400.0 * (1 - loss), throughput_change=-loss, **again
        )


def test_an_interval_with_which_the_job_keeps_up_is_preferred_to_today_s(job):
    """Both keep the limit, and today's changes nothing."""
    run = MadeUp(
        {"aligned": 100.0}, but=lambda own: {"busiest_subtask_share": 1.0} if own["interval"] == "30 s" else {}
    )
    search = search_of(job, run, (30, "aligned"), (60, "aligned"), recovery_ms=120_000, failure=TASK)

    assert (search.behind, search.chosen.interval) == ({("30 s", "aligned")}, "1 min")
    search._judged_pairs["as it was"] = ()
    search._measure(search.rows)
    assert search._judged_pairs == {}, "pairs of settings are judged anew when trials have run"


def test_a_setting_runs_as_often_as_is_asked_for_and_no_more(job):
    run = MadeUp({"aligned": 100.0})
    search = search_of(job, run, (30, "aligned"))
    own = setting_of(search, 30)
    search.replicate([own], 3)
    search.replicate([own], 2)

    assert {own: 3} == search.runs
    assert 3 == len(search.trials[own.name][""]) == search.settings[0].runs
    assert (search.checkpoint_count(own.name), search.settings[0].checkpoints) == (6, 6)


@pytest.mark.parametrize(
    ("limit_ms", "reason"), [(56_600, ""), (56_400, "without levers recovery exceeds its limit at 1 min already")]
)
def test_longer_intervals_are_given_up_where_recovery_is_over_its_limit_by_15_per_cent(job, limit_ms, reason):
    """65 s at one minute: 1.15 times the limit are 65.09 s, or 64.86 s."""
    search = search_of(job, MadeUp({"aligned": 100.0}), (30, "aligned"), (60, "aligned"), recovery_ms=limit_ms)

    assert reason == _reason_to_skip(search, 180 * S)
    assert "" == _reason_to_skip(search, 60 * S) == _reason_to_skip(search, 10 * S)


@pytest.mark.parametrize(
    ("other_ms", "reason"), [(2300.0, ""), (2301.0, "without levers output exceeds its limit at 30 s already")]
)
def test_longer_intervals_are_given_up_where_output_is_late(job, other_ms, reason):
    """The best protocol counts: output of aligned checkpoints is visible after 5 s."""

    def visible(own):
        return {"lost_records": 0, "visible_p99_ms": 5000.0 if own["protocol"] == "aligned" else other_ms}

    run = MadeUp({"aligned": 100.0, "unaligned": 60.0}, but=visible)
    search = search_of(job, run, (30, "aligned"), (30, "unaligned"), visible_ms=2000)

    assert reason == _reason_to_skip(search, 60 * S)


def test_a_setting_whose_checkpoints_are_longer_than_the_interval_shows_that_longer_ones_are_worth_it(job):
    """Aligned checkpoints take 40 s, and recovery 35 s; unaligned ones keep their interval, and the job does not recover."""
    run = MadeUp(
        {"aligned": 40_000.0, "unaligned": 60.0},
        but=lambda own: (
            {} if own["protocol"] == "aligned" else {"caught_up_ms": math.nan, "busiest_subtask_share": 1.0}
        ),
    )
    search = search_of(job, run, (30, "aligned"), (30, "unaligned"), recovery_ms=60_000)

    assert {setting.recovery_ms for setting in search.settings} == {35_000.0, math.inf}
    assert _reason_to_skip(search, 60 * S) == ""


@pytest.mark.parametrize(
    ("recovery_s", "reason"), [(17, ""), (18, "failures would cost more than fewer checkpoints save")]
)
def test_longer_intervals_are_given_up_where_a_failure_costs_more_than_they_save(job, recovery_s, reason):
    """With 17 s each hour 0.8 of them are less than 1.02 x (1 s + 16 s / 1.8) and a per mille, 3.6 s; of 18 s they are more."""
    run = Costly({30: (recovery_s * 1000, 0.0)})
    search = search_of(job, run, (30, "aligned"), mtbf_s=3600.0)

    assert reason == _reason_to_skip(search, 60 * S)


def test_neighbours_are_one_step_away_and_have_not_run(job):
    search = search_of(job, MadeUp({"aligned": 100.0}), (30, "aligned"), (60, "aligned"))

    assert seconds(_neighbours(search, setting_of(search, 30))) == [20]
    assert seconds(_neighbours(search, setting_of(search, 60))) == [120]
    assert seconds(_neighbours(search, setting_of(search, 3600))) == [1800]
    assert seconds(_neighbours(search, setting_of(search, 1))) == [2]
    limited = search_of(job, MadeUp({"aligned": 100.0}), (30, "aligned"), recovery_ms=20_000)
    assert seconds(_neighbours(limited, setting_of(limited, 30))) == [20]  # a longer one cannot help


@pytest.mark.parametrize(
    ("interval_s", "limit_ms", "expected"),
    [
        (120, 1000, [1, 2, 5, 10, 15, 20, 30, 60, 120]),
        (10, 14_000, [2, 5, 10, 15]),
        (10, 30_000, [5, 10, 15, 20, 30]),
        (30, None, [20, 30, 60]),
    ],
)
def test_intervals_next_to_the_best_run_until_it_stays_the_best(job, interval_s, limit_ms, expected):
    """A recovery takes 5 s and the interval, and has to have a fifth of room."""
    search = search_of(job, MadeUp({"aligned": 100.0}), (interval_s, "aligned"), recovery_ms=limit_ms, failure=TASK)
    try_neighbours(search)

    assert expected == seconds(search.settings)


def test_the_interval_of_theory_is_tried_where_checkpoints_cost_something(job):
    """Half a second each and a failure every 5 h: 136 s by renewal, and 2 min are the nearest that people write."""
    for cost_s, expected in ((0.5, [30, 120]), (0.0, [30])):
        search = search_of(job, MadeUp({"aligned": 100.0}, cost_s=cost_s), (30, "aligned"), mtbf_s=18_000.0)
        try_optimum(search)

        assert expected == seconds(search.settings)


@pytest.mark.parametrize(("loss", "cost_s"), [(0.003, 0.09), (0.0029, 0.0)])
def test_a_cost_shows_from_three_per_mille_on(job, loss, cost_s):
    """Where it shows best, as seconds of a checkpoint."""
    search = search_of(job, Costly({30: (6000, loss), 60: (6000, loss / 2)}), (30, "aligned"), (60, "aligned"))

    assert cost_s == pytest.approx(search.cost_s)


@pytest.mark.parametrize(("limit_share", "expected"), [(GRID_SHARE - 0.01, [10, 30]), (GRID_SHARE, [10, 30, 60, 180])])
def test_the_grid_of_intervals_has_its_share_of_the_budget(job, limit_share, expected):
    """The shortest interval and today's always run."""
    search = search_of(job, MadeUp({"aligned": 100.0}, affords=lambda _scenarios, share: share <= limit_share))
    try_intervals(search)

    assert expected == seconds(search.settings)
    assert 0 < GRID_SHARE < LEVER_SHARE < REPEAT_SHARE < CONFIRM_SHARE < 1


@pytest.mark.parametrize(
    ("spread", "most", "same_setting", "counts"),
    [(0.0, 8, True, [3]), (0.3, 8, False, [3, 6, 8]), (0.3, 20, False, [3, 6, 12, 20])],
)
def test_settings_run_more_often_until_nearly_all_draws_agree(job, spread, most, same_setting, counts):
    """Three times at least, then twice as often; at most as often as is allowed."""
    seen = []

    class Counting(MadeUp):
        def run(self, scenarios):
            seen.append(max(scenario.run.replications for scenario in scenarios))
            return super().run(scenarios)

    run = Counting({"aligned": 990.0, "unaligned": 60.0}, spread=spread)
    search = search_of(job, run, (30, "aligned"), (30, "unaligned"), most=most, checkpoint_ms=1548)
    search.replicate_until_decided()

    assert [count for count in dict.fromkeys(seen) if count > 1] == counts
    assert search.runs[setting_of(search, 30)] == counts[-1]
    assert same_setting == (search.choice().same_setting >= 0.95)


@pytest.mark.parametrize(
    ("longest_ms", "runs", "has_margin", "kept"),
    [
        (831.0, LONG_RUNS, True, True),
        (832.0, LONG_RUNS, False, True),
        (998.0, LONG_RUNS, False, True),
        (1008.0, LONG_RUNS, False, True),  # at the limit
        (1009.0, LONG_RUNS, False, False),
        (1011.0, 1, False, False),
    ],
)
def test_a_long_run_that_breaks_the_limit_is_not_repeated(job, longest_ms, runs, has_margin, kept):
    """Its longest checkpoint is what the setting is judged by; the third run has one that takes 2 ms more.

    A fifth of room is needed.
    """

    def longer(own):
        return {"end_to_end_max_ms": longest_ms + own["replication"]} if own["trial"] == "long" else {}

    run = MadeUp({"aligned": 100.0}, but=longer)
    search = search_of(job, run, (30, "aligned"), checkpoint_ms=1000)
    search.confirm()
    name = ("30 s", "aligned")

    assert ({name: longest_ms + runs - 1}, {name: 100 * runs}) == (search.longer_ms, search.long_checkpoints)
    assert {runs} == set(search.other_trials.values())
    assert (2 + 100 * runs, True) == (search.settings[0].checkpoints, search.settings[0].ran_long)
    search.repeat()
    assert (has_margin, kept) == (search.confirmed and search.chosen is not None, search.chosen is not None)
    without = search_of(job, run, (30, "aligned"))
    without.confirm()
    assert (without.longer_ms, without.confirmed) == ({}, False)  # one run
    without.repeat()
    assert without.confirmed


def test_a_long_run_with_a_failed_checkpoint_has_no_longest():
    """Interrupted ones do not count; the world with fewest checkpoints is the one that counts."""
    common = {
        "trial": "long",
        "status": "ok",
        "strategy": "x",
        "interval": "30 s",
        "protocol": "aligned",
        "interrupted": 1,
    }
    rows = [
        common | {"world": world, "failed": 1, "completed": count, "end_to_end_max_ms": ms}
        for world, count, ms in (("a", 90, 300.0), ("a", 95, 200.0), ("b", 99, 700.0))
    ]
    others = [
        rows[0] | change
        for change in ({"status": "failed"}, {"strategy": "none"}, {"interval": "60 s"}, {"trial": "failure"})
    ]

    def longest_of(*found):
        table = pd.DataFrame([*found, *(own | {"end_to_end_max_ms": 9e9} for own in others)])
        return longest_checkpoint(table, ("30 s", "aligned"))

    assert longest_of(*rows) == (700.0, 99)
    assert (math.inf, 99) == longest_of(*rows[:2], rows[2] | {"failed": 2})
    assert (math.inf, 99) == longest_of(*rows[:2], rows[2] | {"end_to_end_max_ms": math.nan})
    assert (math.inf, 0) == longest_of()


def test_what_counts_as_run_when_time_is_up(job):
    """Both rows of a replication, in each world, and the throughput without checkpoints that it is held against."""
    search = search_of(job, MadeUp({"aligned": 100.0}))
    own, other = setting_of(search, 30), setting_of(search, 30, "unaligned")

    def rows_of(setting, *kept, **changes):
        common = {"interval": "30 s", "protocol": setting.protocol, "status": "ok", "throughput_change": 0.1}
        common |= {"strategy": "x"} | changes
        rows = [common | {"trial": trial, "replication": k} for k in range(2) for trial in ("undisturbed", "failure")]
        return [rows[place] for place in kept]

    def counted(*rows, worlds=1):
        return count_complete({own: 2, other: 2}, pd.DataFrame(rows), worlds)

    assert {own: 2} == counted(*rows_of(own, 0, 1, 2, 3), *rows_of(other, 0))
    assert {own: 1, other: 2} == counted(*rows_of(own, 0, 1, 2), *rows_of(other, 0, 1, 2, 3))
    assert counted(*rows_of(own, 0, 2, 3), *rows_of(other, 2, 3)) == {}  # the first replication is missing
    assert counted(*rows_of(own, 0), *rows_of(own, 0, strategy="none")) == {}  # its baseline is not its failure
    assert counted(*rows_of(own, 0, 1, 2, 3), worlds=2) == {}
    assert {own: 1} == counted(*rows_of(own, 0, 1), *rows_of(own, 2, 3, throughput_change=math.nan))
    assert {own: 2} == counted(*rows_of(own, 0, 1), *rows_of(own, 2, 3, throughput_change=math.nan, status="failed"))


@pytest.mark.parametrize(
    ("state", "checkpoint", "in_full"),
    [
        ("", "", False),
        (", state: {size: 1 MB}", "", True),
        (", state: {size: 1 MB, changelog: on}", "", False),
        (", state: {size: 1 MB, backend: rocksdb}", "", True),
        (", state: {size: 1 MB, backend: rocksdb}", ", incremental: true", False),
        (", state: {size: 1 MB}", ", incremental: true", True),
    ],
)
def test_state_is_written_in_full_without_increments_and_changelog(state, checkpoint, in_full):
    text = JOB.replace("service: 1 ms,", f"service: 1 ms{state},").replace("30 s}", f"30 s{checkpoint}}}")

    assert in_full == _writes_in_full(read_scenario(text))


def test_simpler_settings_have_todays_parts_fewer_levers_and_other_intervals(job):
    """Today is 30 s, aligned; what was found is 10 s, unaligned, with two levers."""
    search = search_of(job, MadeUp({"aligned": 100.0}))
    levers = list(situation_levers())
    found = [
        (own.interval_ns // S, own.barriers.name, [change.name for change in own.changes])
        for own in _simpler(search, setting_of(search, 10, "unaligned", *levers))
    ]
    both = [change.name for change in levers]

    assert found == [
        (30, "unaligned", both),
        (10, "aligned", both),
        (10, "unaligned", both[1:]),
        (10, "unaligned", both[:1]),
        (5, "unaligned", both),
        (15, "unaligned", both),
        (20, "unaligned", both),
    ]


def situation_levers():
    """RocksDB and the changelog, as changes of a job with state on the heap."""
    for lever in (LOCAL_RECOVERY, CHANGELOG):
        yield next(lever.proposes(situation()))


class NeverBack(Costly):
    """Where 30 s pass between checkpoints no trial sees the job catch up."""

    def row(self, axes, k, more_ms):
        row = super().row(axes, k, more_ms)
        return row | ({"caught_up_ms": math.nan} if axes["interval"] == "30 s" else {})


def test_a_recovery_that_no_trial_saw_costs_as_long_as_it_waited(job):
    """Three minutes a day are less than two per cent: the choice and its draws agree."""
    search = search_of(job, NeverBack({10: (6000, 0.02), 30: (6000, 0.0)}), (10, "aligned"), (30, "aligned"))

    assert ("30 s", "aligned") == search.chosen.name == search.choice().chosen
    assert search.choice().same_setting == 1.0


def test_a_setting_that_no_option_says_is_described(job):
    """FLINK-37375 has none."""
    search = search_of(job, MadeUp({"aligned": 100.0}), (10, "unaligned"))
    behind = with_files_after_barrier(
        read_scenario(JOB.replace("1 ms,", "1 ms, snapshot: {pre-barrier: 1 ms},")), NAMED["aligned"]
    )
    search.replicate([make_candidate(search.scenario, 10 * S, behind)], 1)
    texts = {setting.protocol: _configuration(search, setting) for setting in search.settings}

    assert {"unaligned": False, behind.name: True} == {name: "FLINK-37375" in text for name, text in texts.items()}


def test_the_default_parallelism_stays_where_one_vertex_gets_another():
    """Vertices without their own keep it."""
    now = read_scenario(JOB)
    then = read_scenario(JOB, overrides=[override("job.sink.parallelism", 4)])

    assert diff_flink_keys(now, then) == []


def test_a_job_without_checkpoints_is_not_said_to_recover(job):
    """A failure begins it anew, whatever a short trial looks like; it serves nothing, not less than nothing."""
    run = MadeUp({"aligned": 100.0}, but=lambda _: {"completed": 0, "throughput_per_second": -100.0})
    (found,) = search_of(job, run, (30, "aligned")).settings

    assert (math.inf, 0.0) == (found.recovery_ms, found.per_second)


def test_levers_are_added_to_what_has_run_often_and_not_to_what_was_lucky_once(job):
    """A single run of unaligned barriers seems to have room, and shows nothing that exceeds the limit."""

    def later(own):
        return {"caught_up_ms": 20_000.0 if own["replication"] == 0 else 29_000.0}

    search = search_of(
        job, MadeUp({"aligned": 100.0, "unaligned": 100.0}, but=later), (30, "unaligned"), recovery_ms=30_000
    )
    search.replicate([setting_of(search, 30)], 3)
    assert (search.has_margin, search.chosen.protocol, search.nearest.protocol) == (False, "aligned", "unaligned")

    add_levers(search)
    assert any(candidate.changes for candidate in search.runs)


def test_a_lever_at_todays_interval_may_use_what_is_kept_for_later_stages(job):
    """It changes a key less.  Other intervals change as many, and have their share."""
    run = MadeUp({"aligned": 9000.0, "aligned, timeout 20 min": 500.0}, affords=lambda _, share: share >= CONFIRM_SHARE)
    search = search_of(job, run, (30, "aligned"), checkpoint_ms=1000)
    lever = Change(TIMEOUT, "timeout 20 min", {"checkpoint.timeout": "20 min"})
    search.replicate([setting_of(search, 10, "aligned", lever)], 1)
    assert search.chosen.name == ("10 s", "aligned, timeout 20 min")

    simplify(search)
    assert search.chosen.name == ("30 s", "aligned, timeout 20 min")
    assert {"10 s", "30 s"} == {candidate.interval for candidate in search.runs}
