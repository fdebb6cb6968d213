"""The columns of a sweep's rows, and what is said about them."""

from sim.model.quantities import unit
from sim.studies.cells import COLUMNS, MEANING, MEASURED, OUTCOME, PROVENANCE


def test_every_column_is_described():
    """In the order of the tables; nothing is described that does not exist."""
    assert [*OUTCOME, "throughput_change", *PROVENANCE] == list(MEANING)
    assert [name for name, meaning in MEANING.items() if not meaning.strip()] == []
    assert set(MEASURED) <= set(MEANING)


def test_the_end_of_a_name_is_its_unit():
    assert [
        unit(name) for name in ("downtime_ms", "lag_s", "persisted_bytes", "throughput_per_second", "completed")
    ] == ["ms", "s", "bytes", "records/s", ""]


def test_every_column_of_numbers_can_be_compared():
    """It has a direction, and what it waits for or follows exists."""
    assert set(MEASURED) == set(COLUMNS)
    assert [name for name, column in COLUMNS.items() if column.follows and column.follows not in COLUMNS] == []
    assert [name for name, column in COLUMNS.items() if column.may_be_bound and column.worse == "less"] == []
