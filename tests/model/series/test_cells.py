"""Typed cells as texts."""

import pytest

from sim.model.series.tables import cell_text


@pytest.mark.parametrize(("value", "text"), [(None, ""), (float("nan"), ""), (0, "0"), (1.5, "1.5"), ("a", "a")])
def test_a_cell_without_a_value_is_blank(value, text):
    assert text == cell_text(value)
