"""The table of a sweep: what was planned beside what came out."""

from dataclasses import replace

import pandas as pd
import pytest

from sim.cells.plan import cells, with_baselines
from sim.scenario import loads
from sim.sweeps.results import collect
from sim.sweeps.store import Store

WHERE = {"host": "here", "attempt": 1, "cpu_s": 0.5, "wall_s": 0.6}


def row(cell, rate=100.0, **changes):
    return {"cell": cell.id, "status": "ok", "error": "", "throughput_per_second": rate} | WHERE | changes


def test_rows_are_held_against_their_baseline(study, tmp_path):
    """In the order of the plan; a cell that failed has a row too, one that has not run has none."""
    store, planned = Store(tmp_path), with_baselines(cells(study.scenarios))
    store.put([row(planned[0], 200.0), row(planned[1], 190.0)])
    before = collect(store, planned)
    store.put([{"cell": planned[2].id, "status": "error", "error": "ValueError: no"} | WHERE])

    table = collect(store, planned)

    assert [cell.id for cell in planned[:2]] == list(before["cell"])
    assert [cell.id for cell in planned] == list(table["cell"])
    assert [0.0, -0.05] == [round(change, 9) for change in table["throughput_change"][:2]]
    assert table["throughput_change"].isna()[2]
    assert ["none", "aligned", "unaligned"] == list(table["strategy"])
    assert table.equals(pd.read_parquet(tmp_path / "results.parquet"))
    assert 3 == len(pd.read_csv(tmp_path / "results.csv"))


def test_where_a_cell_ran_stands_apart(study, tmp_path):
    """Results are the same bytes wherever it was."""
    store, planned = Store(tmp_path / "a"), cells(study.scenarios)
    other = Store(tmp_path / "b")
    store.put([row(cell) for cell in planned])
    for cell in reversed(planned):
        other.put([row(cell, host="there", attempt=3, cpu_s=9.0)])

    collect(store, planned)
    collect(other, planned)

    for name in ("results.parquet", "results.csv"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    assert [3, 3] == list(pd.read_parquet(tmp_path / "b" / "runs.parquet")["attempt"])


def test_cells_that_share_a_run_have_rows_of_their_own(study, tmp_path):
    """The same run under two names, e.g. of two windows of a trace that do not differ: it is simulated once and stands in both rows."""
    planned = cells(replace(study.scenarios[0], axes=(("window", name),)) for name in ("monday", "tuesday"))
    store = Store(tmp_path)
    store.put([row(cell) for cell in store.missing(planned)])

    table = collect(store, planned)

    assert 1 == len(store.rows())
    assert ["monday", "tuesday"] == list(table["window"])


def test_a_baseline_shows_its_workload(tmp_path):
    """The axes that all cells held against it have in common, beside those that tell strategies apart."""
    text = "version: 1\njob:\n  a: {source: {rate: [1/s, 2/s], record: 100 B}}\n  b: {input: {a: hash}, service: 1 ms}\n"
    study = loads(f"{text}checkpoint: {{interval: 1 s, barriers: [aligned, unaligned]}}\nrun: {{duration: 1 s}}\n")
    store, planned = Store(tmp_path), with_baselines(cells(study.scenarios))
    store.put([row(cell) for cell in planned])

    table = collect(store, planned)

    assert ["1/s", "1/s", "1/s", "2/s", "2/s", "2/s"] == list(table["job.a.source.rate"])
    assert [True, False, False] * 2 == list(table["checkpoint.barriers"].isna())
    assert ["job.a.source.rate", "checkpoint.barriers"] == list(table.columns[4:6])


@pytest.mark.parametrize("status", ["ok", "error"])
def test_columns_do_not_depend_on_what_came_out(study, tmp_path, status):
    """A sweep of failures has the columns of any other."""
    store, planned = Store(tmp_path), cells(study.scenarios)
    store.put([row(planned[0], status=status)])

    table = collect(store, planned)

    assert {"end_to_end_p99_ms", "caught_up_ms", "path_alignment_ms", "throughput_change"} <= set(table)
    assert "float64" == table["end_to_end_p99_ms"].dtype


def test_a_job_that_restarted_is_held_against_nothing(study, tmp_path):
    """Its baseline read everything again, it did from its latest checkpoint on: neither is throughput."""
    store, planned = Store(tmp_path), with_baselines(cells(study.scenarios))
    store.put([row(planned[0], 300.0, restarts=1.0), row(planned[1], 190.0, restarts=1.0), row(planned[2], 190.0, restarts=0.0)])

    assert [True, True, False] == list(collect(store, planned)["throughput_change"].isna())


def test_what_a_baseline_shows_does_not_depend_on_what_has_run(study, tmp_path):
    """One of two strategies has ended: the baseline is not that one's."""
    store, planned = Store(tmp_path), with_baselines(cells(study.scenarios))
    store.put([row(planned[0]), row(planned[1])])

    assert [True, False] == list(collect(store, planned)["checkpoint.barriers"].isna())


def test_files_that_another_command_joins_meanwhile_are_looked_for_again(study, tmp_path, monkeypatch):
    """The rows are in another file by then: nothing failed, and nothing is lost."""
    store, writer, planned = Store(tmp_path), Store(tmp_path), cells(study.scenarios)
    for cell in planned:
        writer.put([row(cell)])
    real = store.kept

    def kept():
        found = real()
        writer.join()
        return found

    monkeypatch.setattr(store, "kept", kept)

    assert [cell.id for cell in planned] == list(collect(store, planned)["cell"])
