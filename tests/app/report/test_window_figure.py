"""A panel per window: values stand where they are, and a run without a value is no zero."""

import math

import pandas as pd
import pytest

from sim.app.report.sweep_figures import per_window


@pytest.fixture
def rows():
    values = {
        ("morning", "1 s"): (2e3, 4e3),
        ("morning", "9 s"): (5e3, 5e3),
        ("noon", "1 s"): (8e3, math.nan),
        ("noon", "9 s"): (math.nan,) * 2,
    }
    usual = {"status": "ok", "job_status": "RUNNING", "unfinished": ""}
    return pd.DataFrame(
        [
            {"window": window, "interval": interval, "caught_up_ms": ms, **usual}
            for (window, interval), own in values.items()
            for ms in own
        ]
    )


def spans(drawn, panel):
    return [[low, high] for low, high in zip(drawn.of(panel, "span")["x"], drawn.of(panel, "span")["x2"], strict=True)]


def test_windows_share_a_scale(rows):
    drawn = per_window(rows, ["interval"], "caught_up_ms")
    morning, noon = drawn.panels

    assert (morning.title, noon.title) == ("morning", "noon")
    assert (0, 1.05 * 8) == (morning.x.low, morning.x.high) == (noon.x.low, noon.x.high)
    assert spans(drawn, 0) == [[2, 4], [5, 5]]
    assert {"1 s: 3 s (2 s to 4 s), 2 runs"} <= set(drawn.marks["text"])


def test_what_has_no_value_is_said(rows):
    """Such runs have not ended, and are the worst of all."""
    drawn = per_window(rows, ["interval"], "caught_up_ms")

    assert list(drawn.of(1, "words")["words"]) == ["no value in 1 of 2 runs", "no value in 2 of 2 runs"]


def test_a_bound_has_a_ring_and_a_dead_job_no_value(rows):
    """What did not end is drawn as more than its value; the short checkpoints of a job that fails are no dot."""
    rows.loc[rows["interval"] == "9 s", "unfinished"] = "caught_up_ms"
    rows.loc[rows["interval"] == "1 s", "job_status"] = "FAILED: killed"
    drawn = per_window(rows, ["interval"], "caught_up_ms")

    assert (list(drawn.of(0, "ring")["series"]), list(drawn.of(0, "point")["series"])) == (["9 s"], [])
    assert "9 s: more than 5 s (5 s to 5 s), 2 runs" in set(drawn.marks["text"])
    assert list(drawn.of(0, "words")["words"]) == ["fails in 2 of 2 runs"]
    assert list(drawn.of(1, "words")["words"]) == ["fails in 2 of 2 runs", "no value in 2 of 2 runs"]


def test_one_window_is_no_picture(rows):
    assert per_window(rows[rows["window"] == "noon"], ["interval"], "caught_up_ms") is None
    assert per_window(rows.drop(columns="window"), ["interval"], "caught_up_ms") is None
    assert per_window(rows.assign(caught_up_ms=math.nan), ["interval"], "caught_up_ms") is None
