"""Closed forms for the time between checkpoints."""

from math import exp

import pytest

from sim.results.estimates import daly, renewal, young


@pytest.mark.parametrize(("nodes", "expected"), [(1, 10.0), (4, 5.0), (16, 2.5), (64, 1.25), (256, 0.625)])
def test_young(nodes, expected):
    """C = 0.5 h, M = 100 h / n."""
    assert expected == young(0.5, 100 / nodes)


@pytest.mark.parametrize(("rate", "expected"), [(0.01, 10.17), (0.16, 2.68), (2.56, 0.846)])
def test_renewal(rate, expected):
    """c = 0.5 h; failures per hour."""
    assert expected == pytest.approx(renewal(0.5, 1 / rate), rel=2e-3)


@pytest.mark.parametrize("mtbf", [3.0, 50.0, 2000.0])
def test_renewal_is_a_maximum(mtbf):
    """No other interval keeps more work per time."""

    def kept(interval):
        return (interval - 0.5) / (exp(interval / mtbf) - 1)

    best = renewal(0.5, mtbf)

    assert kept(best) >= max(kept(best * share) for share in (0.8, 0.95, 1.05, 1.25))


@pytest.mark.parametrize(("cost", "mtbf", "expected"), [(2, 4, 25 / 9), (0.5, 100, 9.6694444), (10, 80, 33.6111111)])
def test_daly_to_the_third_term(cost, mtbf, expected):
    """sqrt(2 C M) (1 + sqrt(C / 2 M) / 3 + (C / 2 M) / 9) - C; with C = 2 and M = 4: 4 (1 + 1 / 6 + 1 / 36) - 2 = 25 / 9."""
    assert expected == pytest.approx(daly(cost, mtbf), rel=1e-5)


def test_they_agree_where_checkpoints_are_cheap():
    """And Daly's stays sensible where they are not."""
    assert young(1, 1e6) == pytest.approx(daly(1, 1e6), rel=2e-3) == pytest.approx(renewal(1, 1e6), rel=2e-3)
    assert 1 == daly(3, 1) == daly(2, 1) == daly(2.5, 1)
    assert pytest.approx(daly(1.999, 1), abs=0.01) == 0.89  # 2 (1 + 1 / 3 + 1 / 9) - 2
