"""The catalogues of quantities, of results and of what is observed, and the smallest sample of a percentile."""

import numpy as np
import pytest

from sim.model.quantities import COST, QUANTITIES, smallest_sample
from sim.results.columns import TABLES
from sim.results.summary import PRINTED, STATISTICS, has_sample, in_words
from sim.studies.cells import OUTCOME

# The catalogue of quantities, and the smallest sample of a percentile.


@pytest.mark.parametrize(
    ("count", "q"), [(1, 0.5), (10, 0.9), (10, 0.1), (20, 0.95), (100, 0.99), (1000, 0.999), (1, 0), (1, 1), (4, 0.75)]
)
def test_a_percentile_needs_observations_beyond_it(count, q):
    """One of so many lies there on average."""
    assert count == smallest_sample(q)


@pytest.mark.parametrize("q", [0.9, 0.99])
def test_of_fewer_it_is_the_longest_by_another_name(q):
    """Between the two longest of one observation less than the sample, and only from the next one on below both."""
    few, enough = np.arange(smallest_sample(q) - 1), np.arange(2 * smallest_sample(q))

    assert np.quantile(few, q) > few[-2]
    assert np.quantile(enough, q) < enough[-2]


def test_columns_of_the_catalogue_are_columns_of_results():
    """And so are those that count samples.  A cost is made of columns by a price list."""
    known = {*OUTCOME, "throughput_change", COST}

    assert set() == {row.name for row in STATISTICS.values()} - known
    assert set() == {row.counted_by for row in STATISTICS.values() if row.counted_by} - known


def test_every_percentile_of_results_is_in_it():
    """A new one is shown of any number only by a decision."""
    percentiles = [name for name in OUTCOME if "_p9" in name or "_p50" in name]

    assert [name for name in percentiles if name not in STATISTICS] == []
    assert {"delay_p99_s"} == {name for name in percentiles if STATISTICS[name].quantile is None}


def test_a_percentile_has_its_sample_or_not():
    row = {"completed": 99, "commits": 3}

    assert [
        name
        for name in (
            "end_to_end_p50_ms",
            "end_to_end_p90_ms",
            "end_to_end_p99_ms",
            "end_to_end_max_ms",
            "visible_p50_ms",
            "visible_p99_ms",
        )
        if has_sample(name, row)
    ] == ["end_to_end_p50_ms", "end_to_end_p90_ms", "end_to_end_max_ms", "visible_p50_ms"]


def test_words():
    """A column that is not in the catalogue has its name, without the unit."""
    assert in_words("end_to_end_p99_ms") == "checkpoint duration, p99"
    assert in_words("replayed_records") == "records that a failure replays, median"
    assert in_words("busy_share") == "busy"
    assert [own.title for own in PRINTED if own.heading == "p50"] == ["checkpoint duration, median"]
    assert [own.name for own in PRINTED if not own.title] == []


# The catalogue of what is observed: every quantity once, with what comparisons ask of it.


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
