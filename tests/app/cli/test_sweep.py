"""`ckptsim sweep`: rows for many cells, and a second call that goes on."""

import errno
import json
import os
import re

import pandas as pd
import pytest

from sim.model.files import replace_file
from sim.runtime import result
from sim.studies.sweeps import spark_masters, store
from sim.studies.sweeps.store import Store
from tests.app.cli.conftest import without_axes


def test_axes_of_file_and_command_line(ckptsim, tiny, tmp_path):
    """Their product, each row beside its baseline."""
    done = ckptsim(
        f"sweep {tiny} --set 'checkpoint.interval=[500 ms, 1 s]' --set run.replications=2 --jobs 1 --out {tmp_path}/out"
    )

    table = pd.read_parquet(tmp_path / "out" / "results.parquet")
    assert done.exit_code == 0
    assert done.stdout.startswith(
        f"10 of 10 cells have a row in {tmp_path / 'out' / 'results.parquet'}; for an answer, add answer: "
    )
    assert (table["strategy"] != "none").sum() == 8
    assert {"500 ms", "1 s"} == set(table["checkpoint.interval"].dropna())
    assert {0, 1} == set(table["replication"])
    assert table.loc[table["strategy"] != "none", "throughput_change"].abs().max() < 0.05


def test_rows_without_an_answer_are_no_report_and_no_expectation(ckptsim, tiny, tmp_path):
    done = ckptsim(f"sweep {tiny} --set 'expect.checkpoints.failed=== 0' --jobs 1 --out {tmp_path}/out")
    assert done.exit_code == 0
    assert "warning: tiny: expect: is judged by 'ckptsim run', not by a sweep, and has no effect here" in done.stderr

    report = ckptsim(f"report {tmp_path}/out -o page.html")
    assert report.exit_code == 3
    assert report.stderr.endswith("out: has rows of a sweep, but no answer: add answer: to the sweep file\n")


def test_a_second_call_goes_on(ckptsim, tiny, tmp_path, monkeypatch):
    """Nothing is left to do, unless the scenario changed or ckptsim itself: then it says why all runs again, and loses nothing."""
    command = f"sweep {tiny} --jobs 1 --out {tmp_path}/out"
    assert without_axes(ckptsim(command)) == ""
    assert without_axes(ckptsim(command)) == "3 of 3 cells have results already\n"

    tiny.write_text(tiny.read_text().replace("200/s", "300/s"))
    others = f"3 rows in {tmp_path / 'out'} belong to other settings or another version of ckptsim: they are kept, and all 3 cells run\n"
    assert others == without_axes(ckptsim(command))

    monkeypatch.setattr(result, "code_version", lambda: "another")
    assert others.replace("3 rows", "6 rows") == without_axes(ckptsim(command))
    assert len(Store(tmp_path / "out").rows()) == 9


def test_failed_cells_have_an_exit_code(ckptsim, tiny, monkeypatch):
    """Each is one line; the others have rows."""
    from sim.runtime import simulate as module

    real = module.simulate

    def broken(scenario, **options):
        if scenario.checkpoint.barriers.kind == "unaligned":
            raise RuntimeError("no")
        return real(scenario, **options)

    monkeypatch.setattr(module, "simulate", broken)

    done = ckptsim(f"sweep {tiny} --jobs 1")

    assert done.exit_code == 4
    assert re.match(r"cell [0-9a-f]+: RuntimeError: no \(sim/studies/cells\.py:\d+\)\n", without_axes(done))
    assert "to run only the failed cells again" in done.stderr
    assert done.stdout.startswith("2 of 3 cells")


def test_a_broken_promise_has_an_exit_code_and_names_its_settings(ckptsim, tmp_path):
    """A transaction that is open for longer than the broker keeps it: with one of two intervals."""
    (tmp_path / "job.yaml").write_text(
        """# Which interval goes with a timeout of 3 s?
version: 1
job:
  src: {source: {rate: 200/s, record: 100 B}}
  sink: {input: {src: hash}, service: 50 us, connector: kafka-exactly-once, commit: {transaction-timeout: 3 s}}
checkpoint: {interval: [1 s, 5 s]}
run: {duration: 12 s}
"""
    )
    done = ckptsim(f"sweep {tmp_path}/job.yaml --jobs 1 --out {tmp_path}/out")

    assert done.exit_code == 1
    assert "violation: checkpoint.interval 5 s: " in done.stderr
    assert "records are lost: the transaction was open for longer" in done.stderr
    assert "violation: checkpoint.interval 1 s: " not in done.stderr


@pytest.mark.extra
def test_without_java_one_line_says_what_to_do(ckptsim, tiny, monkeypatch):
    pytest.importorskip("pyspark")
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(spark_masters.importlib.util, "find_spec", lambda name: None)

    done = ckptsim(f"sweep {tiny} --master 'local[1]'")

    assert done.exit_code == 5
    assert f"{spark_masters.NO_JAVA}\n" == without_axes(done)


def test_the_first_failure_may_be_the_last(ckptsim, tiny, monkeypatch):
    """What was done is kept."""
    from sim.runtime import simulate as module

    monkeypatch.setattr(module, "simulate", lambda scenario, **_: 1 / 0)

    done = ckptsim(f"sweep {tiny} --jobs 1 --max-failures 0")

    assert done.exit_code == 4
    assert without_axes(done).startswith("stopped after 1 failed cells, the last one ")


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (
            "--master mesos://head:5050",
            2,
            "--master: expected local[*], spark://HOST:PORT, yarn or k8s://https://HOST:PORT, not 'mesos://head:5050'",
        ),
        (
            "--master yarn --conf executor.memory=2g",
            2,
            "--conf: expected spark.KEY=VALUE, not 'executor.memory=2g'",
        ),
        ("--conf spark.executor.memory=2g", 2, "--conf is for Spark: say --master as well"),
        (
            "--master yarn",
            5,
            "--master yarn: set HADOOP_CONF_DIR or YARN_CONF_DIR to the folder of the cluster's configuration",
        ),
    ],
)
def test_a_cluster_that_cannot_be(ckptsim, tiny, monkeypatch, options, code, message):
    """One line, before anything is started."""
    for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)

    done = ckptsim(f"sweep {tiny} {options}")

    assert (code, f"{message}\n", "") == (done.exit_code, without_axes(done), done.stdout)


def test_a_changed_value_is_not_used(ckptsim, tiny, tmp_path):
    """The file is set aside, one line says so, and the cells in it run again: the results are the same as before."""
    command = f"sweep {tiny} --jobs 1 --out {tmp_path}/out"
    ckptsim(command)
    before = (tmp_path / "out" / "results.csv").read_bytes()
    for kept in (tmp_path / "out" / "cells").iterdir():
        pd.read_parquet(kept).assign(throughput_per_second=1e6).to_parquet(kept, index=False)

    done = ckptsim(command)

    assert done.exit_code == 0
    assert without_axes(done).count(f"moved to {tmp_path / 'out' / 'set-aside'}; the cells will run again\n") == 1
    assert before == (tmp_path / "out" / "results.csv").read_bytes()


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EACCES, errno.ENOENT])
def test_a_folder_that_takes_no_more_rows(ckptsim, tiny, tmp_path, monkeypatch, error):
    """A full disk, a folder that was taken away: one line; what was kept before stays, and the next call runs the rest."""
    command = f"sweep {tiny} --jobs 1 --out {tmp_path}/out"
    real, written = replace_file, []

    def full(path, write):
        written.append(path)
        if len(written) > 1:
            raise OSError(error, "of a library's, longer")
        real(path, write)

    monkeypatch.setattr(store, "MAX_BUFFER_AGE_S", 0)
    monkeypatch.setattr(store, "replace_file", full)
    done = ckptsim(command)
    monkeypatch.setattr(store, "replace_file", real)

    reason = f"cannot write results to {tmp_path / 'out'}: {os.strerror(error)}; earlier results are kept, run the same command to resume\n"
    assert (4, reason) == (done.exit_code, without_axes(done))
    assert without_axes(ckptsim(command)) == "1 of 3 cells have results already\n"


@pytest.mark.parametrize("verb", ["sweep", "advise", "traces read"])
def test_every_verb_on_spark_takes_its_settings(ckptsim, tiny, verb):
    done = ckptsim(f"{verb} {tiny} --master 'local[1]' --conf nonsense")

    assert (done.exit_code, without_axes(done)) == (2, "--conf: expected spark.KEY=VALUE, not 'nonsense'\n")


def test_a_sweep_is_json_for_machines(ckptsim, tiny, tmp_path):
    """Rows and answer on stdout, and nothing else there."""
    done = ckptsim(f"sweep {tiny} --jobs 1 --json --out {tmp_path}/out")

    data = json.loads(done.stdout)
    assert len(pd.read_parquet(tmp_path / "out" / "results.parquet")) == len(data["rows"])
    assert {"name", "question", "sections", "sentence", "known_issues", "rows"} == set(data)
    assert "cells have a row" in done.stderr


def test_columns_of_an_answer_have_titles(ckptsim, tiny, tmp_path):
    """Their values have units, which names of columns contradict: 36 s under caught_up_ms."""
    (tmp_path / "sweep.yaml").write_text(
        "# Which?\nversion: 1\nscenario: tiny.yaml\nvary: {checkpoint.interval: [500 ms, 1 s]}\n"
        "answer: {settings: [checkpoint.interval], show: [end_to_end_p50_ms], least: end_to_end_p50_ms}\n"
    )
    done = ckptsim("sweep sweep.yaml --jobs 1")

    assert done.exit_code == 0, done.stderr
    assert "checkpoint duration, median" in done.stdout
    assert "end_to_end_p50_ms" not in done.stdout
