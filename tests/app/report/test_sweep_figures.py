"""Figures of a sweep: intervals that stay above zero, with words for columns."""

import re
from itertools import pairwise

import pandas as pd
import pytest

from sim.app.report.figures import intervals
from sim.results.charts import to_figure
from sim.results.summary import in_words
from sim.results.sweep_answers import Limit
from tests.app.report.marks import marks_of

SETTINGS = ["interval", "barriers"]


@pytest.fixture
def rows():
    values = [
        ("1 s", "aligned", 1, 10.0),
        ("1 s", "aligned", 2, 400.0),
        ("9 s", "aligned", 1, 30.0),
        ("9 s", "unaligned", 1, 5.0),
    ]
    return pd.DataFrame(
        [
            {
                "interval": interval,
                "barriers": barriers,
                "replication": seed,
                "strategy": barriers,
                "status": "ok",
                "end_to_end_p99_ms": ms,
                "throughput_per_second": 100.0,
            }
            for interval, barriers, seed, ms in values
        ]
    )


def test_columns_have_words():
    assert in_words("end_to_end_p99_ms") == "checkpoint duration, p99"
    assert in_words("throughput_change") == "throughput against no checkpoints"
    assert in_words("delay_mean_s") == "mean delay of records"
    assert in_words("start_delay_ms") == "start delay, median"
    assert in_words("lost_records") == "lost records"


def test_intervals_of_durations_do_not_reach_below_zero(rows):
    """Two runs of 10 and 400 ms have a wide one."""
    drawn = intervals(rows, SETTINGS, ["end_to_end_p99_ms", "throughput_per_second"])

    assert marks_of(drawn, 0, "span")["x"].min() == 0.0
    assert [panel.title for panel in drawn.panels] == ["checkpoint duration, p99", "throughput"]


def test_labels_below_an_axis_do_not_touch(rows):
    """From 254 to 642 ms matplotlib would write nine of them."""
    rows = rows.assign(end_to_end_p99_ms=[254.0, 265.0, 642.0, 628.0])
    drawn = to_figure(intervals(rows, SETTINGS, ["end_to_end_p99_ms", "throughput_per_second"]))
    drawn.draw_without_rendering()
    axes = drawn.axes[0]
    low, high = axes.get_xlim()
    ticks = [tick.label1 for tick in axes.xaxis.get_major_ticks() if low <= tick.get_loc() <= high]
    boxes = [label.get_window_extent() for label in ticks]

    assert len(boxes) > 2
    assert all(after.x0 - before.x1 > 5 for before, after in pairwise(boxes))


def test_an_axis_that_is_cut_says_where_it_begins(rows):
    """Values between 0.9 and 1 s leave no room below them for 0; those between 5 and 400 ms begin there."""
    near = intervals(rows.assign(end_to_end_p99_ms=[900.0, 920.0, 1000.0, 950.0]), SETTINGS, ["end_to_end_p99_ms"])
    far = intervals(rows, SETTINGS, ["end_to_end_p99_ms"])

    assert re.fullmatch(r"from 0?\.?\d+ m?s", near.panels[0].x.heading), near.panels[0].x.heading
    assert near.panels[0].x.low < marks_of(near, 0, "span")["x"].min()
    assert (far.panels[0].x.heading, far.panels[0].x.low) == ("", 0.0)


def test_areas_beyond_limits_are_shaded_and_lower_bounds_are_rings(rows):
    """A run that ends before the checkpoint does gives at least its value."""
    rows["unfinished"] = ["", "", "end_to_end_p99_ms", ""]
    limits = [Limit("end_to_end_p99_ms", at_most=300.0), Limit("throughput_per_second", at_least=50.0)]
    drawn = intervals(rows, SETTINGS, ["end_to_end_p99_ms", "throughput_per_second"], limits)

    assert [tuple(marks_of(drawn, panel, "band")[["x", "x2"]].iloc[0].fillna(-1)) for panel in (0, 1)] == [
        (300.0, -1),
        (0.0, 50.0),
    ]
    assert [(len(marks_of(drawn, 0, shape))) for shape in ("point", "ring")] == [2, 1]
    assert to_figure(drawn).axes[0].patches
