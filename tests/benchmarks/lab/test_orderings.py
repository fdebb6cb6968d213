"""Recordings that differ in one setting are found by their configurations, and predictions must put them in the same order."""

import pandas as pd
import pytest

from benchmarks.lab.orderings import orderings, spreads

ALIGNED, UNALIGNED, SHORT = (
    {"barriers": "aligned"},
    {"barriers": "unaligned"},
    {"barriers": "aligned", "interval": "1 s"},
)


def rows_of(**recordings):
    """(quantity, vertex, observed p10, p50, p90, predicted p50) per recording."""
    rows = [(name, *row) for name, rows in recordings.items() for row in rows]
    return pd.DataFrame(
        rows,
        columns=["recording", "quantity", "vertex", "observed_p10", "observed_p50", "observed_p90", "predicted_p50"],
    )


def duration(observed, predicted, spread=0):
    return [("end_to_end_duration", None, observed - spread, observed, observed + spread, predicted)]


def test_one_setting_and_more_than_noise():
    """Right, wrong, and the same: where nothing differs in prediction, no order is predicted."""
    settings = {"a": ALIGNED, "b": UNALIGNED, "c": SHORT}

    for predicted, right in ((600, True), (1400, False), (1000, False)):
        found = orderings(rows_of(a=duration(1000, 1000), b=duration(500, predicted), c=duration(200, 200)), settings)

        assert [
            ("barriers: aligned -> unaligned", "a", "b", right),
            ("interval: unset -> 1 s", "a", "c", True),
        ] == list(found[["setting", "one", "other", "right"]].itertuples(index=False, name=None))


@pytest.mark.parametrize(
    ("first", "other"),
    [
        (duration(100, 100), duration(150, 90)),
        (duration(1000, 9), duration(1030, 8)),
        (duration(1000, 9, 200), duration(1150, 8)),
    ],
    ids=["less than 60 ms", "less than repetitions differ", "within what its own checkpoints differ"],
)
def test_noise_has_no_order(first, other):
    assert orderings(rows_of(a=first, b=other), {"a": ALIGNED, "b": UNALIGNED}).empty


def test_repetitions_count_as_one_and_widen_the_spread():
    """Two runs of one configuration 20 % apart: a difference of 15 % to their mean tells nothing, one of 50 % does."""
    runs = {"a": duration(900, 1000), "again": duration(1100, 1000)}
    settings = {"a": ALIGNED, "again": ALIGNED, "b": UNALIGNED}

    assert pytest.approx(0.2) == spreads(rows_of(**runs), settings)["end_to_end_duration"]
    assert orderings(rows_of(**runs, b=duration(1150, 900)), settings).empty
    rows = orderings(rows_of(**runs, b=duration(500, 400)), settings)[["observed_one", "observed_other", "right"]]
    assert list(rows.itertuples(index=False, name=None)) == [(1000.0, 500.0, True)]
