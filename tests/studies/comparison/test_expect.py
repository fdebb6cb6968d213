"""Expectations of a scenario."""

import math
from types import SimpleNamespace

import pandas as pd
import pytest

from sim.model.scenario import Run
from sim.model.schema.text import Reading
from sim.studies.expectations import check, expectation


def result(warmup_s=0, *, uploads=False):
    """Five checkpoints, one failed, one pending; two subtasks of one checkpoint; two seconds of one vertex.

    `uploads`: the first checkpoint writes everything, the others little.
    """
    checkpoints = pd.DataFrame(
        {
            "id": [1, 2, 3, 4, 5],
            "status": ["COMPLETED", "COMPLETED", "COMPLETED", "FAILED", "IN_PROGRESS"],
            "trigger_timestamp": [0.0, 1000, 2000, 3000, 4000],
            "end_to_end_duration": [900.0, 100, 300, 60_000, -1],
            "checkpointed_size": [100 if uploads else 1, 1, 1, 1, 0],
            "state_size": [100 if uploads else 1] * 5,
            "persisted_data": 0,
            "savepointFormat": "",
        }
    )
    subtasks = pd.DataFrame({"id": [1, 2, 2], "start_delay": [500.0, 7, -1]})
    series = pd.DataFrame({"time": [1.0, 2.0], "busy": [1.0, 0.5]})
    tables = {"checkpoints": checkpoints, "subtasks": subtasks, "series": series}
    run = Run(3600 * 10**9, int(warmup_s * 1e9))
    return SimpleNamespace(tables=tables, checkpoints=checkpoints, scenario=SimpleNamespace(run=run))


@pytest.mark.parametrize(
    ("value", "metric", "condition"),
    [
        (900, "checkpoints.end_to_end_duration.max", "< 1 s"),
        (300, "checkpoints.end_to_end_duration.p50", "<= 300 ms"),
        (3, "checkpoints.completed", "== 3"),
        (1, "checkpoints.failed", "> 0"),
        (3, "checkpoints.id.count", ">= 3"),
        (253.5, "subtasks.start_delay.mean", "!= 1 s"),
        (0.75, "series.busy.mean", "< 80 %"),
    ],
)
def test_metrics_and_conditions(value, metric, condition):
    """Completed checkpoints, times that happened; the bound in its own unit."""
    line = expectation(metric, condition)

    assert value == line.value([result()]).number
    assert line.holds(line.value([result()]))


def test_the_warm_up_is_left_out():
    """In every table that has a time."""
    values = {
        metric: expectation(metric, condition).value([result(warmup_s=1)]).number
        for metric, condition in (
            ("checkpoints.completed", "> 0"),
            ("checkpoints.end_to_end_duration.max", "< 1 s"),
            ("subtasks.start_delay.max", "< 1 s"),
            ("series.busy.mean", "< 1 %"),
        )
    }

    assert list(values.values()) == [2, 300, 7, 0.5]


def test_replications_are_one_sample():
    assert expectation("checkpoints.completed", "== 6").value([result(), result()]).number == 6


def test_nothing_measured_meets_no_bound():
    """An expectation that cannot be judged has failed."""
    for condition in ("< 1 h", "!= 1 h"):
        line = expectation("checkpoints.end_to_end_duration.p99", condition)
        value = line.value([result(warmup_s=100)])

        assert math.isnan(value.number)
        assert not line.holds(value)
        assert line.reached(value) == "it is unknown: nothing was measured"


def test_the_number_of_nothing_is_zero():
    line = expectation("checkpoints.id.count", ">= 1")

    assert line.value([result(warmup_s=100)]).number == 0
    assert not line.holds(line.value([result(warmup_s=100)]))


def test_a_percentile_of_too_few_is_unknown():
    """Whatever its bound; pooled replications are the sample."""
    line = expectation("checkpoints.end_to_end_duration.p90", "< 1 h")
    few, enough = line.value([result()] * 3), line.value([result()] * 4)

    assert (few.sample, enough.sample) == (9, 12)
    assert not line.holds(few)
    assert (
        line.reached(few)
        == "it is unknown: p90 needs 10 rows, there are 9; run longer, raise run.replications, or expect something of max"
    )
    assert line.holds(enough)
    assert line.reached(enough) == "it is 900 ms"


def test_percentiles_and_means_are_of_those_after_a_first_upload():
    """As in the table; the longest of all is what it is."""
    names = ("p50", "mean", "max", "count")
    lines = [
        expectation(f"checkpoints.end_to_end_duration.{name}", "> 0 s" if name != "count" else "> 0") for name in names
    ]

    assert [300, pytest.approx(1300 / 3), 900, 3] == [line.value([result()]).number for line in lines]
    assert [line.value([result(uploads=True)]).number for line in lines] == [200, 200, 900, 3]


@pytest.mark.parametrize(
    ("message", "metric", "condition"),
    [
        ("unknown table 'checkpoint' (did you mean 'checkpoints'?)", "checkpoint.end_to_end_duration.p99", "< 1 s"),
        ("unknown column 'duration'", "checkpoints.duration.p99", "< 1 s"),
        (
            "unknown column 'end_to_end_durations' (did you mean 'end_to_end_duration'?)",
            "checkpoints.end_to_end_durations.p99",
            "< 1 s",
        ),
        ("unknown statistic 'p101'", "checkpoints.end_to_end_duration.p101", "< 1 s"),
        ("unknown statistic 'median'", "checkpoints.end_to_end_duration.median", "< 1 s"),
        ("is not a condition", "checkpoints.end_to_end_duration.p99", "60 s"),
        ("needs a unit", "checkpoints.end_to_end_duration.p99", "< 60"),
        ("a size was expected", "checkpoints.persisted_data.max", "< 60 MB/s"),
        ("unknown column 'finished'", "checkpoints.finished", "== 1"),
        ("write checkpoints.completed: '>= 3'", "checkpoints.completed.count", ">= 3"),
    ],
)
def test_what_cannot_be_judged_is_an_error(message, metric, condition):
    """Never a pass; one line that names the metric."""
    reading = Reading("job.yaml")
    check([(metric, condition)], reading)
    (problem,) = map(str, reading.problems)

    assert message in problem
    assert f"expect.{metric}" in problem
    assert "\n" not in problem
