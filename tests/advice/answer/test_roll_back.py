"""The rule for taking an advised setting back: nothing that the prediction allows for breaks it."""

import math
import re
from random import Random
from types import SimpleNamespace

import pytest

from sim.advice.judgement import Limits
from sim.advice.warnings import (
    BACKEND_ERROR_FACTOR,
    MAX_RESCALED_SHORTFALL,
    MAX_SHORTFALL,
    P50_ERROR_FACTOR,
    WATCHED_CHECKPOINTS,
    watch,
)
from sim.jobs.evidence.what_ifs import factors_of
from sim.model.backtest import Backtest, OtherSettings
from sim.model.units import parse_duration
from sim.results.formats import ms_text

KINDS = [
    (),
    ("barriers",),
    ("interval",),
    ("parallelism",),
    ("storage", "load"),
    ("backend",),
    ("barriers", "interval"),
]
RATE = re.compile(r"under ([\d.e+]+)([kMG]?)/s")


def is_broken(rule, p50_ms, longest_ms, per_second, *, lag_grows):
    """Whether the rule, as it is printed, says to go back."""
    p50, longest, rate = (
        re.search(r"p50 of 10 > ([^,]+),", rule),
        re.search(r"longest > ([^,]+),", rule),
        RATE.search(rule),
    )
    least = float(rate[1]) * {"": 1, "k": 1e3, "M": 1e6, "G": 1e9}[rate[2]]
    over_p50 = p50_ms > parse_duration(p50[1]) / 1e6
    over_longest = longest is not None and longest_ms > parse_duration(longest[1]) / 1e6
    return over_p50 or over_longest or (per_second < least and (lag_grows or "lag grows" not in rule))


def advices(random, count=400):
    for _ in range(count):
        p50 = 10 ** random.uniform(0.5, 6)
        p90 = p50 * random.choice([1.0, random.uniform(1, 4)])
        chosen = SimpleNamespace(
            checkpoint_p50_ms=p50, checkpoint_p90_ms=p90, written_per_hour=1e9, per_second=10 ** random.uniform(-1, 7)
        )
        limit_ms = parse_duration(ms_text(p50 * random.uniform(0.5, 5))) / 1e6  # as it is printed
        limits = Limits(checkpoint_ms=random.choice([None, limit_ms]))
        history = random.choice(
            [None, Backtest((), other_settings=OtherSettings(random.uniform(1, 2), random.uniform(1, 3)))]
        )
        yield chosen, limits, history, random.choice(KINDS), random.random() < 0.5


def factor_of(history, kinds):
    known = None if history is None else factors_of(history, kinds)
    usual = BACKEND_ERROR_FACTOR if "backend" in kinds else P50_ERROR_FACTOR
    return usual if known is None or known.p50 > 1e9 else known.p50


def test_what_is_observed_within_the_factors_and_the_limit_is_no_reason_to_go_back():
    """At both ends of each range, and anywhere between, as printed: of 400 advices with and without limits and a history."""
    random = Random(3)
    for chosen, limits, history, kinds, keeps_up in advices(random):
        rule = watch(chosen, limits, history, 30.0, kinds, keeps_up=keeps_up).roll_back_text()
        limit_ms = limits.checkpoint_ms or math.inf
        slower = MAX_RESCALED_SHORTFALL if "parallelism" in kinds else MAX_SHORTFALL
        for share in (-1.0, 1.0, random.uniform(-1, 1)):
            p50 = min(chosen.checkpoint_p50_ms * factor_of(history, kinds) ** share, limit_ms)
            longest = limit_ms
            served = chosen.per_second * (1 - slower * max(share, 0.0))
            assert not is_broken(rule, p50, longest, served * (1 + 1e-9), lag_grows=True), (rule, p50, longest, served)


def test_twice_the_bounds_are_a_reason_to_go_back():
    """The rule says something: it is broken by what no prediction allows for."""
    random = Random(4)
    for chosen, limits, history, kinds, keeps_up in advices(random, 50):
        own = watch(chosen, limits, history, 30.0, kinds, keeps_up=keeps_up)
        rule, served = own.roll_back_text(), chosen.per_second
        beyond = 1.01 * (limits.checkpoint_ms or math.inf)

        assert is_broken(rule, 2 * own.roll_back_above_p50_ms, 0.0, served, lag_grows=False)
        assert is_broken(rule, 0.0, 0.0, served / 2, lag_grows=True)
        assert keeps_up != is_broken(rule, 0.0, 0.0, served / 2, lag_grows=False)  # at night less arrives
        if own.roll_back_above_longest_ms is not None:
            assert is_broken(rule, 0.0, 2 * own.roll_back_above_longest_ms, served, lag_grows=False)
            assert is_broken(rule, 0.0, beyond, served, lag_grows=False)
            assert is_broken(rule, beyond, 0.0, served, lag_grows=False)


@pytest.mark.parametrize("spread", [1.0, 1.5, 3.0])
def test_medians_of_few_checkpoints_scatter(spread):
    """Of a distribution whose p90 is so many times its p50, hardly a median of ten is beyond the bound, though each is as predicted."""
    random = Random(5)
    chosen = SimpleNamespace(
        checkpoint_p50_ms=100.0, checkpoint_p90_ms=100.0 * spread, written_per_hour=1e9, per_second=1.0
    )
    bound = watch(chosen, Limits(), None, 30.0).roll_back_above_p50_ms / P50_ERROR_FACTOR
    medians = [
        sorted(100.0 * spread ** (random.gauss(0, 1) / 1.2816) for _ in range(WATCHED_CHECKPOINTS))[4:6]
        for _ in range(2000)
    ]

    assert sum(sum(middle) / 2 > bound * 1.001 for middle in medians) <= 2000 * 0.04
