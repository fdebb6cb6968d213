"""From the results of trials to advice, on results made by hand."""

import math
from dataclasses import replace
from itertools import product

import pandas as pd
import pytest

from sim.sweep.advice.judgement import Limits, advise
from sim.sweep.advice.words import advised

DAY_S = 86_400.0
DURATION = {"aligned": 6000.0, "aligned, debloating": 2500.0, "unaligned": 60.0}
COST = {"aligned": 0.0, "aligned, debloating": 0.01, "unaligned": 0.0}


def results(duration=DURATION, cost=COST, noise=0.0, visible=math.nan, intervals=("10 s", "60 s", "600 s"), catch_up=2.0):
    """Recovery is a downtime of 5 s and twice the interval."""
    rows = []
    for k, interval, protocol, trial in product(range(3), intervals, duration, ("undisturbed", "failure")):
        seconds, wobble = float(interval.split()[0]), noise * (k - 1)
        rows.append({
            "status": "ok", "strategy": "aligned", "interval": interval, "protocol": protocol, "trial": trial, "replication": k,
            "throughput_per_second": 1000 * (1 - cost[protocol]), "throughput_change": -cost[protocol], "failed": 0, "interrupted": 0,
            "end_to_end_p99_ms": duration[protocol] * (1 + wobble), "visible_p99_ms": visible, "completed": 4, "persisted_bytes": 1e6,
            "downtime_ms": 5000.0, "replayed_records": 1000 * seconds, "caught_up_ms": 5000 + 1000 * catch_up * seconds,
        })  # fmt: skip
    return pd.DataFrame(rows)


def asked(table, *, today=("600 s", "aligned"), mtbf_s=DAY_S, unlimited=False, **limits):
    return advise(table, limits=Limits(**limits), mtbf_s=mtbf_s, today=today, unlimited=unlimited)


def test_what_keeps_all_limits_and_changes_least():
    """Checkpoints of at most 3 s leave two protocols; the recovery of at most a minute leaves intervals; today's protocol keeps neither."""
    chosen = asked(results(), checkpoint_ms=3000, recovery_ms=60_000).chosen

    assert ("10 s", "unaligned") == chosen.name  # the debloated one loses a per cent of throughput


def test_today_is_good_enough():
    """Nobody changes a job for nothing: a setting that loses a per mille more is as good."""
    advice = asked(results(), today=("60 s", "aligned"), mtbf_s=3 * DAY_S)

    assert advice.chosen is advice.today
    assert ("60 s", "aligned") == advice.chosen.name


def test_fewer_checkpoints_rather_than_more():
    """Of settings that lose as much, the longest interval; of those the simplest protocol."""
    assert ("60 s", "aligned") == asked(results(intervals=("10 s", "60 s")), today=None, mtbf_s=3 * DAY_S).chosen.name


def test_how_often_the_job_fails_decides_the_interval():
    """A failure every ten minutes makes long intervals costly, one a year does not."""
    assert "10 s" == asked(results(), mtbf_s=600, today=None).chosen.interval
    assert "600 s" == asked(results(), mtbf_s=365 * DAY_S, today=None).chosen.interval


def test_no_setting_keeps_the_limits():
    """Each says which it breaks."""
    advice = asked(results(), checkpoint_ms=10, loss=0.005)

    assert advice.chosen is None
    assert {("checkpoint_ms",), ("checkpoint_ms", "loss")} == {setting.breaks for setting in advice.settings}


def test_checkpoints_that_expire_are_not_short():
    table = results(duration={**DURATION, "unaligned": 60.0})
    table.loc[table["protocol"] == "unaligned", "failed"] = 1

    assert "aligned, debloating" == asked(table, checkpoint_ms=3000).chosen.protocol


def test_a_recovery_nobody_saw_is_none():
    """The run ended before the job had caught up."""
    table = results()
    table.loc[table["interval"] == "600 s", "caught_up_ms"] = math.nan

    assert "60 s" == asked(table, mtbf_s=365 * DAY_S, today=None).chosen.interval


def test_a_source_without_end_never_catches_up():
    """What is replayed counts at the job's own pace: 5 s and one interval."""
    setting = asked(results(), unlimited=True, today=None).settings[0]

    assert 15_000 == setting.recovery_ms


def test_output_counts_where_sinks_are_transactional():
    assert asked(results(), visible_ms=1.0).chosen is not None
    assert asked(results(visible=2.0), visible_ms=1.0).chosen is None


def test_confidence_is_what_replications_give():
    """A limit that is kept in two of three is kept by chance."""
    sure = asked(results(), checkpoint_ms=3000).confidence
    close = {"aligned": 2990.0, "unaligned": 60.0}
    unsure = asked(results(duration=close, cost=dict.fromkeys(close, 0.0), noise=0.05), checkpoint_ms=3000)

    assert 1.0 == sure
    assert "aligned" == unsure.chosen.protocol
    assert 0.3 < unsure.confidence < 0.95


def test_theory_stands_beside():
    """0.6 s of every minute are lost: C = 0.6 s."""
    theory = asked(results(duration={"aligned": 60.0}, cost={"aligned": 0.01}, intervals=("60 s",)), today=None).theory

    assert [0.6, 322.0, 321.6, 322.2] == pytest.approx([theory.cost_s, theory.young_s, theory.daly_s, theory.renewal_s], rel=2e-3)
    assert math.isnan(asked(results()).theory.young_s)


def test_words_and_configuration(study):
    """What to do, what changes, what to paste."""
    scenario = study.scenarios[0]
    scenario = replace(scenario, checkpoint=replace(scenario.checkpoint, interval_ns=600 * 10**9))
    table = results().replace({"interval": {"600 s": "10 min", "60 s": "1 min"}})
    told = advised(scenario, table, limits=Limits(checkpoint_ms=3000, recovery_ms=60_000), mtbf_s=DAY_S, unknown=["how fast?"])

    assert told.sentences[0].startswith("Use unaligned, every 10 s. It keeps the limits (recovery at most 60 s, checkpoints at most 3 s).")
    assert "Against today (aligned, every 10 min): checkpoints p99 6 s -> 60 ms, recovery 20 min -> 25 s" in told.sentences[1]
    assert "UNKNOWN: how fast?" == told.sentences[-1]
    assert "execution.checkpointing.interval: 10 s\nexecution.checkpointing.unaligned.enabled: true\n" in told.configuration
    assert ["today, breaks: recovery, checkpoints"] == [row[-1] for row in told.sections[0].rows if row[:2] == ["10 min", "aligned"]]
