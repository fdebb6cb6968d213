"""A large sweep whose rows are filled in: nothing is left to run, and the answer does not take much memory."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import bench_cells
from sim.studies.sweeps import store
from sim.studies.sweeps.results import read_results


def test_filled_in_rows_are_answered_without_a_run(tmp_path, monkeypatch):
    """Two intervals, two rates, three seeds, and a baseline per rate and seed."""
    monkeypatch.setattr(store, "MAX_ROWS_TO_JOIN", 7)
    file = bench_cells.study(tmp_path, 3, intervals=2, rates=2)

    assert bench_cells.filled(file, tmp_path / "rows") == 18
    assert len(list((tmp_path / "rows" / "cells").iterdir())) == 3
    measures = bench_cells.measured(file, tmp_path / "rows")
    assert (measures["cells"], "Mean over 2 worlds" in str(measures["answer"])) == (18, True)
    assert {"here"} == set(store.Store(tmp_path / "rows").kept().table(range(18), ["host"])["host"].to_pylist())
    assert len(read_results(tmp_path / "rows")) == 18


@pytest.mark.slow
def test_a_third_of_a_million_cells_take_less_than_700_mb(tmp_path):
    """It was more than a gigabyte: files of many rows stayed in memory whole, and texts as Python objects."""
    file = bench_cells.study(tmp_path, 3000)
    folder = str(tmp_path / "rows")
    for mode in ("--fill", "--one"):
        done = subprocess.run(
            [sys.executable, bench_cells.__file__, mode, str(file), folder],
            cwd=Path(bench_cells.__file__).parents[1],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONPATH": str(bench_cells.ROOT), "HOME": str(tmp_path)},
        )

    found = json.loads(done.stdout.splitlines()[-1])
    assert found["cells"] == 330_000
    assert found["all MB"] < 700
