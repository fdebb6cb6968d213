"""Effects of differences: pairs of runs, bounds, and what leads."""

import math

import pandas as pd
import pytest

from sim.studies.effects import leading, quantities, unlike_failures

ROW = {
    "status": "ok",
    "nothing": "",
    "unfinished": "",
    "completed": 50,
    "violations": 0,
    "job_status": "RUNNING",
    "failure_kinds": "",
}


def rows(sides, column="end_to_end_p50_ms", **others):
    return pd.DataFrame(
        [
            {**ROW, "side": side, "replication": i, column: value, **(others if side == "B" else {})}
            for side, values in sides.items()
            for i, value in enumerate(values)
        ]
    )


def of(found, column="end_to_end_p50_ms"):
    return next(own for own in found if own.column == column)


def test_differences_are_of_pairs():
    """A large spread between seeds is none of the difference: 100 -> 110 and 900 -> 930 differ by 20 ± t(1) * 10."""
    found = of(quantities(rows({"A": [100.0, 900.0], "B": [110.0, 930.0]})))

    assert (found.before, found.after, found.change.value) == (500.0, 520.0, 20.0)
    assert pytest.approx(12.706 * 10, rel=1e-3) == found.change.half_width
    assert not found.change.is_sure


def test_a_run_that_did_not_end_gives_a_bound():
    """B took longer than was seen: its value and the change are lower bounds."""
    found = of(quantities(rows({"A": [100.0, 100.0], "B": [300.0, 300.0]}, unfinished="end_to_end_p50_ms")))

    assert found.sides_text() == ("100 ms", "> 300 ms")
    assert found.effect_text() == "> +200 ms"


def test_a_percentile_needs_its_sample():
    """The 99th percentile of 50 checkpoints is none."""
    found = quantities(rows({"A": [1.0, 2.0], "B": [3.0, 4.0]}, "end_to_end_p99_ms"))

    assert "end_to_end_p99_ms" not in [own.column for own in found]


def test_a_failed_run_leaves_the_difference_unknown():
    """Its seed has no pair."""
    broken = rows({"A": [100.0, 200.0], "B": [110.0, 210.0]})
    broken.loc[3, "status"] = "error"

    assert math.isnan(of(quantities(broken)).change.value)


def test_what_failures_cost_is_compared_between_failures_of_one_cause():
    """A lost TaskManager beside a failed task: both values, no change; if one failure restarts fewer tasks, that is its effect."""
    kinds = {
        "a": "1 task (all tasks restart)",
        "b": "1 task (some tasks restart)",
        "c": "3 task-manager (all tasks restart)",
    }
    sides = {"A": [100.0, 110.0], "B": [300.0, 320.0]}
    cause, extent, same = (
        rows(sides, "caught_up_ms").assign(failure_kinds=[kinds["a"]] * 2 + [kinds[b]] * 2) for b in "cba"
    )

    assert (of(quantities(cause), "caught_up_ms").text, leading(quantities(cause))) == (
        "time until caught up after a failure: 105 ms -> 310 ms",
        None,
    )
    assert unlike_failures(cause).endswith(
        "A has 2 x task (all tasks restart); B has 6 x task-manager (all tasks restart)"
    )
    assert of(quantities(extent), "caught_up_ms").change.value == 205.0
    assert "B has 2 x task (some tasks restart)" in unlike_failures(extent)
    assert unlike_failures(same) == ""


def test_what_leads_changes_surely():
    """A change within the spread of the seeds leads nothing."""
    noisy = quantities(rows({"A": [100.0, 200.0, 300.0], "B": [150.0, 150.0, 330.0]}))
    sure = quantities(rows({"A": [100.0, 200.0, 300.0], "B": [150.0, 250.0, 350.0]}))

    assert leading(noisy) is None
    assert leading(sure).column == "end_to_end_p50_ms"
