"""A sweep: the same rows wherever it runs, and only what is missing runs."""

import os
import signal

import pytest

from sim.plane import warm
from sim.studies.cells import timed as real_row
from sim.studies.plan import cells, with_baselines
from sim.studies.progress import no_watch
from sim.studies.sweeps import run
from sim.studies.sweeps.results import write_and_read_results
from sim.studies.sweeps.run import TooManyFailuresError, Workers, run_missing
from sim.studies.sweeps.store import Store


@pytest.fixture
def planned(study):
    return with_baselines(cells(study.scenarios))


def sweep(planned, store, workers, **options):
    run_missing(planned, store, workers, **options)
    return write_and_read_results(store, planned)


class Made:
    """Workers that simulate nothing: cells whose number is in `failing` have an error as their row."""

    def __init__(self, failing=()):
        self.failing, self.calls, self.ended = failing, [], False

    def rows(self, missing, watch, check):
        self.calls.append((list(missing), check))
        try:
            for i, cell in enumerate(missing):
                failed = i in self.failing
                yield {
                    "cell": cell.id,
                    "status": "error" if failed else "ok",
                    "error": "ValueError: no" if failed else "",
                }
                watch(i + 1, 10 * (i + 1))
        finally:
            self.ended = True


OPTIONS = {
    "watch": lambda *_: None,
    "check": False,
    "max_failures": None,
}


@pytest.mark.parametrize(
    ("failing", "most", "stops_after"),
    [
        ((), 0, None),
        ((0,), 0, 1),
        ((1,), 0, 2),
        ((0, 2), 1, 3),
        ((0,), 1, None),
        ((0, 1, 2), 3, None),
        ((0, 1, 2), None, None),
    ],
)
def test_a_sweep_stops_at_the_first_failure_beyond_those_allowed(planned, tmp_path, failing, most, stops_after):
    """The rows until then are stored, and no worker goes on."""
    made, options = Made(failing), OPTIONS | {"max_failures": most}
    if stops_after is None:
        run_missing(planned, Store(tmp_path), made, **options)
    else:
        with pytest.raises(
            TooManyFailuresError,
            match=f"stopped after {most + 1} failed cells, the last one {planned[stops_after - 1].id}",
        ):
            run_missing(planned, Store(tmp_path), made, **options)

    count = stops_after or len(planned)
    assert {cell.id for cell in planned[:count]} == set(Store(tmp_path).rows())
    assert made.ended


def test_nothing_is_asked_of_workers_when_all_rows_are_there(planned, tmp_path):
    """A Spark would be started for nothing."""
    made = Made()
    for _ in range(2):
        run_missing(planned, Store(tmp_path), made, **OPTIONS)

    assert [(list(planned), False)] == made.calls


def test_whoever_watches_sees_how_far_it_is(planned, tmp_path):
    seen = []
    run_missing(planned, Store(tmp_path), Made(), **OPTIONS | {"watch": lambda *reached: seen.append(reached)})

    assert seen == [(1, 10), (2, 20), (3, 30)]


def test_a_sweep_leaves_one_file_of_its_own(planned, tmp_path, monkeypatch):
    """However often its rows were written meanwhile."""
    monkeypatch.setattr("sim.studies.sweeps.store.MAX_BUFFER_AGE_S", 0.0)
    run_missing(planned, Store(tmp_path), Made(), **OPTIONS)

    assert len(list((tmp_path / "cells").glob("*.parquet"))) == 1


def test_a_cell_that_kills_its_worker_is_a_row(planned, tmp_path, monkeypatch):
    """It is tried twice; the others do not suffer."""
    poison = planned[1].id

    def deadly(cell, *options, **named):
        if cell.id == poison:
            os.kill(os.getpid(), signal.SIGKILL)
        return real_row(cell, *options, **named)

    monkeypatch.setattr(run, "timed", deadly)

    table = sweep(planned, Store(tmp_path), Workers(2))

    assert list(table["status"]) == ["ok", "error", "ok"]
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
    sweep(planned, Store(tmp_path / "jobs"), Workers(1))

    seen = []
    with Workers(master="local[2]") as workers:
        sweep(
            planned,
            Store(tmp_path / "spark"),
            workers,
            watch=lambda finished, ns: seen.append(finished),
        )

    same_results(tmp_path / "jobs", tmp_path / "spark")
    assert seen[-1] == 3


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
def test_an_executor_does_not_compile(tmp_path, study):
    """It finds nothing in its cache, and would keep there what it compiled."""
    pytest.importorskip("pyspark")
    warm()
    planned = cells(study.scenarios)[:1]
    conf = {"spark.executorEnv.CKPTSIM_CACHE_DIR": str(tmp_path / "cache")}

    with Workers(master="local[1]", conf=conf) as workers:
        (row,) = workers.rows(planned, no_watch, check=True)

    assert (row["status"], (tmp_path / "cache").exists()) == ("ok", False)


def same_results(first, other):
    for name in ("results.parquet", "results.csv"):
        assert (first / name).read_bytes() == (other / name).read_bytes()
