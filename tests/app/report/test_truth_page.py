"""The table of truth as a page: words for quantities, units, and what is not known."""

import math

import pandas as pd
import pytest

from sim.app.report.truth_page import quantity_words, truth_page


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("numRecordsOutPerSecond", "records out per second"),
        ("busyTimeMsPerSecond", "busy time"),
        ("end_to_end_duration (first)", "checkpoint duration (first)"),
        ("start_delay", "start delay"),
    ],
)
def test_a_quantity_has_words(name, expected):
    assert expected == quantity_words(name)


def test_what_is_not_known_is_a_dash():
    """And counts neither in the table of errors nor in the verdict."""
    sides = {
        f"{side}_{name}": value
        for side, value in (("observed", 5.0), ("predicted", 6.0))
        for name in ("p10", "p50", "p90")
    }
    rows = [
        {"recording": "r", "quantity": "end_to_end_duration", "vertex": None, **sides, "relative_error": 0.2},
        {
            "recording": "r",
            "quantity": "sync_duration",
            "vertex": "v",
            **sides,
            "predicted_p50": math.nan,
            "relative_error": math.nan,
        },
    ]
    page = truth_page(pd.DataFrame(rows), {"end_to_end_duration": "ms", "sync_duration": "ms"}, [], "")
    summary, _, table = page.blocks

    assert summary.table.rows == [["checkpoint duration", "1", "20.0 %", "20.0 %"]]
    assert "-" == table.table.rows[1][-1] == table.table.rows[1][5]
    assert page.verdict == "1 recording, 1 quantities. Checkpoint durations are off by 20.0 % in the median."
