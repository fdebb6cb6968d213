"""A panel per window: values stand where they are, and a run without a value is no zero."""

import math

import pandas as pd
import pytest

from sim.report.window_figure import per_window


@pytest.fixture
def rows():
    values = {
        ("morning", "1 s"): (2e3, 4e3),
        ("morning", "9 s"): (5e3, 5e3),
        ("noon", "1 s"): (8e3, math.nan),
        ("noon", "9 s"): (math.nan,) * 2,
    }
    usual = {"status": "ok", "job_status": "RUNNING", "unfinished": ""}
    return pd.DataFrame([
        {"window": window, "interval": interval, "caught_up_ms": ms, **usual} for (window, interval), own in values.items() for ms in own
    ])  # fmt: skip


def test_windows_share_a_scale(rows):
    drawn = per_window(rows, ["interval"], "caught_up_ms")
    morning, noon = drawn.axes

    assert ["morning", "noon"] == [axes.get_title(loc="left") for axes in drawn.axes]
    assert morning.get_xlim() == noon.get_xlim() == (0, 1.05 * 8e3)
    assert [[2e3, 4e3], [5e3, 5e3]] == [list(line.get_xdata()) for line in morning.lines if line.get_marker() == "None"]


def test_what_has_no_value_is_said(rows):
    """Such runs have not ended, and are the worst of all."""
    _, noon = per_window(rows, ["interval"], "caught_up_ms").axes

    assert ["no value in 1 of 2 runs", "no value in 2 of 2 runs"] == [text.get_text() for text in noon.texts]


def test_a_bound_is_open_and_a_dead_job_has_no_value(rows):
    """What did not end is drawn as more than its value; the short checkpoints of a job that fails are no dot."""
    rows.loc[rows["interval"] == "9 s", "unfinished"] = "caught_up_ms"
    rows.loc[rows["interval"] == "1 s", "job_status"] = "FAILED: killed"
    morning, noon = per_window(rows, ["interval"], "caught_up_ms").axes

    assert [(5e3, ">", "none")] == [
        (line.get_xdata()[0], line.get_marker(), line.get_markerfacecolor()) for line in morning.lines if line.get_marker() != "None"
    ]
    assert ["fails in 2 of 2 runs"] == [text.get_text() for text in morning.texts]
    assert ["fails in 2 of 2 runs", "no value in 2 of 2 runs"] == [text.get_text() for text in noon.texts]


def test_one_window_is_no_picture(rows):
    assert per_window(rows[rows["window"] == "noon"], ["interval"], "caught_up_ms") is None
    assert per_window(rows.drop(columns="window"), ["interval"], "caught_up_ms") is None
    assert per_window(rows.assign(caught_up_ms=math.nan), ["interval"], "caught_up_ms") is None
