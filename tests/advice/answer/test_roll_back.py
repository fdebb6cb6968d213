"""The rule for taking an advised setting back: nothing that the prediction allows for breaks it."""

import math
import re
from random import Random
from types import SimpleNamespace

import pytest

from sim.advice.answer import (
    BACKEND_ERROR_FACTOR,
    MAX_RESCALED_SHORTFALL,
    MAX_SHORTFALL,
    P50_ERROR_FACTOR,
    WATCHED_CHECKPOINTS,
    watch,
)
from sim.advice.judgement import Limits
from sim.jobs.evidence.what_ifs import factors_of
from sim.model.scenario import Backtest, OtherSettings
from sim.model.units import parse_duration
from sim.results.formats import ms_text, per_second_text

KINDS = [
    (),
    ("barriers",),
    ("interval",),
    ("parallelism",),
    ("storage", "load"),
    ("backend",),
    ("barriers", "interval"),
]


def printed_rate(per_second):
    """The rate as its text says it."""
    number, unit = re.fullmatch(r"([\d.e+]+)([kMG]?)/s", per_second_text(per_second)).groups()
    return float(number) * {"": 1, "k": 1e3, "M": 1e6, "G": 1e9}[unit]


def advices(random):
    for _ in range(400):
        p50 = 10 ** random.uniform(0.5, 6)
        p90 = p50 * random.choice([1.0, random.uniform(1, 4)])
        chosen = SimpleNamespace(
            checkpoint_p50_ms=p50,
            checkpoint_p90_ms=p90,
            checkpoint_ms=p90,
            longest_ms=p90 * random.uniform(1, 2),
            checkpointed_bytes=1e7,
            per_second=10 ** random.uniform(-1, 7),
        )
        limit_ms = parse_duration(ms_text(p50 * random.uniform(0.5, 5))) / 1e6  # as it is printed
        limits = Limits(checkpoint_ms=random.choice([None, limit_ms]))
        history = random.choice(
            [None, Backtest((), other_settings=OtherSettings(random.uniform(1, 2), random.uniform(1, 3)))]
        )
        yield chosen, limits, history, random.choice(KINDS), random.random() < 0.5


def factors(history, kinds):
    """Of the median and of the longest."""
    known = None if history is None else factors_of(history, kinds)
    usual = BACKEND_ERROR_FACTOR if "backend" in kinds else P50_ERROR_FACTOR
    return [
        usual if known is None or own > 1e9 else own for own in ((0, 0) if known is None else (known.p50, known.p90))
    ]


def test_what_is_observed_within_the_factors_and_the_limit_is_no_reason_to_go_back():
    """As it is printed: of 400 advices with and without limits and a history.  At night less arrives.

    A limit that the prediction just keeps is no reason either: its longest checkpoint may be off as predictions are.
    """
    for chosen, limits, history, kinds, keeps_up in advices(Random(3)):
        ranges = watch(chosen, limits, history, kinds, keeps_up=keeps_up)
        of_median, of_longest = factors(history, kinds)
        longest_ms = max(limits.checkpoint_ms or 0.0, chosen.longest_ms * of_longest)
        slower = MAX_RESCALED_SHORTFALL if "parallelism" in kinds else MAX_SHORTFALL

        assert parse_duration(ms_text(ranges.roll_back_above_p50_ms)) / 1e6 >= chosen.checkpoint_p50_ms * of_median
        assert (ranges.roll_back_above_longest_ms is None) == (limits.checkpoint_ms is None)
        assert ranges.roll_back_above_longest_ms is None or (
            parse_duration(ms_text(ranges.roll_back_above_longest_ms)) / 1e6 >= longest_ms * (1 - 1e-9)
        )
        assert printed_rate(ranges.roll_back_below_per_second) <= chosen.per_second * (1 - slower) * (1 + 1e-9)
        assert keeps_up == ("lag grows" in ranges.roll_back_text())
        is_beyond = (ranges.roll_back_above_longest_ms or 0.0) > (limits.checkpoint_ms or math.inf)
        assert is_beyond == ("is within the error of the prediction" in ranges.roll_back_text(limits.checkpoint_ms))


@pytest.mark.parametrize("spread", [1.0, 1.5, 3.0])
def test_medians_of_few_checkpoints_scatter(spread):
    """Of a distribution whose p90 is so many times its p50, hardly a median of ten is beyond the bound, though each is as predicted."""
    random = Random(5)
    chosen = SimpleNamespace(
        checkpoint_p50_ms=100.0,
        checkpoint_p90_ms=100.0 * spread,
        checkpoint_ms=100.0 * spread,
        longest_ms=100.0 * spread,
        checkpointed_bytes=1e7,
        per_second=1.0,
    )
    bound = watch(chosen, Limits(), None).roll_back_above_p50_ms / P50_ERROR_FACTOR
    medians = [
        sorted(100.0 * spread ** (random.gauss(0, 1) / 1.2816) for _ in range(WATCHED_CHECKPOINTS))[4:6]
        for _ in range(2000)
    ]

    assert sum(sum(middle) / 2 > bound * 1.001 for middle in medians) <= 2000 * 0.04
