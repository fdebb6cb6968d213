"""The history of an imported job beside its simulation."""

from sim.app.report.figures import history
from sim.model.scenario import Backtest, ComparedQuantity, Quantiles

DURATION = ComparedQuantity(
    "end-to-end", Quantiles(100.0, 200.0, 300.0, 9), Quantiles(110.0, 120.0, 130.0, 9), off=("p90",)
)
RATE = ComparedQuantity("throughput", Quantiles(5.0, 5.0, 5.0, 3), Quantiles(5.0, 5.0, 5.0, 3), vertex="sink")


def test_what_is_off_is_named():
    """In words and with units."""
    block = history(Backtest((DURATION, RATE)))

    assert block.table.rows[0] == [
        "Checkpoint duration",
        "100 ms",
        "200 ms",
        "300 ms",
        "110 ms",
        "120 ms",
        "130 ms",
        "p90 -40 %",
    ]
    assert block.table.rows[1][:2] == ["Throughput, sink", "5/s"]
    assert "end-to-end p90 -40 %" in block.text


def test_a_column_without_a_value_is_left_out():
    assert "off by" not in history(Backtest((RATE,))).table.header
