"""Observed and predicted values: which differences are no repetition, and what is shown of several vertices."""

import pandas as pd
import pytest

from sim.jobs.evidence.backtest import compare_quantities, row_per_quantity
from sim.jobs.observations import observation_table
from sim.model.quantities import of_history


def observations(quantity, values, vertex=""):
    return observation_table(
        [(quantity, vertex, number, False, float(value)) for number, value in enumerate(values, 2)]
    )


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


def test_too_few_samples_bound_a_tail_from_one_side_only():
    """Ten checkpoints do not show that the 90 % quantile is below a prediction; they do show that it is above."""
    observed = [1000 + i for i in range(10)]

    assert off("end_to_end_duration", observed, [5000] * 10) == ("p50",)
    assert off("end_to_end_duration", observed, [100] * 10) == ("p50", "p90")


def test_chance_is_not_judged():
    """What is taken while aligning differs between two runs of one job; alignment may differ by a factor of two."""
    assert off("processed_data", [0] * 24, [10**6] * 24) == ()
    assert off("alignment_duration", [1000] * 24, [1900] * 24) == ()
    assert off("alignment_duration", [1000] * 24, [450] * 24) == ("p50", "p90")


def test_the_first_checkpoint_is_left_out():
    """It meets queues that are not yet full."""
    rows = [
        ("end_to_end_duration", "", number, number == 1, 9000.0 if number == 1 else 1000.0) for number in range(1, 8)
    ]
    (row,) = compare_quantities(observation_table(rows), observation_table(rows))

    assert (row.observed.largest, row.observed.count) == (1000, 6)


def test_a_number_of_the_complete_history_has_no_tail():
    """Throughput is one number of a history; three runs predict three."""
    (row,) = compare_quantities(
        observations("numRecordsInPerSecond", [1000], "sink"), observations("numRecordsInPerSecond", [900] * 3, "sink")
    )

    assert (row.off, row.vertex, row.agreement("p50")) == (("p50",), "sink", 0.9)


def test_of_several_vertices_that_which_is_off_by_most():
    """Else the one where most is observed."""

    def chosen(first, second):
        observed, predicted = (
            pd.concat([observations("sync_duration", [a] * 8, "a"), observations("sync_duration", [b] * 8, "b")])
            for a, b in ((1000, 500), (first, second))
        )
        (row,) = row_per_quantity(compare_quantities(observed, predicted))
        return row.vertex

    assert chosen(1000, 500) == "a"
    assert chosen(1000, 900) == "b"
    assert chosen(1200, 900) == "b"


def test_every_quantity_is_compared():
    """In the order of reading; those that share a key follow each other."""
    seen = [(key, quantity.name) for key, own in of_history().items() for quantity in own]
    table = pd.concat([observations(name, [1000.0] * 9) for _, name in reversed(seen)])

    assert [key for key, _ in seen] == [row.quantity for row in compare_quantities(table, table)]
