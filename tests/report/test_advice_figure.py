"""The figure of an advice: a point per setting, limits shaded, today and the advised one circled."""

import pytest

from sim.report.advice_figure import advice_block, trade


def setting(protocol, checkpoint_ms, recovery_ms):
    return {"interval": "4 s", "protocol": protocol, "checkpoint_ms": checkpoint_ms, "recovery_ms": recovery_ms}


@pytest.fixture
def data():
    today, advised = setting("aligned", 5e3, 9e3), setting("unaligned", 2e2, 8e3)
    return {
        "settings": [today, advised, setting("debloating", None, 8e3)], "today": today, "advised": advised,
        "limits": {"checkpoint_ms": 2e3, "recovery_ms": None, "loss": None, "visible_ms": None},
    }  # fmt: skip


def test_today_and_the_advised_setting_are_named(data):
    names = trade(data).axes[0].get_legend_handles_labels()[1]

    assert ["aligned", "unaligned", "today: aligned, every 4 s", "advised: unaligned, every 4 s"] == names


def test_what_breaks_a_limit_is_shaded(data):
    (band,) = trade(data).axes[0].patches
    caption = advice_block(data).caption

    assert 2e3 == band.get_y()
    assert "Shaded: beyond the limits (checkpoints at most 2 s)." in caption
    assert "Not drawn: 1 without a completed checkpoint" in caption


def test_a_limit_that_is_far_is_not_drawn(data):
    """It would push all points together."""
    assert [] == list(trade(data | {"limits": {"checkpoint_ms": 6e5, "recovery_ms": None}}).axes[0].patches)


def test_one_point_is_no_picture(data):
    assert advice_block(data | {"settings": data["settings"][:1]}) is None
    assert advice_block({}) is None
