"""From the results of trials to a choice, on results made by hand."""

import math
from dataclasses import replace
from itertools import product

import pandas as pd
import pytest

from sim.advice.configuration import differences
from sim.advice.judgement import Limits, Tight, choose, judged, measured, redrawn, room

DAY_S = 86_400.0
DURATION = {"aligned": 6000.0, "aligned, debloating": 2500.0, "unaligned": 60.0}
COST = {"aligned": 0.0, "aligned, debloating": 0.01, "unaligned": 0.0}


def results(
    duration=DURATION,
    cost=COST,
    noise=0.0,
    visible=math.nan,
    intervals=("10 s", "60 s", "600 s"),
    catch_up=2.0,
    worlds=("",),
    growth=math.inf,
):
    """Recovery is a downtime of 5 s and twice the interval; `noise`: of durations, from run to run."""
    rows = []
    for k, interval, protocol, trial, world in product(
        range(3), intervals, duration, ("undisturbed", "failure"), worlds
    ):
        seconds, wobble = float(interval.split()[0]), noise * (k - 1)
        rows.append(
            {
                "status": "ok",
                "strategy": "aligned",
                "interval": interval,
                "protocol": protocol,
                "trial": trial,
                "replication": k,
                "throughput_per_second": 1000 * (1 - cost[protocol]),
                "throughput_change": -cost[protocol],
                "failed": 0,
                "interrupted": 0,
                "end_to_end_p99_ms": duration[protocol] * (1 + wobble),
                "end_to_end_p50_ms": duration[protocol],
                "end_to_end_p90_ms": duration[protocol],
                "visible_p99_ms": visible,
                "end_to_end_max_ms": duration[protocol],
                "checkpointed_bytes": 2e6,
                "checkpointed_mean_bytes": 2e6,
                "completed": 4,
                "persisted_bytes": 1e6,
                "downtime_ms": 5000.0,
                "replayed_records": 1000 * seconds,
                "caught_up_ms": 5000 + 1000 * catch_up * seconds,
                "world": world,
                "backlog_growth": growth,
            }
        )
    return pd.DataFrame(rows)


def changes(trials, today):
    """Interval and protocol are one thing each."""
    return {name: 0 if today is None else (name[0] != today[0]) + (name[1] != today[1]) for name in trials}


def chosen(table, *, today=("600 s", "aligned"), mtbf_s=DAY_S, unlimited=False, patience_ms=math.inf, **limits):
    trials = measured(table, now="aligned", unlimited=unlimited)
    return choose(judged(trials, Limits(**limits), mtbf_s, patience_ms=patience_ms), changes(trials, today))


def again(table, *, today=("600 s", "aligned"), **limits):
    trials = measured(table, now="aligned", unlimited=False)
    return redrawn(trials, Limits(**limits), DAY_S, changes(trials, today))


def test_what_keeps_all_limits_and_changes_least():
    """Checkpoints of at most 3 s leave two protocols; the recovery of at most a minute leaves intervals; today's protocol keeps neither."""
    # debloating loses a per cent
    assert chosen(results(), checkpoint_ms=3000, recovery_ms=60_000).name == ("10 s", "unaligned")


def test_a_job_that_keeps_up_serves_what_arrives():
    """Whatever was left over from before the time observed: the difference of two settings is none."""
    cost = {"aligned": -0.02, "aligned, debloating": 0.01, "unaligned": 0.03}
    found = {
        growth: measured(results(cost=cost, growth=growth), now="aligned", unlimited=False)
        for growth in (0.0, math.inf)
    }
    by_growth = {
        growth: {
            difference.quantity: difference
            for difference in differences(trials, ("60 s", "aligned"), ("60 s", "unaligned"))
        }
        for growth, trials in found.items()
    }

    assert [pytest.approx(by_growth[growth]["throughput"].change.value) for growth in (0.0, math.inf)] == [0, -50]
    assert {0.0} == {setting.loss for setting in judged(found[0.0], Limits(), DAY_S)}


def test_today_is_good_enough():
    """Nobody changes a job for nothing: a setting that loses a per mille more is as good."""
    assert chosen(results(), today=("60 s", "aligned"), mtbf_s=3 * DAY_S).name == ("60 s", "aligned")


def test_one_thing_is_changed_rather_than_two():
    """The interval stays if another protocol is enough."""
    assert chosen(results(), today=("10 s", "aligned"), checkpoint_ms=100, mtbf_s=30 * DAY_S).name == (
        "10 s",
        "unaligned",
    )


def test_fewer_checkpoints_rather_than_more():
    """Among settings that lose as much, the longest interval is advised; then the simplest protocol."""
    assert chosen(results(intervals=("10 s", "60 s")), today=None, mtbf_s=3 * DAY_S).name == ("60 s", "aligned")


def test_how_often_the_job_fails_decides_the_interval():
    """A failure every ten minutes makes long intervals costly, one a year does not."""
    assert chosen(results(), mtbf_s=600, today=None).interval == "10 s"
    assert chosen(results(), mtbf_s=365 * DAY_S, today=None).interval == "600 s"


def test_a_failure_of_any_day_finds_half_of_an_interval_to_be_done_again():
    """5 s of downtime and (1200 s, late in the interval) x 10/9 / 2, once a day; nothing else is lost."""
    trials = measured(results(duration={"aligned": 60.0}, intervals=("600 s",)), now="aligned", unlimited=False)
    (setting,) = judged(trials, Limits(), DAY_S)

    assert pytest.approx(setting.lost) == (5 + 1200 * 10 / 9 / 2) / DAY_S


def test_no_setting_keeps_the_limits():
    """Each says which it breaks."""
    settings = judged(measured(results(), now="aligned", unlimited=False), Limits(checkpoint_ms=10, loss=0.005), DAY_S)

    assert choose(settings, {}) is None
    assert {("checkpoint_ms",), ("checkpoint_ms", "loss")} == {setting.breaks for setting in settings}


def test_checkpoints_that_expire_are_not_short():
    table = results(duration={**DURATION, "unaligned": 60.0})
    table.loc[table["protocol"] == "unaligned", "failed"] = 1

    assert chosen(table, checkpoint_ms=3000).protocol == "aligned, debloating"


def test_a_recovery_nobody_saw_keeps_no_limit():
    """The run ended before the job had caught up: it took longer than that, which is what it costs at least."""
    table = results()
    table.loc[table["interval"] == "600 s", "caught_up_ms"] = math.nan

    assert chosen(table, recovery_ms=600_000, mtbf_s=365 * DAY_S, today=None).interval == "60 s"
    assert chosen(table, mtbf_s=365 * DAY_S, today=None, patience_ms=700_000).interval == "600 s"
    assert chosen(table, mtbf_s=DAY_S, today=None, patience_ms=7_000_000).interval == "60 s"


def test_a_source_without_end_never_catches_up():
    """What is replayed counts at the job's own pace: 5 s and one interval."""
    setting = judged(measured(results(), now="aligned", unlimited=True), Limits(), DAY_S)[0]

    assert setting.recovery_ms == 15_000


def test_output_counts_where_sinks_are_transactional():
    assert chosen(results(), visible_ms=1.0) is not None
    assert chosen(results(visible=2.0), visible_ms=1.0) is None


def test_of_several_worlds_the_worst_keeps_the_limit():
    """Checkpoints that are short on most days are not short."""
    table = results(worlds=("usual", "busiest"))
    busy = (table["world"] == "busiest") & (table["protocol"] == "unaligned")
    table.loc[busy, "end_to_end_p99_ms"] = 5000.0

    assert chosen(table, checkpoint_ms=3000).protocol == "aligned, debloating"
    assert chosen(table[table["world"] == "usual"], checkpoint_ms=3000).protocol == "unaligned"


def test_debloating_has_a_price():
    """Throughput is held against that of today's network without checkpoints, not against that of a debloated one."""
    table = results()
    debloated = table["protocol"] == "aligned, debloating"
    table.loc[debloated, "throughput_change"] = 0.0  # checkpoints cost nothing there

    settings = judged(measured(table, now="aligned", unlimited=False), Limits(), DAY_S)

    assert pytest.approx([setting.loss for setting in settings if setting.name == ("10 s", "aligned, debloating")]) == [
        0.01
    ]


def test_confidence_is_what_replications_give():
    """A limit that the slowest of three runs keeps by little is kept by chance."""
    close = {"aligned": 2850.0, "unaligned": 60.0}
    unsure = again(results(duration=close, cost=dict.fromkeys(close, 0.0), noise=0.05), checkpoint_ms=3000)

    assert again(results(), checkpoint_ms=3000).same_setting == 1.0
    assert unsure.chosen[1] == "aligned"
    assert 0.3 < unsure.same_setting < 0.95
    assert unsure.others[0][0][1] == "unaligned"


def test_a_single_run_says_little():
    """A setting that ran once and keeps a limit by 5 % is not sure to keep it."""
    table = results(duration={"aligned": 2850.0, "unaligned": 60.0}, cost={"aligned": 0.0, "unaligned": 0.0})
    once = again(table[table["replication"] == 0], checkpoint_ms=3000)

    assert 0.5 < once.same_protocol < 0.9


def test_what_the_change_costs_is_told_run_by_run():
    """Noise that both settings met cancels."""
    table = results(noise=0.05)
    trials = measured(table, now="aligned", unlimited=False)
    rows = {
        difference.quantity: difference.row()
        for difference in differences(trials, ("60 s", "aligned"), ("60 s", "unaligned"))
    }

    assert rows["checkpoint p99"] == ["checkpoint p99", "6.3 s", "63 ms", "-6.2 s ± 738 ms"]
    assert rows["written per hour"] == ["written per hour", "240 MB", "240 MB", "0 B"]
    assert "output visible p99" not in rows  # no sink is transactional
    once = measured(table[table["replication"] == 0], now="aligned", unlimited=False)
    (single,) = (
        row for row in differences(once, ("60 s", "aligned"), ("60 s", "unaligned")) if row.quantity == "checkpoint p99"
    )
    assert "±" not in single.row()[-1], "a single run has no confidence interval"


@pytest.mark.parametrize(("completed", "expected"), [(4, 130.0), (40, 120.0)])
def test_the_tail_is_that_of_all_runs_together(completed, expected):
    """The longest of 12 checkpoints, the second longest of 120: the tail of all runs together, not the mean of three tails."""
    table = results(duration={"aligned": 100.0}, intervals=("60 s",))
    table["completed"] = completed
    for run, (own, longest) in enumerate([(90.0, 110.0), (120.0, 130.0), (80.0, 85.0)]):
        table.loc[table["replication"] == run, ["end_to_end_p99_ms", "end_to_end_max_ms"]] = own, longest
    (setting,) = judged(measured(table, now="aligned", unlimited=False), Limits(), DAY_S)

    assert expected == pytest.approx(setting.checkpoint_ms)


def margin(of_checkpoints=0.0, of_recovery=0.0):
    return lambda _name, column: {"checkpoint_ms": of_checkpoints, "recovery_ms": of_recovery}.get(column, 0.0)


def test_a_limit_has_room_for_what_predictions_are_off():
    """284 ms for 300 ms were taken, and reality had 417: history said a factor of 1.56 for other settings."""
    trials = measured(
        results({"aligned": 284.0, "unaligned": 150.0}, {"aligned": 0.0, "unaligned": 0.05}),
        now="aligned",
        unlimited=False,
    )
    settings = judged(trials, Limits(checkpoint_ms=300), DAY_S, margins=margin(0.56))
    tight = {setting.protocol: setting.tight for setting in settings}

    assert tight["unaligned"] == ()
    assert [("checkpoint_ms", pytest.approx(300 / 284 - 1), 0.56)] == list(tight["aligned"])
    # it costs 5 %, and keeps the limit
    assert choose(settings, changes(trials, ("600 s", "aligned"))).protocol == "unaligned"
    assert redrawn(trials, Limits(checkpoint_ms=300), DAY_S, {}, margins=margin(0.56)).chosen[1] == "unaligned"
    assert (
        choose(judged(trials, Limits(checkpoint_ms=300), DAY_S), changes(trials, ("600 s", "aligned"))).protocol
        == "aligned"
    )


def test_where_no_setting_has_room_the_best_of_the_others_is_named():
    """As it is: kept by what was simulated."""
    trials = measured(
        results({"aligned": 284.0, "unaligned": 290.0}, {"aligned": 0.05, "unaligned": 0.0}),
        now="aligned",
        unlimited=False,
    )
    found = choose(judged(trials, Limits(checkpoint_ms=300), DAY_S, margins=margin(0.56)), changes(trials, None))

    assert (found.protocol, [tight.column for tight in found.tight]) == ("unaligned", ["checkpoint_ms"])


@pytest.mark.parametrize(("noise_s", "is_tight"), [(0.0, False), (1.0, False), (4.0, True)])
def test_a_limit_has_room_for_the_spread_of_repetitions(noise_s, is_tight):
    """A recovery of 25 s, 1 s to either side of it, has room up to 30 s; with 4 s it has none."""
    table = results(intervals=("10 s",))
    table["caught_up_ms"] += 1000 * noise_s * (table["replication"] - 1)
    settings = judged(measured(table, now="aligned", unlimited=False), Limits(recovery_ms=30_000), DAY_S)

    assert {is_tight} == {bool(setting.tight) for setting in settings}


def lacking(rooms, lost=None, needed=0.56):
    """Settings that keep a limit of 1 s with so much room, and less than is needed; by interval."""
    table = results(duration={"aligned": 500.0}, intervals=tuple(rooms))
    settings = judged(measured(table, now="aligned", unlimited=False), Limits(checkpoint_ms=1000), DAY_S)
    return [
        replace(
            setting,
            lost=(lost or {}).get(setting.interval, 0.01),
            tight=(Tight("checkpoint_ms", rooms[setting.interval], needed),),
        )
        for setting in settings
    ]


def test_more_room_does_not_lose_to_less():
    """Neither has enough; the one with 24 % is advised, though it changes more.  About as much room is no reason to change more."""
    rooms = {"2 s": 0.097, "5 s": 0.24}

    assert choose(lacking(rooms), {("2 s", "aligned"): 1, ("5 s", "aligned"): 2}).interval == "5 s"
    assert choose(lacking({"2 s": 0.22, "5 s": 0.24}), {("2 s", "aligned"): 1, ("5 s", "aligned"): 2}).interval == "2 s"


def test_room_is_not_bought_at_any_price():
    """Two per cent of all time are notable, half a per cent is not."""
    rooms = {"2 s": 0.097, "5 s": 0.24}

    assert [choose(lacking(rooms, {"5 s": 0.01 + cost}), {}).interval for cost in (0.02, 0.005)] == ["2 s", "5 s"]


def test_room_is_the_share_by_which_a_value_may_grow():
    """One definition, in the verdict and on the screen: of 8 s for 10 s a quarter; nothing has room without end."""
    assert pytest.approx(room(8.0, 10.0)) == 0.25
    assert math.isinf(room(0.0, 10.0))
