"""The figure of an advice: a point per setting, limits shaded, today and the advised one circled."""

import pytest

from sim.app.report.sweep_figures import advice_block, trade_off_chart


def setting(protocol, checkpoint_ms, recovery_ms):
    return {"interval": "4 s", "protocol": protocol, "checkpoint_ms": checkpoint_ms, "recovery_ms": recovery_ms}


@pytest.fixture
def data():
    today, advised = setting("aligned", 5e3, 9e3), setting("unaligned", 2e2, 8e3)
    return {
        "settings": [today, advised, setting("debloating", None, 8e3)],
        "today": today,
        "advised": advised,
        "limits": {"checkpoint_ms": 2e3, "recovery_ms": None, "loss": None, "visible_ms": None},
    }


def test_today_and_the_advised_setting_are_named(data):
    drawn = trade_off_chart(data)

    assert list(drawn.of(0, "point")["series"]) == ["aligned", "unaligned"]
    assert list(drawn.of(0, "ring")["series"]) == ["today: aligned, every 4 s", "advised: unaligned, every 4 s"]
    assert "unaligned, every 4 s: checkpoints 200 ms, recovery 8 s" in set(drawn.marks["text"])


def test_what_breaks_a_limit_is_shaded(data):
    """From the limit to the edge, in the unit of the axis."""
    drawn = trade_off_chart(data)
    caption = advice_block(data).caption

    assert list(drawn.of(0, "band")["y"]) == [2.0]
    assert (drawn.panels[0].y.ending, drawn.panels[0].y.is_log) == (" s", True)
    assert "Shaded: beyond the limits (checkpoints at most 2 s)." in caption
    assert "Not drawn: 1 without a completed checkpoint" in caption


def test_a_duration_of_0_ms_is_drawn(data):
    """It is one, though no logarithm has a place for it: then the axis begins at 0."""
    none = setting("channel", 0.0, 9e3)
    drawn = trade_off_chart(data | {"settings": [*data["settings"], none], "advised": none})

    assert (drawn.panels[0].y.low, drawn.panels[0].y.is_log) == (0.0, False)
    assert "advised: channel, every 4 s" in set(drawn.of(0, "ring")["series"])
    assert "Not drawn: 1 without" in advice_block(data | {"settings": [*data["settings"], none]}).caption


def test_a_limit_that_is_far_is_not_drawn(data):
    """It would push all points together."""
    assert trade_off_chart(data | {"limits": {"checkpoint_ms": 6e5, "recovery_ms": None}}).of(0, "band").empty


def test_one_point_is_no_picture(data):
    assert advice_block(data | {"settings": data["settings"][:1]}) is None
    assert advice_block({}) is None


def test_levers_have_the_colour_of_their_barriers_and_no_axis_has_fractions_of_minutes(data):
    """There are more levers than colours."""
    wider = setting("unaligned, 2 x parallelism of sink", 2e2, 2e5)
    drawn = trade_off_chart(data | {"settings": [*data["settings"], wider]})

    assert list(drawn.of(0, "point")["series"]) == ["aligned", "unaligned", "unaligned"]
    assert drawn.panels[0].x.ending == " s"
    assert "99th percentile" not in advice_block(data).caption
