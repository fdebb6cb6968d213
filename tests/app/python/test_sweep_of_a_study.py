"""Sweeps from Python."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

import sim
from sim.studies.sweeps.store import Store
from tests.conftest import STUDY
from tests.processes import run_python


@pytest.mark.parametrize(
    "axes", [{"checkpoint.interval": "10 s"}, {"checkpoint.interval": []}, ["checkpoint.interval"]]
)
def test_values_that_are_no_list_are_told_with_an_example(study, axes):
    with pytest.raises(TypeError, match="axes: "):
        sim.sweep(study, axes)


def test_rows_of_a_sweep_have_numbers_and_units_and_say_which_are_baselines(study, tmp_path):
    """Also in the file: texts such as 800 ms do not sort by size."""
    swept = sim.sweep(study, {"checkpoint.interval": ["1500 ms", "800 ms"]}, folder=tmp_path, jobs=1)
    rows = swept.results[swept.results["strategy"] != "none"]

    assert rows["checkpoint.interval_ms"].tolist() == [
        {"1500 ms": 1500.0, "800 ms": 800.0}[text] for text in rows["checkpoint.interval"]
    ]
    assert swept.results.attrs["units"]["checkpoint.interval_ms"] == "ms"
    assert list(pd.read_parquet(tmp_path / "results.parquet")) == list(swept.results)
    assert repr(swept).startswith("4 cells, and 1 without checkpoints (strategy none)")
    assert max(map(len, repr(swept).splitlines()[:-1])) < 160
    with pytest.raises(ValueError, match="nor a question"):
        swept.plot()


ON_SPARK = """\
import sys
import sim

study = sim.load("tiny.yaml")["aligned"].with_({"run.duration": "2 min"})
print(len(sim.sweep(study, {"run.seed": list(range(1, 21))}, folder="rows", **eval(sys.argv[1])).results))
"""
"""A script of a user: 20 cells, and as many without checkpoints."""


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
def test_a_sweep_on_spark_that_is_stopped_keeps_its_rows_and_says_so(tmp_path):
    """Ctrl-C in a script ends it as the command ends; another call goes on, here or on Spark."""
    pytest.importorskip("pyspark")
    (tmp_path / "tiny.yaml").write_text(STUDY)
    (tmp_path / "script.py").write_text(ON_SPARK)
    environment = os.environ | {"PYTHONPATH": str(Path(sim.__file__).parents[1])}
    command = [sys.executable, "script.py", "{'master': 'local[2]'}"]
    run = subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    while run.poll() is None and not any((tmp_path / "rows" / "cells").glob("*.parquet")):
        time.sleep(0.1)
    run.send_signal(signal.SIGINT)
    printed, message = run.communicate(timeout=120)
    kept = set(Store(tmp_path / "rows").rows())

    assert (0 < len(kept) < 40, printed) == (True, "")
    assert f"{len(kept)} of 40 cells are kept in rows; run the same command to resume" in message
    done = run_python("script.py", "{'jobs': 1}", cwd=tmp_path, env=environment, check=True)
    assert (done.stdout.strip(), kept < set(Store(tmp_path / "rows").rows())) == ("40", True)


def test_a_sweep_without_a_question_draws_a_column_over_a_key(study, tmp_path):
    """Quantities in their order, a line for each value of another key; and it says what can be drawn."""
    swept = sim.sweep(study, {"checkpoint.interval": ["4 s", "800 ms", "1 s"]}, folder=tmp_path, jobs=1)
    picture = swept.plot("end_to_end_p50_ms", x="checkpoint.interval", by="checkpoint.barriers")
    lines = {
        line.get_label(): list(line.get_xdata())
        for line in picture.figure.axes[0].lines
        if not line.get_label().startswith("_")
    }

    assert lines == {"aligned": [0.8, 1.0, 4.0], "unaligned": [0.8, 1.0, 4.0]}
    assert picture.figure.axes[0].get_xlabel() == "checkpoint.interval [s]"
    assert picture.figure.axes[0].get_ylabel() == "checkpoint duration, median [ms]"
    assert swept.plot("end_to_end_p50_ms", x="checkpoint.barriers")._repr_png_().startswith(b"\x89PNG")
    assert picture.figure.get_suptitle() == ""
    few = swept.plot("end_to_end_p99_ms", x="checkpoint.interval").figure.get_suptitle().replace("\n", " ")
    assert few.startswith("checkpoint duration, p99 needs 100 checkpoints, and a run has ")
    assert few.endswith(": read it as the longest one")
    with pytest.raises(ValueError, match="y: 'p50' is not among"):
        swept.plot("p50")
    with pytest.raises(ValueError, match="nor a question"):
        swept.plot()
