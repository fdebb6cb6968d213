"""The catalogue of what is observed: every quantity once, with what comparisons ask of it."""

import pytest

from sim.jobs.evidence.orderings import BARS, MEASURED_BARS
from sim.model.quantities import QUANTITIES, of_history, quantities
from sim.results.schema import TABLES

TABLE = {"checkpoint": "checkpoints", "subtask": "subtasks"}


@pytest.mark.parametrize("rows", TABLE)
def test_quantities_of_checkpoints_are_columns_of_results(rows):
    """Recorded and simulated ones are read alike."""
    columns = {column.name for column in TABLES[TABLE[rows]]}

    assert set() == {quantity.flink_column for quantity in quantities(lambda quantity: quantity.rows == rows)} - columns


def test_units_agree_with_those_of_results():
    units = {(rows, column.name): column.unit for rows, table in TABLE.items() for column in TABLES[table]}

    assert [
        quantity.name
        for quantity in QUANTITIES.values()
        if quantity.unit != units.get((quantity.rows, quantity.flink_column), quantity.unit)
    ] == []


def test_durations_have_the_noise_of_a_machine():
    assert {True} == {(quantity.noise == 60.0) == (quantity.unit == "ms") for quantity in QUANTITIES.values()}


def test_what_was_never_repeated_spreads_like_the_worst():
    measured = {quantity.repeats for quantity in QUANTITIES.values()} - {None}

    assert max(measured) == QUANTITIES["state_size"].spread
    assert QUANTITIES["end_to_end_duration"].spread == 0.04


def test_quantities_that_share_a_key_share_a_unit():
    """They are one row of a backtest."""
    assert {1} == {len({quantity.unit for quantity in own}) for own in of_history().values()}
    assert [quantity.name for quantity in of_history()["throughput"]] == [
        "numRecordsInPerSecond",
        "numRecordsOutPerSecond",
    ]


def test_a_bar_of_two_quantities_is_one_bar():
    assert next(names for bar, names in MEASURED_BARS.items() if bar.what == "throughput") == (
        "numRecordsInPerSecond",
        "numRecordsOutPerSecond",
    )
    assert len(BARS) == sum(len(quantity.bars) for quantity in QUANTITIES.values())
