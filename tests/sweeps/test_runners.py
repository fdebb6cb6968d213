"""A sweep: the same rows wherever it runs, and only what is missing runs."""

import os
import signal

import pytest

from sim.cells.cell import timed as real_row
from sim.cells.plan import cells, with_baselines
from sim.sweeps import workers
from sim.sweeps.runners import TooManyFailuresError, sweep
from sim.sweeps.store import Store
from sim.sweeps.workers import Workers


@pytest.fixture
def planned(study):
    return with_baselines(cells(study.scenarios))


def test_only_what_is_missing_runs(planned, tmp_path, monkeypatch):
    """Cells that are there are not simulated again, failed ones are."""
    ran = []

    def watched(cell, *options, **named):
        ran.append(cell)
        if len(ran) == 2:
            return {"cell": cell.id, "status": "error", "error": "RuntimeError: no"}
        return real_row(cell, *options, **named)

    monkeypatch.setattr(workers, "timed", watched)

    first = sweep(planned, Store(tmp_path), Workers(1))
    second = sweep(planned, Store(tmp_path), Workers(1))

    assert ["ok", "error", "ok"] == list(first["status"])
    assert ["ok", "ok", "ok"] == list(second["status"])
    assert [*planned, planned[1]] == ran


def test_too_many_failures_end_a_sweep(planned, tmp_path, monkeypatch):
    """What was done is kept, the failures too."""

    def failing(cell, *options, **named):
        return real_row(cell, *options, **named) | {"status": "error", "error": "RuntimeError: no"}

    monkeypatch.setattr(workers, "timed", failing)

    with pytest.raises(TooManyFailuresError, match=r"stopped after 2 failed cells, the last one \w+: RuntimeError: no"):
        sweep(planned, Store(tmp_path), Workers(1), max_failures=1)

    assert 2 == len(Store(tmp_path).rows())


def test_a_cell_that_kills_its_worker_is_a_row(planned, tmp_path, monkeypatch):
    """It is tried twice; the others do not suffer."""
    poison = planned[1].id

    def deadly(cell, *options, **named):
        if cell.id == poison:
            os.kill(os.getpid(), signal.SIGKILL)
        return real_row(cell, *options, **named)

    monkeypatch.setattr(workers, "timed", deadly)

    table = sweep(planned, Store(tmp_path), Workers(2))

    assert ["ok", "error", "ok"] == list(table["status"])
    assert "the worker process was killed" in table["error"][1]


def test_processes_give_the_same_results(planned, tmp_path):
    """Byte by byte."""
    for jobs in (1, 2):
        sweep(planned, Store(tmp_path / str(jobs)), Workers(jobs))

    same_results(tmp_path / "1", tmp_path / "2")


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
def test_spark_gives_the_same_results(planned, tmp_path):
    """Whether a process or a Spark task simulated a cell, nobody can tell from its row."""
    pytest.importorskip("pyspark")
    sweep(planned, Store(tmp_path / "jobs"), Workers(1), engine="interpreted")

    seen = []
    with Workers(master="local[2]") as workers:
        sweep(planned, Store(tmp_path / "spark"), workers, engine="interpreted", watch=lambda finished, ns: seen.append(finished))

    same_results(tmp_path / "jobs", tmp_path / "spark")
    assert 3 == seen[-1]


def same_results(first, other):
    for name in ("results.parquet", "results.csv"):
        assert (first / name).read_bytes() == (other / name).read_bytes()
