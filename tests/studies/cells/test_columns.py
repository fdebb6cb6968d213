"""The columns of a sweep's rows, and what is said about them."""

from sim.results.columns import unit_of
from sim.studies.cells import COLUMNS, OUTCOME, PROVENANCE, described


def test_every_column_is_described():
    """In the order of the tables; nothing is described that does not exist."""
    found = described()
    meanings = {name: meaning for table in ("results", "runs") for name, _, meaning in found[table]}

    assert [*OUTCOME, "throughput_change", *PROVENANCE] == list(meanings)
    assert [name for name, meaning in meanings.items() if not meaning.strip()] == []
    assert set(COLUMNS) <= set(meanings)


def test_the_end_of_a_name_is_its_unit():
    names = ("downtime_ms", "lag_s", "persisted_bytes", "throughput_per_second", "completed")

    assert [unit_of(name).symbol for name in names] == ["ms", "s", "bytes", "records/s", ""]


def test_every_column_of_numbers_can_be_compared():
    """What it follows exists, and a bound is a lower one."""
    assert [name for name, column in COLUMNS.items() if column.follows and column.follows not in COLUMNS] == []
    assert [
        name for name, column in COLUMNS.items() if (column.ends or column.follows) and column.worse == "less"
    ] == []
