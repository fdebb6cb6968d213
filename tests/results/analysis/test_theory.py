"""Closed forms for the time between checkpoints."""

import pytest

from sim.results.estimates import daly, renewal, young


def test_they_agree_where_checkpoints_are_cheap():
    """And Daly's stays sensible where they are not."""
    assert young(1, 1e6) == pytest.approx(daly(1, 1e6), rel=2e-3) == pytest.approx(renewal(1, 1e6), rel=2e-3)
    assert 1 == daly(3, 1) == daly(2, 1) == daly(2.5, 1)
    assert pytest.approx(daly(1.999, 1), abs=0.01) == 0.89  # 2 (1 + 1 / 3 + 1 / 9) - 2
