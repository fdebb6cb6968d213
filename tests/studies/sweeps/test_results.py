"""The table of a sweep: what was planned beside what came out."""

from dataclasses import replace

import pandas as pd
import pytest

from sim.studies.plan import cells, with_baselines
from sim.studies.sweeps import results as room
from sim.studies.sweeps.results import write_and_read_results
from sim.studies.sweeps.store import Store

WHERE = {"host": "here", "attempt": 1, "cpu_s": 0.5, "wall_s": 0.6}


def row(cell, rate=100.0, **changes):
    return {"cell": cell.id, "status": "ok", "error": "", "throughput_per_second": rate} | WHERE | changes


def test_rows_are_held_against_their_baseline(study, tmp_path):
    """In the order of the plan; a cell that failed has a row too, one that has not run has none."""
    store, planned = Store(tmp_path), with_baselines(cells(study.scenarios))
    store.put([row(planned[0], 200.0), row(planned[1], 190.0)])
    before = write_and_read_results(store, planned)
    store.put([{"cell": planned[2].id, "status": "error", "error": "ValueError: no"} | WHERE])

    table = write_and_read_results(store, planned)

    assert [cell.id for cell in planned[:2]] == list(before["cell"])
    assert [cell.id for cell in planned] == list(table["cell"])
    assert [round(change, 9) for change in table["throughput_change"][:2]] == [0.0, -0.05]
    assert table["throughput_change"].isna()[2]
    assert list(table["strategy"]) == ["none", "aligned", "unaligned"]
    assert table.equals(pd.read_parquet(tmp_path / "results.parquet"))
    assert len(pd.read_csv(tmp_path / "results.csv")) == 3


def test_where_a_cell_ran_stands_apart(study, tmp_path):
    """Results are the same bytes wherever it was."""
    store, planned = Store(tmp_path / "a"), cells(study.scenarios)
    other = Store(tmp_path / "b")
    store.put([row(cell) for cell in planned])
    for cell in reversed(planned):
        other.put([row(cell, host="there", attempt=3, cpu_s=9.0)])

    write_and_read_results(store, planned)
    write_and_read_results(other, planned)

    for name in ("results.parquet", "results.csv"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    assert list(pd.read_parquet(tmp_path / "b" / "runs.parquet")["attempt"]) == [3, 3]


def test_cells_that_share_a_run_have_rows_of_their_own(study, tmp_path):
    """The same run under two names, e.g. of two windows of a trace that do not differ: it is simulated once and stands in both rows."""
    planned = cells(replace(study.scenarios[0], axes=(("window", name),)) for name in ("monday", "tuesday"))
    store = Store(tmp_path)
    store.put([row(cell) for cell in store.missing(planned)])

    table = write_and_read_results(store, planned)

    assert len(store.rows()) == 1
    assert list(table["window"]) == ["monday", "tuesday"]


@pytest.mark.parametrize("status", ["ok", "error"])
def test_columns_do_not_depend_on_what_came_out(study, tmp_path, status):
    """A sweep of failures has the columns of any other."""
    store, planned = Store(tmp_path), cells(study.scenarios)
    store.put([row(planned[0], status=status)])

    table = write_and_read_results(store, planned)

    assert {"end_to_end_p99_ms", "caught_up_ms", "path_alignment_ms", "throughput_change"} <= set(table)
    assert table["end_to_end_p99_ms"].dtype == "float64"


def test_what_a_baseline_shows_does_not_depend_on_what_has_run(study, tmp_path):
    """One of two strategies has ended: the baseline is not that one's."""
    store, planned = Store(tmp_path), with_baselines(cells(study.scenarios))
    store.put([row(planned[0]), row(planned[1])])

    assert list(write_and_read_results(store, planned)["checkpoint.barriers"].isna()) == [True, False]


NOTHING = float("nan")


@pytest.mark.parametrize(
    ("bare", "own", "restarts", "change"),
    [
        (200.0, 150.0, 0.0, -0.25),
        (200.0, 250.0, 0.0, 0.25),
        (200.0, 150.0, None, -0.25),
        (200.0, 0.0, 0.0, -1.0),
        (200.0, 150.0, 1.0, None),
        (0.0, 150.0, 0.0, None),
        (NOTHING, 150.0, 0.0, None),
        (200.0, NOTHING, 0.0, None),
    ],
)
def test_throughput_is_held_against_that_without_checkpoints(study, tmp_path, bare, own, restarts, change):
    """Nothing is said where one of both has none, or a job read records twice."""
    store, planned = Store(tmp_path), with_baselines(cells(study.scenarios))
    store.put([row(planned[0], bare), row(planned[1], own, restarts=restarts)])
    found = write_and_read_results(store, planned)["throughput_change"][1]

    assert pd.isna(found) if change is None else found == pytest.approx(change)


def test_without_its_baseline_a_cell_is_held_against_nothing(study, tmp_path):
    """It has not run yet; another cell's throughput is no measure."""
    store, planned = Store(tmp_path), with_baselines(cells(study.scenarios))
    store.put([row(planned[2], 100.0), row(planned[1], 190.0)])

    assert list(write_and_read_results(store, planned)["throughput_change"].isna()) == [True, True]


def test_before_anything_has_run_there_is_a_table_without_rows(study, tmp_path):
    """With all columns: whoever reads it needs no other way."""
    store, planned = Store(tmp_path), with_baselines(cells(study.scenarios))
    empty = write_and_read_results(store, planned)
    store.put([row(cell) for cell in planned])

    assert len(empty) == 0
    assert list(empty.columns) == list(write_and_read_results(store, planned).columns)
    assert len(pd.read_parquet(tmp_path / "runs.parquet")) == 3


def test_where_cells_ran_is_told_in_the_order_of_their_names(study, tmp_path):
    """A cell that stands in the plan twice ran once."""
    store, planned = Store(tmp_path), cells([*study.scenarios, *study.scenarios])
    store.put([row(cell, host=cell.id[:3]) for cell in store.missing(planned)])
    write_and_read_results(store, planned)
    runs = pd.read_parquet(tmp_path / "runs.parquet")

    names = sorted({cell.id for cell in planned})
    assert [names, [name[:3] for name in names]] == [list(runs["cell"]), list(runs["host"])]
    assert list(runs.columns) == ["cell", "host", "attempt", "cpu_s", "wall_s"]


@pytest.mark.parametrize(("most", "kept"), [(3, True), (2, False)])
def test_a_table_too_long_for_a_spreadsheet_has_no_csv(study, tmp_path, monkeypatch, most, kept):
    """An old one of fewer rows would be taken for this one."""
    monkeypatch.setattr(room, "MAX_IN_CSV", most)
    (tmp_path / "results.csv").write_text("old")
    store, planned = Store(tmp_path), with_baselines(cells(study.scenarios))
    store.put([row(cell) for cell in planned])
    write_and_read_results(store, planned)

    assert kept == (tmp_path / "results.csv").exists()
    assert len(pd.read_parquet(tmp_path / "results.parquet")) == 3


@pytest.mark.parametrize(("part", "forgotten"), [(3, 0), (2, 1)])
def test_after_a_long_table_no_names_stay_in_memory(study, tmp_path, monkeypatch, part, forgotten):
    monkeypatch.setattr(room, "PART_ROWS", part)
    store, planned, seen = Store(tmp_path), with_baselines(cells(study.scenarios)), []
    store.put([row(cell) for cell in planned])
    monkeypatch.setattr(store, "drop_index", lambda: seen.append(True))

    assert len(write_and_read_results(store, planned)) == 3
    assert forgotten == len(seen)
