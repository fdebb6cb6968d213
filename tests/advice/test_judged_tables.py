"""How settings are judged, on tables with a number in each place."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from sim.advice.answer import watch
from sim.advice.judgement import (
    KEEPS_UP,
    MEASURED,
    RESAMPLES,
    Limits,
    NarrowLimit,
    _baseline_throughput,
    _draw_means,
    choose,
    falls_behind,
    judge,
    loss_noise,
    near_ties,
    resample_choice,
    with_late_failures,
)
from sim.model.quantities import S3_STANDARD, USE
from tests.advice.made_up import measured

DAY_S = 86_400.0
NAME = ("30 s", "aligned")
PLAIN = {
    "checkpoint_ms": 400.0,
    "checkpoint_p50_ms": 100.0,
    "loss": 0.0,
    "visible_ms": math.nan,
    "recovery_ms": 35_000.0,
    "again_ms": 35_000.0,
    "replayed": 12_000.0,
    "completed": 4.0,
    "persisted_bytes": 1e6,
    "checkpointed_bytes": 1e7,
    "written_per_hour": 1e9,
    "per_second": 400.0,
    "longest_ms": 400.0,
    "checkpoint_p90_ms": 200.0,
    "storage_cost": math.nan,
    "restarting": 0.0,
}


def values(*runs):
    """Runs of a setting: what each has beside the plain values."""
    return np.array([[(PLAIN | run)[column] for column in MEASURED] for run in runs])


def judged_alone(*runs, worlds=None, limits=None, **options):
    """A setting that is judged alone."""
    trials = {NAME: worlds or {"": values(*(runs or [{}]))}}
    return judge(trials, limits or Limits(), options.pop("mtbf_s", DAY_S), **options)[0]


def setting(name, lost=0.01, lack=1.0, **others):
    """A setting that loses so much, and lacks so much room."""
    tight = (NarrowLimit("recovery_ms", 0.0, lack - 1),) if lack > 1 else ()
    return replace(judged_alone(), interval=name[0], protocol=name[1], lost=lost, tight=tight, **others)


def rows(**others):
    """An undisturbed run and one with a failure, of one setting, with today's network."""
    common = {"status": "ok", "strategy": "x", "world": "", "interval": "30 s", "protocol": "aligned", "replication": 0}
    steady = {
        "trial": "undisturbed",
        "throughput_per_second": 380.0,
        "emitted_per_second": 400.0,
        "offered_per_second": 400.0,
        "busiest_subtask_share": 0.5,
        "throughput_change": -0.05,
        "failed": 3,
        "interrupted": 3,
        "completed": 2,
        "end_to_end_p99_ms": 190.0,
        "end_to_end_p50_ms": 100.0,
        "end_to_end_p90_ms": 170.0,
        "end_to_end_max_ms": 200.0,
        "visible_p99_ms": 30.0,
        "lost_records": 0,
        "checkpointed_bytes": 5e6,
        "checkpointed_mean_bytes": 5e6,
        "materialized_bytes_per_hour": 5e7,
        "persisted_bytes": 7e6,
        "backlog_growth": math.inf,
    } | dict(zip(USE, (60.0, 1.0, 20.0, 3e9, 0.0), strict=True))
    failure = {"trial": "failure", "downtime_ms": 4000.0, "replayed_records": 9500.0, "caught_up_ms": 41_000.0}
    return pd.DataFrame([common | steady | others, common | failure])


def found(table, **options):
    (worlds,) = measured(table, now="aligned", **{"unlimited": False} | options).values()
    (own,) = worlds.values()
    return dict(zip(MEASURED, own[0].tolist(), strict=True))


def test_each_column_has_its_place():
    """25 s at 380/s are done again after 4 s down; two checkpoints of 5 MB in a minute are 600 MB an hour, and a changelog writes 50 MB."""
    own = found(rows())

    assert own == pytest.approx(
        {
            "checkpoint_ms": 200.0,
            "checkpoint_p50_ms": 100.0,
            "loss": 0.05,
            "visible_ms": 30.0,
            "recovery_ms": 41_000.0,
            "again_ms": 29_000.0,
            "replayed": 9500.0,
            "completed": 2.0,
            "persisted_bytes": 7e6,
            "checkpointed_bytes": 5e6,
            "written_per_hour": 6.5e8,
            "per_second": 380.0,
            "longest_ms": 200.0,
            "checkpoint_p90_ms": 170.0,
            "storage_cost": S3_STANDARD.cost_per_month(dict(zip(USE, (60.0, 1.0, 20.0, 3e9, 0.0), strict=True))),
            "restarting": 0.0,
        }
    )
    assert found(rows(), unlimited=True)["recovery_ms"] == 29_000.0
    assert math.isnan(found(rows().drop(columns=[USE[0]]))["storage_cost"])


@pytest.mark.parametrize(("took_ms", "recovery_ms"), [(60_000.0, 60_000.0), (20_000.0, 41_000.0)])
def test_restarts_by_checkpoints_that_fail_count(took_ms, recovery_ms):
    """A run without another failure that restarts anyway: the time until it has caught up is lost, and is a recovery."""
    table = rows(disturbed_share=0.3)
    table.loc[0, "caught_up_ms"] = took_ms
    own = found(table)

    assert (own["restarting"], own["recovery_ms"]) == (0.3, recovery_ms)
    lost = [judged_alone({"restarting": share}).lost for share in (0.0, 0.3)]
    assert lost[1] - lost[0] == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("others", "column", "expected"),
    [
        ({"failed": 4}, "checkpoint_ms", math.inf),
        ({"failed": 4}, "checkpoint_p90_ms", math.inf),
        ({"failed": 4}, "longest_ms", 200.0),
        ({"completed": 0}, "checkpoint_ms", math.inf),
        ({"completed": 0}, "checkpoint_p90_ms", math.inf),
        ({"completed": 1}, "checkpoint_p90_ms", 170.0),
        ({"checkpointed_mean_bytes": math.nan}, "written_per_hour", 5e7),
        ({"completed": 1}, "written_per_hour", 6.5e8),  # by the interval, not by how many ended within the run
        ({"end_to_end_p50_ms": 60_000.0}, "written_per_hour", 3.5e8),
        ({"lost_records": 1}, "visible_ms", math.inf),
    ],
)
def test_checkpoints_that_expire_take_for_ever(others, column, expected):
    """Interrupted ones do not count as expired."""
    assert expected == found(rows(**others))[column]


def test_a_backlog_that_hardly_grows_is_none():
    """380/s for a minute are 22,800 records; half a per cent of them, 114, may be left over."""
    assert pytest.approx(KEEPS_UP * 380 * 60) == 114
    kept, late = (found(rows(backlog_growth=growth)) for growth in (113.0, 115.0))

    assert [(own["per_second"], pytest.approx(own["loss"])) for own in (kept, late)] == [(400.0, 0.0), (380.0, 0.05)]
    assert found(rows(backlog_growth=0.0), unlimited=True)["per_second"] == 380.0


def test_what_failed_or_is_no_trial_is_not_measured():
    """The baseline is no setting, and a run that stands there twice counts once."""
    table = rows()
    others = [table.assign(status="failed"), table.assign(strategy="none"), table.assign(trial=None)]

    trials = measured(
        pd.concat([table, table, *(own.assign(protocol="unaligned") for own in others)]), now="aligned", unlimited=False
    )
    assert {name: len(worlds[""]) for name, worlds in trials.items()} == {NAME: 1}


def test_losses_are_held_against_the_network_of_today():
    """Where it debloats today, the baseline that debloats counts; a baseline that is missing is that of the same run."""
    both = pd.concat(
        [rows(), rows(throughput_per_second=330.0, throughput_change=0.1).assign(protocol="aligned, debloating")]
    )
    plain, debloating = (
        {
            name: worlds[""][0][MEASURED.index("loss")]
            for name, worlds in measured(both[::order], now=now, unlimited=False).items()
        }
        for now, order in (("aligned", 1), ("aligned, debloating", -1))
    )

    assert pytest.approx(plain) == {NAME: 0.05, ("30 s", "aligned, debloating"): 1 - 330 / 400}
    assert pytest.approx(debloating) == {NAME: 1 - 380 / 300, ("30 s", "aligned, debloating"): -0.1}


@pytest.mark.parametrize(
    ("run", "lost_s", "patience_ms"),
    [
        ({}, 5 + 30 / 1.8, math.inf),  # 5 s down, 30 s caught up of what nine tenths of an interval took
        ({"recovery_ms": 15_000.0}, 5 + 10 / 1.8, math.inf),
        ({"recovery_ms": math.inf}, 5 + 30 / 1.8, math.inf),  # at the job's own pace
        ({"recovery_ms": math.inf}, 5 + 95 / 1.8, 100_000.0),  # as long as the trial waits, at least
        ({"recovery_ms": math.inf}, 5 + 30 / 1.8, 10_000.0),
        # down for as long as it waits
        ({"recovery_ms": math.inf, "again_ms": math.nan, "replayed": math.nan}, 100.0, 100_000.0),
        ({"per_second": 0.0, "recovery_ms": 35_000.0}, 35.0, math.inf),
    ],
)
def test_a_failure_costs_its_downtime_and_half_of_what_the_worst_one_repeats(run, lost_s, patience_ms):
    assert lost_s / DAY_S == pytest.approx(judged_alone(run, patience_ms=patience_ms).lost)
    assert lost_s / 3600 == pytest.approx(judged_alone(run, patience_ms=patience_ms, mtbf_s=3600.0).lost)


def test_what_checkpoints_cost_is_lost_all_the_time():
    """A gain is noise."""
    usual = judged_alone().lost

    assert 0.02 + usual == pytest.approx(judged_alone({"loss": 0.02}).lost)
    assert usual == pytest.approx(judged_alone({"loss": -0.02}).lost)


def test_the_worst_of_several_worlds_counts_and_the_mean_of_what_they_lose():
    worlds = {
        "busiest": values(
            {"checkpoint_ms": 900.0, "completed": 3.0, "loss": 0.04}, {"checkpoint_ms": 500.0, "completed": 2.0}
        ),
        "usual": values({"recovery_ms": 50_000.0, "completed": 9.0}, {"recovery_ms": 50_000.0, "completed": 9.0}),
    }
    own = judged_alone(worlds=worlds)

    assert (own.checkpoint_ms, own.recovery_ms, own.completed, own.loss) == (700.0, 50_000.0, 2.5, 0.02)
    assert (own.runs, own.checkpoints) == (2, 5)
    assert pytest.approx(own.lost) == (0.02 / 2) + (5 + (30 + 45) / 2 / 1.8) / DAY_S
    uneven = worlds | {"usual": values({}, {}, {})}
    assert judged_alone(worlds=uneven).runs == 2


@pytest.mark.parametrize(
    ("limits", "breaks"),
    [
        (Limits(), ()),
        (Limits(recovery_ms=35_000.0, checkpoint_ms=400.0, loss=0.0, visible_ms=1.0), ()),
        (Limits(recovery_ms=34_600.0), ("recovery_ms",)),
        (Limits(checkpoint_ms=395.0), ("checkpoint_ms",)),
        (Limits(loss=-0.1), ("loss",)),
        (Limits(recovery_ms=1.0, checkpoint_ms=1.0), ("recovery_ms", "checkpoint_ms")),
    ],
)
def test_a_limit_is_kept_up_to_its_value(limits, breaks):
    """And one per cent above it (`AT_LIMIT`).  Without a transactional sink output has none."""
    assert breaks == judged_alone(limits=limits).breaks
    assert judged_alone({"visible_ms": 2.0}, limits=Limits(visible_ms=1.0)).breaks == ("visible_ms",)


def test_a_limit_is_tight_where_less_room_is_left_than_is_needed():
    """35 s for 42 s leave a fifth; the tail of checkpoints has no spread of its own, for a long run decides on it."""
    limits, spread = Limits(recovery_ms=42_000.0), [{"recovery_ms": ms} for ms in (33_000.0, 35_000.0, 37_000.0)]
    of_predictions, enough = (
        judged_alone(limits=limits, margins=lambda _name, _column, needed=needed: needed) for needed in (0.21, 0.19)
    )

    assert [("recovery_ms", pytest.approx(0.2), 0.21)] == list(of_predictions.tight)
    assert pytest.approx(of_predictions.lack) == 1.21 / 1.2
    assert (enough.tight, enough.lack) == ((), 1.0)
    (tight,) = judged_alone(*spread, limits=Limits(recovery_ms=38_000.0)).tight  # 2 s of deviation, twice
    assert pytest.approx(tight.needed) == 4 / 35
    assert judged_alone(*spread[::2], limits=Limits(recovery_ms=36_000.0)).tight == ()  # two runs show no spread
    assert (
        judged_alone(*({"checkpoint_ms": ms} for ms in (100.0, 400.0, 700.0)), limits=Limits(checkpoint_ms=401.0)).tight
        == ()
    )
    # nothing has all room
    assert judged_alone({"loss": 0.0}, limits=Limits(loss=0.0), margins=lambda _name, _column: 9.0).tight == ()


def test_the_worst_spread_of_any_world_counts():
    """A mean of 35 s in both; runs of one lie 2 s apart, those of the other 6 s."""
    near, far = ([{"recovery_ms": 35_000.0 + off} for off in (-by, 0.0, by)] for by in (2000.0, 6000.0))
    (tight,) = judged_alone(worlds={"a": values(*near), "b": values(*far)}, limits=Limits(recovery_ms=36_000.0)).tight

    assert pytest.approx(tight.needed) == 12 / 35


A, B = ("30 s", "aligned"), ("10 s", "unaligned")


@pytest.mark.parametrize(
    ("lost", "expected"),
    [
        (0.05205, B),
        (0.05195, A),
    ],
)
def test_a_loss_counts_as_equal_up_to_two_per_cent_and_a_per_mille(lost, expected):
    """Beside 5 % a loss of 5.2 % does: then the setting that changes nothing stays."""
    assert expected == choose([setting(A, lost), setting(B, 0.05)], {A: 0, B: 2}).name


@pytest.mark.parametrize(
    ("lack", "expected"),
    [(1.255, A), (1.265, B)],
)
def test_a_lack_of_room_counts_as_equal_up_to_five_per_cent(lack, expected):
    assert expected == choose([setting(A, lack=lack), setting(B, lack=1.2)], {A: 0, B: 2}).name


@pytest.mark.parametrize(("extra", "expected"), [(0.0099, B), (0.0101, A)])
def test_room_is_worth_a_per_cent_of_time(extra, expected):
    assert expected == choose([setting(A, 0.01, lack=1.5), setting(B, 0.01 + extra, lack=1.1)], {A: 0, B: 2}).name


@pytest.mark.parametrize(
    ("settings", "changes", "expected"),
    [
        ([], {}, None),
        ([setting(A), setting(B)], {A: 1, B: 0}, B),  # what changes least
        ([setting(B), setting(A)], {A: 1, B: 1}, A),  # then fewer checkpoints
        ([setting(("30 s", "unaligned")), setting(A)], {}, A),  # then the simpler protocol
        ([setting(("30 s", "of my own")), setting(("30 s", "unaligned"))], {}, ("30 s", "unaligned")),
        ([setting(A, completed=0.0), setting(B)], {}, B),
        ([setting(A, breaks=("loss",)), setting(B, lost=0.5)], {}, B),
        ([setting(A, breaks=("loss",)), setting(B, completed=0.0)], {}, None),
        ([setting(A, lost=math.nan), setting(B)], {}, B),
        ([setting(A, lost=math.inf)], {}, None),
        ([setting(A, lack=1.2), setting(B, lost=0.5)], {}, B),  # room, whatever it costs
    ],
)
def test_the_choice_among_settings(settings, changes, expected):
    chosen = choose(settings, changes)

    assert expected == (chosen and chosen.name)


def test_means_are_drawn_from_their_distribution():
    """The mean of 90, 100 and 110 is 100, off by 10 / sqrt(3) times Student's t of two degrees; a single run is off by a tenth."""
    own = _draw_means(
        {
            A: {"": values(*({"recovery_ms": ms} for ms in (90.0, 100.0, 110.0)))},
            B: {"": values({"recovery_ms": 100.0})},
        }
    )
    of_three, alone = (own[name][""][:, MEASURED.index("recovery_ms")] for name in (A, B))
    loss = own[B][""][:, MEASURED.index("loss")]

    assert (RESAMPLES, len(MEASURED)) == own[A][""].shape
    assert pytest.approx(np.median(of_three), abs=1) == 100
    quartiles = np.quantile(of_three, [0.25, 0.75])
    # quartiles of t lie at 0.816
    assert 2 * 0.816 * 10 / math.sqrt(3) == pytest.approx(quartiles[1] - quartiles[0], rel=0.1)
    assert (pytest.approx(alone.mean(), abs=1), pytest.approx(alone.std(), rel=0.1)) == (100, 10)
    assert (pytest.approx(loss.mean(), abs=5e-4), pytest.approx(loss.std(), rel=0.1)) == (0.0, 0.003)
    assert np.isnan(own[A][""][:, MEASURED.index("visible_ms")]).all()
    assert {100.0} == set(own[A][""][:, MEASURED.index("checkpoint_p50_ms")])  # three equal runs are sure


def test_settings_share_the_draws():
    """Effects that all met cancel: the difference of two settings that spread alike is sure."""
    spread = (90.0, 100.0, 110.0)
    own = _draw_means(
        {name: {"": values(*({"recovery_ms": ms + offset} for ms in spread))} for name, offset in ((A, 0.0), (B, 7.0))}
    )
    before, after = (own[name][""][:, MEASURED.index("recovery_ms")] for name in (A, B))

    assert pytest.approx(after - before) == 7
    several = _draw_means({A: {world: values(*({"recovery_ms": ms} for ms in spread)) for world in ("a", "b")}})[A]
    assert np.array_equal(several["a"], several["b"], equal_nan=True)


def test_shares_of_the_choice_add_up():
    """A recovery of 100 s, off by 10 s in a single run, keeps a limit of 105 s in seven of ten draws; else the other one is chosen."""
    trials = {A: {"": values({"recovery_ms": 100_000.0})}, B: {"": values({"recovery_ms": 10_000.0, "loss": 0.3})}}
    choice = resample_choice(trials, Limits(recovery_ms=105_000.0), DAY_S, {A: 0, B: 1})

    assert choice.chosen == A
    assert pytest.approx(choice.same_setting, abs=0.05) == 0.69
    assert ((B, pytest.approx(1 - choice.same_setting)),) == choice.others
    assert choice.same_setting == choice.same_protocol
    alike = {A: trials[A], ("10 s", "aligned"): trials[B]}
    assert resample_choice(alike, Limits(recovery_ms=105_000.0), DAY_S, {}).same_protocol == 1.0
    nothing = resample_choice({A: trials[A]}, Limits(recovery_ms=1.0), DAY_S, {})
    assert (nothing.chosen, nothing.same_setting, nothing.same_protocol, nothing.others) == (None, 1.0, 1.0, ())


def test_draws_know_the_room_that_is_needed():
    """Both keep the limit in all draws; the first one without room, which the margin of its predictions takes."""
    sure = [{"recovery_ms": 100_000.0}] * 3
    trials = {A: {"": values(*sure)}, B: {"": values(*({"recovery_ms": 50_000.0, "loss": 0.05},) * 3)}}

    def chosen(margin):
        return resample_choice(
            trials, Limits(recovery_ms=110_000.0), DAY_S, {A: 0, B: 1}, margins=lambda _name, _column: margin
        ).chosen

    assert [chosen(margin) for margin in (0.0, 0.09, 0.11)] == [A, A, B]


def test_a_setting_is_compared_with_a_job_that_can_serve_as_much():
    """Twice the subtasks serve twice as much without checkpoints, too: their loss is that to checkpoints."""
    names = ["aligned", "aligned, 2 x parallelism of es", "unaligned", "unaligned, 2 x parallelism of es"]
    index = pd.MultiIndex.from_product(
        [["w"], ["1 min"], names, [0]], names=["world", "interval", "protocol", "replication"]
    )
    steady = pd.DataFrame(
        {
            "throughput_per_second": [3800.0, 7600.0, 3900.0, 7800.0],
            "throughput_change": [-0.05, -0.05, math.nan, math.nan],
        },
        index=index,
    )

    assert _baseline_throughput(steady, "aligned").tolist() == [4000.0, 8000.0, 4000.0, 8000.0]


def test_runs_that_do_not_tell_settings_apart_do_not_choose():
    """B loses a per mille less than A, by half a per cent more or less from run to run: A, which changes less, is as good."""
    close = {A: (0.001, 0.007, 0.004), B: (0.001, 0.001, 0.001)}
    apart = {A: (0.004, 0.004, 0.004), B: (0.001, 0.001, 0.001)}

    def judged(losses):
        trials = {name: {"": values(*({"loss": loss} for loss in own))} for name, own in losses.items()}
        return trials, judge(trials, Limits(), DAY_S)

    for losses, expected, ties in ((close, A, [A, B]), (apart, B, [B])):
        trials, settings = judged(losses)
        choice = resample_choice(trials, Limits(), DAY_S, {A: 1, B: 2})
        assert (expected, expected) == (choose(settings, {A: 1, B: 2}).name, choice.chosen)
        assert ties == [own.name for own in near_ties(settings)]
    assert [2 * 0.003 / math.sqrt(3), 0.0] == pytest.approx(list(loss_noise(judged(close)[1])))


def test_a_single_run_tells_as_much_as_before():
    """Its noise is not known: it is drawn, and the settings run again."""
    settings = [setting(A, 0.02), setting(B, 0.01)]

    assert list(loss_noise(settings)) == [0.0, 0.0]
    assert near_ties([setting(A, lack=1.2), setting(B, breaks=("loss",))]) == []


@pytest.mark.parametrize(("ms", "broken"), [(2001.0, False), (2019.0, False), (2021.0, True)])
def test_a_value_at_its_limit_breaks_nothing_and_keeps_nothing(ms, broken):
    """2.001 s for 2 s is no worse than 1.99 s: of both the one that changes less is advised, as one with too little room."""
    limits = Limits(checkpoint_ms=2000.0)
    trials = {A: {"": values({"checkpoint_ms": ms})}, B: {"": values({"checkpoint_ms": 1990.0})}}
    at, below = judge(trials, limits, DAY_S, margins=lambda _name, _column: 0.2)

    assert (bool(at.breaks), at.keeps_limits, below.keeps_limits) == (broken, False, True)
    assert choose([at, below], {A: 0, B: 1}).name == (B if broken else A)
    assert below.tight[0].room > 0
    assert broken or at.tight[0].room == pytest.approx(2000 / ms - 1)


def test_a_sink_that_gets_nothing_in_a_trial_loses_nothing():
    """Windows of an hour fire in none: with checkpoints and without them nothing leaves."""
    silent = {
        "throughput_per_second": 0.0,
        "throughput_change": math.nan,
        "emitted_per_second": 400.0,
        "backlog_growth": 0.0,
    }
    own = judge(measured(rows(**silent), now="aligned", unlimited=False), Limits(loss=0.01), DAY_S)[0]

    assert (own.loss, own.per_second, own.breaks) == (0.0, 0.0, ())
    assert watch(own, Limits(), None).roll_back_text().endswith("or under 0/s")
    assert math.isfinite(own.lost)


def test_compacted_files_are_visible_an_interval_later():
    """A file is committed by the checkpoint after the one in which its parts were written."""
    at_once, later = (
        judge(measured(rows(), now="aligned", unlimited=False, intervals_later=n), Limits(), DAY_S)[0].visible_ms
        for n in (0, 1)
    )

    assert later == at_once + 30_000


@pytest.mark.parametrize(
    ("replayed", "caught_up_ms", "busy", "recovery_ms"),
    [
        # 10 s down, 9 s of 1000/s replayed: late already
        (9000.0, 29_000.0, 0.5, 29_000.0),
        # 1 s is replayed, and 11 s of records are caught up in 11 s: 8 s more take 8 s
        (1000.0, 21_000.0, 0.5, 29_000.0),
        # the trial was faster than the busiest subtask says
        (1000.0, 15_500.0, 0.9, 19_500.0),
        # right behind a checkpoint, and slow by chance: the pace is that of the subtask
        (1000.0, 43_000.0, 0.5, 51_000.0),
        (1000.0, math.inf, 0.5, math.inf),
    ],
)
def test_a_failure_at_any_time_counts_as_one_late_in_an_interval(replayed, caught_up_ms, busy, recovery_ms):
    """Every 10 s.  Flink 1.x draws the time of its first checkpoint."""
    failed = pd.DataFrame(
        {
            "offered_per_second": [1000.0],
            "throughput_per_second": [1000.0],
            "downtime_ms": [10_000.0],
            "replayed_records": [replayed],
        }
    )
    late, found_ms = with_late_failures(failed, pd.Series([caught_up_ms]), np.array([10.0]), pd.Series([busy]))

    assert found_ms.tolist() == pytest.approx([recovery_ms])
    assert late["replayed_records"].tolist() == [9000.0]


@pytest.mark.parametrize(
    ("emitted", "sync_ms", "busy", "expected"),
    [
        (380.0, 0.0, 0.5, True),  # 20/s are missing in 100 s: 2000 records, which are due in 5 s
        (380.0, 5100.0, 0.5, False),
        (380.0, 4900.0, 0.5, True),
        (380.0, 5100.0, 0.98, True),  # it does not catch up between two checkpoints
        (400.0, 5100.0, 0.5, False),
    ],
)
def test_a_pause_in_which_a_trial_ends_is_not_a_job_that_falls_behind(emitted, sync_ms, busy, expected):
    row = {"offered_per_second": 400.0, "emitted_per_second": emitted, "busiest_subtask_share": busy}
    steady = pd.DataFrame([row | {"tail_sync_ms": sync_ms, "tail_pre_barrier_ms": 0.0, "ended_s": 100.0}])

    assert falls_behind(steady).tolist() == [expected]


@pytest.mark.parametrize(("sync_ms", "loss"), [(0.0, 0.05), (20_000.0, 0.0)])
def test_a_backlog_of_one_pause_is_no_loss(sync_ms, loss):
    """5 % of 400/s in a minute and a half are less than what is due in 20 s."""
    assert found(rows(backlog_growth=1800.0, tail_sync_ms=sync_ms))["loss"] == pytest.approx(loss)
