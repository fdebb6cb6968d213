"""How far other settings may be off, as far as a history of so many checkpoints tells."""

import math

from sim.jobs.evidence.backtest import other_settings
from sim.model.backtest import ComparedQuantity, Quantiles

ALIKE = [1000.0] * 20


def row(p50, p90, *off):
    """Whole checkpoints of which 1 s was observed."""
    return ComparedQuantity("end-to-end", Quantiles(1000.0, 1000.0, 1000.0, 20), Quantiles(p50, p90, p90, 60), off=off)


def test_nothing_is_known_where_nothing_was_predicted():
    nothing = ComparedQuantity("end-to-end", Quantiles(1.0, 1.0, 1.0, 20), Quantiles(), off=("p50", "p90"))

    assert math.isinf(other_settings(ALIKE, nothing).p50)
