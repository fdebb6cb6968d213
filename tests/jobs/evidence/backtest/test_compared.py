"""Observed and predicted values: which differences are no repetition, and what is shown of several vertices."""

import pytest

from sim.jobs.evidence.backtest import compare_quantities
from sim.jobs.evidence.prediction import observation_table


def observations(quantity, values):
    return observation_table([(quantity, "", number, False, float(value)) for number, value in enumerate(values, 2)])


def off(quantity, observed, predicted):
    (row,) = compare_quantities(observations(quantity, observed), observations(quantity, predicted))
    return row.off


SPREAD = [1000 + 10 * i for i in range(24)]  # p50 1115, p90 1207


@pytest.mark.parametrize(
    ("what", "observed", "predicted", "expected"),
    [
        ("the same", SPREAD, SPREAD, ()),
        ("a median inside of what 24 samples allow", SPREAD, [1160] * 24, ()),
        (
            "a tail that the history has and the prediction has not",
            [200] * 12 + [1000] * 12,
            [200] * 13 + [210] * 11,
            ("p90",),
        ),
        ("a shift", SPREAD, [value / 2 for value in SPREAD], ("p50", "p90")),
        ("a shift below the noise of durations", [10] * 24, [60] * 24, ()),
        (
            "a shift below what repetitions differ by",
            [10_000 + i for i in range(24)],
            [10_300 + i for i in range(24)],
            (),
        ),
        ("nothing predicted", SPREAD, [], ("p50", "p90")),
        ("five checkpoints tell no quantile", [1000] * 5, [1200] * 5, ()),
    ],
)
def test_what_is_off(what, observed, predicted, expected):
    """By noise floor, by repetition, and by what as few samples can show."""
    assert expected == off("end_to_end_duration", observed, predicted), what


def test_chance_is_not_judged():
    """What is taken while aligning differs between two runs of one job; alignment may differ by a factor of two."""
    assert off("processed_data", [0] * 24, [10**6] * 24) == ()
    assert off("alignment_duration", [1000] * 24, [1900] * 24) == ()
    assert off("alignment_duration", [1000] * 24, [450] * 24) == ("p50", "p90")
