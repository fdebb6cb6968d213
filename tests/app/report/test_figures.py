"""Figures of a comparison: phases stacked on scales on which they are seen, identical curves said to be identical."""

import pandas as pd
import pytest

from sim.app.report.figures import PHASES, group_identical_curves, lines, phases
from sim.results.charts import to_figure
from sim.results.not_completed import PARTS
from tests.app.report.marks import marks_of


def run(*checkpoints):
    """Tables of a run; each checkpoint is (trigger [ms], {part: ms})."""
    rows = [
        {"id": i, "part": part, "duration": int(ms * 1e6), "acknowledged": False}
        for i, (_, parts) in enumerate(checkpoints, 1)
        for part, ms in parts.items()
    ]
    triggers = [
        {
            "id": i,
            "trigger_timestamp": trigger,
            "status": "COMPLETED",
            "savepointFormat": "",
            "persisted_data": 0,
            "checkpointed_size": 1,
            "state_size": 1,
            "end_to_end_duration": sum(parts.values()),
        }
        for i, (trigger, parts) in enumerate(checkpoints, 1)
    ]
    columns = [
        "id",
        "trigger_timestamp",
        "status",
        "savepointFormat",
        "persisted_data",
        "checkpointed_size",
        "state_size",
        "end_to_end_duration",
    ]
    return {
        "path": pd.DataFrame(rows, columns=["id", "part", "duration", "acknowledged"]),
        "checkpoints": pd.DataFrame(triggers, columns=columns),
    }


def test_every_kind_of_wait_belongs_to_a_phase():
    assert set(PARTS.values()) == {kind for kinds in PHASES.values() for kind in kinds}


def heights(drawn, panel):
    return marks_of(drawn, panel, "box")["y2"].max()


def test_bars_are_as_high_as_the_checkpoint():
    """Stacked on top of each other, in seconds, a panel per strategy on one scale."""
    slow = run((0.0, {"behind data": 3000, "sync": 500}), (5000.0, {"behind data": 1000, "upload": 250}))
    drawn = phases({"slow": slow, "quicker": run((0.0, {"upload": 500}))})

    assert pytest.approx([heights(drawn, panel) for panel in (0, 1)]) == [3.5, 0.5]
    assert drawn.panels[0].y == drawn.panels[1].y
    assert [panel.title for panel in drawn.panels] == ["slow", "quicker"]
    assert "synchronous: 500 ms of 3.5 s, triggered at 0 s" in set(drawn.marks["text"])


def test_bars_too_low_to_see_have_a_scale_of_their_own():
    """It is in milliseconds, and it is said: the panel was empty."""
    drawn = phases({"slow": run((0.0, {"behind data": 3000})), "quick": run((0.0, {"upload": 50}))})
    slow, quick = drawn.panels

    assert quick.title == "quick: at most 50 ms, on a scale of its own"
    assert (slow.y.title, quick.y.title) == ("seconds", "milliseconds")
    assert pytest.approx(50) == heights(drawn, 1)
    assert quick.y.high < 60


def test_a_first_upload_hides_no_other():
    """It is told, and not drawn."""
    tables = run((0.0, {"upload": 12_000}), (20_000.0, {"upload": 300}), (40_000.0, {"upload": 330}))
    tables["checkpoints"] = tables["checkpoints"].assign(checkpointed_size=[900, 9, 9], state_size=900)
    drawn = phases({"it": tables})

    assert drawn.panels[0].title == "it (not drawn: first upload, 12 s)"
    assert [round(end, 6) for end in marks_of(drawn, 0, "box")["y2"]] == [0.3, 0.33]


def test_thousands_of_checkpoints_are_drawn_as_means():
    bars = marks_of(phases({"it": run(*((1000.0 * k, {"upload": 100}) for k in range(1000)))}), 0, "box")

    assert 100 <= len(bars) <= 151
    assert {0.1} == {round(end, 6) for end in bars["y2"]}


def test_without_a_checkpoint_there_is_no_figure():
    assert phases({"it": run()}) is None


def test_many_lines_differ_in_colour_or_dash():
    """The colours begin again after eight; their dashes do not."""
    drawn = to_figure(lines({f"it {k}": pd.Series([30.0, 30.0 + k]) for k in range(30)}, "seconds")).axes[0].lines

    assert len({(line.get_color(), line.get_linestyle()) for line in drawn}) == 30


def test_identical_curves_are_one_line():
    """A line below another one is invisible: the legend says so."""
    same, other = pd.Series([1.0, 2.0]), pd.Series([1.0, 3.0])
    curves = {"a": same, "b": other, "c": same.copy()}

    assert group_identical_curves(curves) == {"a": ["a", "c"], "b": ["b"]}
    assert {"a = c (identical)", "b"} == set(lines(curves, "seconds").marks["series"])


def test_failures_and_triggers_are_marked():
    drawn = lines({"a": pd.Series([1.0, 2.0])}, "seconds", triggers=[0.5], failures=[0.2, 0.7], warmup_s=0.1)

    assert dict(zip(drawn.marks["series"], drawn.marks["shape"], strict=True)) == {
        "warm-up": "band",
        "a": "line",
        "failure": "rule",
        "checkpoint triggered": "tick",
    }
    assert list(marks_of(drawn, 0, "rule")["x"]) == [0.2, 0.7]


def test_curves_far_apart_have_scales_of_their_own():
    """On one scale the low one is the axis."""
    curves = {"high": pd.Series([100.0, 90.0]), "low": pd.Series([1.0, 2.0]), "middle": pd.Series([50.0, 6.0])}
    high, low = lines(curves, "seconds").panels

    assert (high.title, low.title) == ("high, middle: on a scale of their own", "low: on a scale of its own")
    assert (high.y.high, low.y.high) == (108.0, 2.16)
    assert len(lines({"a": pd.Series([40.0]), "b": pd.Series([2.0]), "never": pd.Series([0.0])}, "seconds").panels) == 1
