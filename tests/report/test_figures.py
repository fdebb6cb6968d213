"""Figures of a comparison: phases stacked on scales on which they are seen, identical curves said to be identical."""

import pandas as pd
import pytest

from sim.analysis.strategies.path import PARTS
from sim.analysis.strategies.picture import alike
from sim.report.figures import PHASES, lines, phases


def run(*checkpoints):
    """Tables of a run; each checkpoint is (trigger [ms], {part: ms})."""
    rows = [
        {"id": i, "part": part, "duration": int(ms * 1e6), "acknowledged": False}
        for i, (_, parts) in enumerate(checkpoints, 1)
        for part, ms in parts.items()
    ]
    triggers = [
        {"id": i, "trigger_timestamp": trigger, "status": "COMPLETED", "savepointFormat": "", "persisted_data": 0, "checkpointed_size": 1,
         "state_size": 1, "end_to_end_duration": sum(parts.values())}
        for i, (trigger, parts) in enumerate(checkpoints, 1)
    ]  # fmt: skip
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


def heights(axes):
    return max(bar.get_y() + bar.get_height() for bar in axes.patches)


def test_bars_are_as_high_as_the_checkpoint():
    """Stacked on top of each other, in seconds, a panel per strategy on one scale."""
    slow = run((0.0, {"behind data": 3000, "sync": 500}), (5000.0, {"behind data": 1000, "upload": 250}))
    drawn = phases({"slow": slow, "quicker": run((0.0, {"upload": 500}))})

    assert pytest.approx([heights(axes) for axes in drawn.axes]) == [3.5, 0.5]
    assert drawn.axes[0].get_ylim() == drawn.axes[1].get_ylim()
    assert ["slow", "quicker"] == [axes.get_title(loc="left") for axes in drawn.axes]


def test_bars_too_low_to_see_have_a_scale_of_their_own():
    """It is in milliseconds, and it is said: the panel was empty."""
    drawn = phases({"slow": run((0.0, {"behind data": 3000})), "quick": run((0.0, {"upload": 50}))})
    slow, quick = drawn.axes

    assert "quick: at most 50 ms, on a scale of its own" == quick.get_title(loc="left")
    assert ("seconds", "milliseconds") == (slow.get_ylabel(), quick.get_ylabel())
    assert pytest.approx(50) == heights(quick)
    assert quick.get_ylim()[1] < 60


def test_a_first_upload_hides_no_other():
    """It is told, and not drawn."""
    tables = run((0.0, {"upload": 12_000}), (20_000.0, {"upload": 300}), (40_000.0, {"upload": 330}))
    tables["checkpoints"] = tables["checkpoints"].assign(checkpointed_size=[900, 9, 9], state_size=900)
    (axes,) = phases({"it": tables}).axes

    assert "it (not drawn: first upload, 12 s)" == axes.get_title(loc="left")
    assert [0.3, 0.33] == [round(bar.get_height(), 6) for bar in axes.patches if bar.get_height()]


def test_thousands_of_checkpoints_are_drawn_as_means():
    drawn = phases({"it": run(*((1000.0 * k, {"upload": 100}) for k in range(1000)))})
    bars = [bar for bar in drawn.axes[0].patches if bar.get_height()]

    assert 100 <= len(bars) <= 151
    assert {0.1} == {round(bar.get_height(), 6) for bar in bars}


def test_without_a_checkpoint_there_is_no_figure():
    assert phases({"it": run()}) is None


def test_many_lines_differ_in_colour_or_dash():
    """The colours begin again after eight; their dashes do not."""
    drawn = lines({f"it {k}": pd.Series([1.0, float(k)]) for k in range(30)}, "seconds").axes[0].lines

    assert 30 == len({(line.get_color(), line.get_linestyle()) for line in drawn})


def test_identical_curves_are_one_line():
    """Nobody sees a line below another one: the legend says so."""
    same, other = pd.Series([1.0, 2.0]), pd.Series([1.0, 3.0])
    curves = {"a": same, "b": other, "c": same.copy()}

    assert {"a": ["a", "c"], "b": ["b"]} == alike(curves)
    assert ["a = c (identical)", "b"] == [text.get_text() for text in lines(curves, "seconds").legends[0].get_texts()]


def test_failures_and_triggers_are_marked():
    drawn = lines({"a": pd.Series([1.0, 2.0])}, "seconds", triggers=[0.5], failures=[0.2, 0.7], warmup_s=0.1)

    assert ["a", "failure", "checkpoint triggered", "warm-up"] == [text.get_text() for text in drawn.legends[0].get_texts()]
