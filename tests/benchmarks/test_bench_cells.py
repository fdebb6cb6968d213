"""A large sweep whose rows are filled in: nothing is left to run, and the answer does not take much memory."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import bench_cells
from sim.sweeps import store
from sim.sweeps.results import read_results


def test_filled_in_rows_are_answered_without_a_run(tmp_path, monkeypatch):
    """Two intervals, two rates, three seeds, and a baseline per rate and seed."""
    monkeypatch.setattr(store, "LONGEST", 7)
    file = bench_cells.study(tmp_path, 3, intervals=2, rates=2)

    assert 18 == bench_cells.filled(file, tmp_path / "rows")
    assert 3 == len(list((tmp_path / "rows" / "cells").iterdir()))
    measures = bench_cells.measured(file, tmp_path / "rows")
    assert (18, True) == (measures["cells"], "Mean over 2 worlds" in str(measures["answer"]))
    assert {"here"} == set(store.Store(tmp_path / "rows").kept().table(range(18), ["host"])["host"].to_pylist())
    assert 18 == len(read_results(tmp_path / "rows"))


@pytest.mark.slow
def test_a_third_of_a_million_cells_take_600_mb(tmp_path):
    """It was more than a gigabyte: files of many rows stayed in memory whole, and texts as Python objects."""
    file = bench_cells.study(tmp_path, 3000)
    folder = str(tmp_path / "rows")
    for mode in ("--fill", "--one"):
        done = subprocess.run(
            [sys.executable, bench_cells.__file__, mode, str(file), folder], cwd=Path(bench_cells.__file__).parents[1],
            capture_output=True, text=True, check=True, env={"PYTHONPATH": str(bench_cells.ROOT), "HOME": str(tmp_path)},
        )  # fmt: skip

    found = json.loads(done.stdout.splitlines()[-1])
    assert 330_000 == found["cells"]
    assert found["all MB"] < 600
