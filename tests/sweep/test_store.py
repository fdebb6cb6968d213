"""Rows on disk: whole or not at all, found again, never mixed."""

import pandas as pd
import pytest

from sim.scenario import loads
from sim.sweep.plan import cells, with_baselines
from sim.sweep.store import Store, collect


def row(cell, rate=100.0, **changes):
    return {"cell": cell.id, "status": "ok", "error": "", "throughput_per_second": rate} | changes


def test_a_sweep_resumes(study, tmp_path):
    """Cells with a row are done, cells whose row is an error are not."""
    store, planned = Store(tmp_path), cells(study.scenarios)
    assert planned == store.missing(planned)

    store.put(row(planned[0]))
    store.put(row(planned[1], status="error", error="ValueError: no"))

    assert [planned[1]] == Store(tmp_path).missing(planned)


def test_no_partial_file_counts(study, tmp_path, monkeypatch):
    """A full disk leaves nothing behind that looks like a row."""
    store, planned = Store(tmp_path), cells(study.scenarios)

    def full(self, path, **_):
        path.write_bytes(b"PAR1")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pd.DataFrame, "to_parquet", full)
    with pytest.raises(OSError, match="No space left"):
        store.put(row(planned[0]))

    assert [] == list((tmp_path / "cells").iterdir())


def test_rows_are_held_against_their_baseline(study, tmp_path):
    """In the order of the plan; a cell that failed has a row too."""
    store, planned = Store(tmp_path), with_baselines(cells(study.scenarios))
    store.put(row(planned[0], 200.0))
    store.put(row(planned[1], 190.0))
    store.put({"cell": planned[2].id, "status": "error", "error": "ValueError: no"})

    table = collect(store, planned)

    assert [cell.id for cell in planned] == list(table["cell"])
    assert ["cell", "status", "error", "throughput_per_second", "throughput_change"] == list(table)
    assert [0.0, -0.05] == [round(change, 9) for change in table["throughput_change"][:2]]
    assert table["throughput_change"].isna()[2]
    assert table.equals(pd.read_parquet(tmp_path / "results.parquet"))
    assert 3 == len(pd.read_csv(tmp_path / "results.csv"))


def test_a_baseline_shows_its_workload(tmp_path):
    """The axes that all cells held against it have in common, beside those that tell strategies apart."""
    text = "version: 1\njob:\n  a: {source: {rate: [1/s, 2/s], record: 100 B}}\n  b: {input: {a: hash}, service: 1 ms}\n"
    study = loads(f"{text}checkpoint: {{interval: 1 s, barriers: [aligned, unaligned]}}\nrun: {{duration: 1 s}}\n")
    store, planned = Store(tmp_path), with_baselines(cells(study.scenarios))
    for cell in planned:
        store.put({"cell": cell.id, "scenario": "x", "replication": 0, "seed": 1, **dict(cell.scenario.axes)} | row(cell))

    table = collect(store, planned)

    assert ["1/s", "1/s", "1/s", "2/s", "2/s", "2/s"] == list(table["job.a.source.rate"])
    assert [True, False, False] * 2 == list(table["checkpoint.barriers"].isna())
    assert ["job.a.source.rate", "checkpoint.barriers"] == list(table.columns[4:6])
