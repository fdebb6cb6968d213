"""What the history of a job allows to be claimed: tails, and how sure anybody can be."""

import math

import numpy as np
import pytest

from sim.advice.judgement import MEASURED, Choice, Limits, judge
from sim.advice.uncertainty import (
    DEFAULT_ERROR,
    RECOVERY_ERROR,
    doubts,
    margins,
    remarks,
    with_capped_confidence,
    with_corrected_durations,
)
from sim.jobs.evidence.what_ifs import within
from sim.model.scenario import Backtest, ComparedQuantity, OtherSettings, Quantiles

TODAY, OTHER = ("10 s", "aligned"), ("10 s", "unaligned")
LIMIT = Limits(checkpoint_ms=1000)
ALWAYS = Choice(TODAY, 0.98, 1.0, ())
# A window of seven seconds fires in front of every other checkpoint: seven of 14 took longer than a second, simulated none does.
LONGEST = (2200.0, 2180.0, 2100.0, 1900.0, 1500.0, 1200.0, 1100.0, 140.0, 130.0, 120.0, 110.0, 110.0, 100.0, 100.0)
WINDOW = Backtest(
    (ComparedQuantity("end-to-end", Quantiles(620, 2180, 2200, 14), Quantiles(110, 133, 140, 42), off=("p90",)),),
    LONGEST,
    tail=2180 / 133,
)
HOLDS = Backtest(
    (ComparedQuantity("end-to-end", Quantiles(110, 130, 140, 14), Quantiles(110, 133, 140, 42)),), LONGEST[7:] * 2
)


def trials(*durations_ms, completed=5.0):
    """The rows of both settings, a replication per duration."""
    row = dict.fromkeys(MEASURED, 0.0) | {"completed": completed, "per_second": 100.0, "visible_ms": math.nan}
    values = np.array([list((row | {"checkpoint_ms": ms, "longest_ms": ms}).values()) for ms in durations_ms])
    return {name: {"": values.copy()} for name in (TODAY, OTHER)}


def no_range(_):
    """Recoveries do not differ from run to run."""
    return 0.0


def changed(*kinds):
    return lambda _: kinds


def settings(found, limits=LIMIT):
    return {setting.name: setting for setting in judge(found, limits, 86_400.0)}


def test_a_history_that_breaks_the_limit_is_broken_by_today():
    """However fast the simulation is; the other setting's tail is assumed to be as long."""
    found = settings(with_corrected_durations(trials(100.0, 120.0), WINDOW, TODAY, {}))

    assert ("checkpoint_ms",) == found[TODAY].breaks == found[OTHER].breaks
    assert found[TODAY].checkpoint_ms == 2200
    assert pytest.approx(found[OTHER].checkpoint_ms) == 110 * 2180 / 133


def test_a_file_without_a_history_changes_nothing():
    before = trials(150.0)

    assert np.array_equal(
        before[TODAY][""], with_corrected_durations(before, None, TODAY, {})[TODAY][""], equal_nan=True
    )
    assert with_capped_confidence(ALWAYS, None, LIMIT) == ALWAYS
    assert remarks(None, LIMIT) == []


def test_confidence_is_capped_by_the_agreement():
    """By the tail only if a limit is on it."""
    slow = ComparedQuantity("throughput", Quantiles(100, 100, 100, 1), Quantiles(40, 40, 40, 3), off=("p50",))

    assert pytest.approx(with_capped_confidence(ALWAYS, WINDOW, LIMIT).same_setting) == 133 / 2180
    assert with_capped_confidence(ALWAYS, WINDOW, Limits()).same_setting == 0.98
    assert with_capped_confidence(ALWAYS, Backtest((slow,)), Limits()).same_setting == 0.4
    assert doubts(Backtest((slow,)), Limits()) == "throughput p50 -60 %"
    assert doubts(WINDOW, LIMIT) == "end-to-end p90 -94 %, tail -94 %"


def test_a_simulation_without_checkpoints_allows_no_confidence():
    nothing = Backtest(
        (ComparedQuantity("end-to-end", Quantiles(110, 130, 140, 14), Quantiles(), off=("p50", "p90")),), LONGEST[7:]
    )

    assert with_capped_confidence(ALWAYS, nothing, Limits()).same_setting == 0.0


def test_what_the_history_says_of_the_limit():
    history, tail = remarks(WINDOW, LIMIT)

    assert (
        "History: 7 of 14 recorded checkpoints took longer than 1 s, the longest 2.2 s; fewer than 100 show" in history
    )
    assert "Tails are taken 16 times as long as simulated" in tail
    assert "an assumption" in tail
    assert remarks(WINDOW, Limits()) == []


def test_predictions_may_be_off_as_the_history_says():
    """Today's as its own backtest is, others by the factor of what they change; recoveries as published ones are."""
    off = ComparedQuantity("end-to-end", Quantiles(110, 150, 150, 14), Quantiles(110, 120, 140, 42), off=("p90",))
    jobs = [Backtest((row,), other_settings=OtherSettings(1.3, 1.56)) for row in (HOLDS.compared[0], off)]
    agreeing, disagreeing = (margins(job, TODAY, changed("barriers"), no_range) for job in jobs)
    other, slower = (within(kinds) - 1 for kinds in (("barriers",), ("storage", "load")))

    assert (0.0, other) == (agreeing(TODAY, "checkpoint_ms"), agreeing(OTHER, "checkpoint_ms"))
    assert (pytest.approx(0.25), other) == (disagreeing(TODAY, "checkpoint_ms"), disagreeing(OTHER, "checkpoint_ms"))
    assert other != slower == margins(jobs[0], TODAY, changed("storage", "load"), no_range)(OTHER, "checkpoint_ms")
    assert (agreeing(OTHER, "loss"), agreeing(TODAY, "recovery_ms")) == (DEFAULT_ERROR, RECOVERY_ERROR)
    assert margins(None, None, changed(), lambda _: 0.7)(OTHER, "recovery_ms") == 0.7  # as wide as heartbeats make it
    assert tuple(
        margins(None, None, changed(), no_range)(OTHER, column)
        for column in ("checkpoint_ms", "visible_ms", "recovery_ms")
    ) == (DEFAULT_ERROR, DEFAULT_ERROR, RECOVERY_ERROR)


def test_a_history_without_its_longest_checkpoints_says_so():
    """As files of older imports have it: nothing is claimed of the limit, and nothing fails."""
    (line,) = remarks(Backtest(HOLDS.compared), LIMIT)

    assert "History: its longest checkpoints are not known" in line
    assert (
        settings(with_corrected_durations(trials(150.0), Backtest(HOLDS.compared), TODAY, {}))[TODAY].checkpoint_ms
        == 150.0
    )
