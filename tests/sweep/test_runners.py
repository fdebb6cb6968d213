"""A sweep: the same rows wherever it runs, and only what is missing runs."""

import pytest

from sim.sweep import runners
from sim.sweep.cell import row as real_row
from sim.sweep.plan import cells, with_baselines
from sim.sweep.runners import sweep
from sim.sweep.store import Store


@pytest.fixture
def planned(study):
    return with_baselines(cells(study.scenarios))


def test_only_what_is_missing_runs(planned, tmp_path, monkeypatch):
    """Cells that are there are not simulated again, failed ones are."""
    ran = []

    def watched(cell, *options, **more):
        ran.append(cell)
        if len(ran) == 2:
            return {"cell": cell.id, "status": "error", "error": "RuntimeError: no"}
        return real_row(cell, *options, **more)

    monkeypatch.setattr(runners, "row", watched)

    first = sweep(planned, Store(tmp_path), jobs=1)
    second = sweep(planned, Store(tmp_path), jobs=1)

    assert ["ok", "error", "ok"] == list(first["status"])
    assert ["ok", "ok", "ok"] == list(second["status"])
    assert [*planned, planned[1]] == ran


def test_processes_give_the_same_files(planned, tmp_path):
    """Byte by byte."""
    for jobs in (1, 2):
        sweep(planned, Store(tmp_path / str(jobs)), jobs=jobs)

    same_files(tmp_path / "1", tmp_path / "2", count=5)


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
def test_spark_gives_the_same_files(planned, tmp_path):
    """Whether a process or a Spark task simulated a cell, nobody can tell from its row."""
    pytest.importorskip("pyspark")
    sweep(planned, Store(tmp_path / "jobs"), jobs=1, engine="interpreted")

    seen = []
    sweep(planned, Store(tmp_path / "spark"), master="local[2]", engine="interpreted", watch=lambda finished, ns: seen.append(finished))

    same_files(tmp_path / "jobs", tmp_path / "spark", count=5)
    assert 3 == seen[-1]


def same_files(one, other, *, count):
    names = sorted(path.relative_to(one) for path in one.rglob("*") if path.is_file())
    assert count == len(names)
    assert [] == [name for name in names if (one / name).read_bytes() != (other / name).read_bytes()]
