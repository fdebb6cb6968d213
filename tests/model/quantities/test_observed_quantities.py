"""The catalogue of what is observed: every quantity once, with what comparisons ask of it."""

from sim.model.quantities import QUANTITIES
from sim.results.schema import TABLES

TABLE = {"checkpoint": "checkpoints", "subtask": "subtasks"}


def test_units_agree_with_those_of_results():
    units = {(rows, column.name): column.unit for rows, table in TABLE.items() for column in TABLES[table]}

    assert [
        quantity.name
        for quantity in QUANTITIES.values()
        if quantity.unit != units.get((quantity.rows, quantity.flink_column), quantity.unit)
    ] == []


def test_what_was_never_repeated_spreads_like_the_worst():
    measured = {quantity.repeats for quantity in QUANTITIES.values()} - {None}

    assert max(measured) == QUANTITIES["state_size"].spread
    assert QUANTITIES["end_to_end_duration"].spread == 0.04
