"""One cell, one row."""

import math
import re
import subprocess
import sys

import pytest

from sim.model.schema.study import load
from sim.results.columns import unit_of
from sim.runtime import simulate as module
from sim.runtime.clock import TwoPlaneEnvironment
from sim.studies.cells import COLUMNS, OUTCOME, PROVENANCE, described, outcome
from sim.studies.plan import cells, with_baselines


def test_a_row_says_what_came_out(study):
    """The baseline has a throughput and no durations."""
    bare, aligned, _ = [outcome(cell) for cell in with_baselines(cells(study.scenarios))]

    assert (bare["status"], aligned["status"]) == ("ok", "ok")
    assert aligned["completed"] >= 2
    assert math.isnan(bare["end_to_end_p50_ms"])
    assert abs(aligned["throughput_per_second"] / bare["throughput_per_second"] - 1) < 0.05


def test_a_row_is_that_of_all_tables(study, monkeypatch):
    """A cell keeps only what its row is made of; all tables of a whole run give the same row."""
    planned = with_baselines(cells(study.scenarios))
    rows = [outcome(cell) for cell in planned]
    simulate = module.simulate
    kept = []

    def with_all_tables(scenario, *, only, **given):
        kept.append(simulate(scenario, only=only, **given))
        return simulate(scenario, **given)

    monkeypatch.setattr(module, "simulate", with_all_tables)

    assert repr(rows) == repr([outcome(cell) for cell in planned])
    assert [0] * len(planned) == [len(result.files) for result in kept]
    assert kept[-1].subtasks.shape[1] == 7
    assert kept[-1].series.shape[1] == 10


WITHOUT_PYARROW = """
import sys
from sim.studies.sweeps.spark_task import import_pandas_without_pyarrow
import_pandas_without_pyarrow()
from sim.model.schema.study import load
from sim.studies.cells import outcome
from sim.studies.plan import cells
print([outcome(cell) for cell in cells(load(sys.argv[1]).scenarios)])
assert "pyarrow" not in sys.modules
"""


def test_a_row_needs_no_pyarrow(tmp_path):
    """A worker of Spark saves its memory."""
    file = tmp_path / "disturbed.yaml"
    file.write_text(DISTURBED % ("", "fixed-delay", "{task-manager: 0, at: 5 s}"))

    done = subprocess.run([sys.executable, "-c", WITHOUT_PYARROW, file], capture_output=True, text=True, check=False)

    assert done.stdout == f"{[outcome(cell) for cell in cells(load(file).scenarios)]}\n", done.stderr


DISTURBED = """
version: 1
job:
  events: {source: {rate: 200/s, record: 1 kB}}
  count: {input: {events: hash}, service: 3 ms, state: {size: 20 MB, backend: rocksdb}}
checkpoint: {interval: 2 s%s}
storage: {bandwidth: 100 MB/s}
restart: {strategy: %s}
run: {duration: 20 s}
faults: [%s]
"""


def test_an_overloaded_job_has_a_row(tmp_path):
    """What says so needs no column that a cell leaves out."""
    file = tmp_path / "overloaded.yaml"
    file.write_text((DISTURBED % ("", "exponential-delay", "")).replace("3 ms", "9 ms"))

    row = outcome(cells(load(file).scenarios)[0])

    assert (row["status"], row["error"]) == ("ok", "")
    assert row["emitted_per_second"] < 150


def disturbed(tmp_path, *parts):
    file = tmp_path / "disturbed.yaml"
    file.write_text(DISTURBED % parts)
    return outcome(cells(load(file).scenarios)[0])


def test_a_row_says_what_had_not_ended(tmp_path):
    """Two failures, the second shortly before the end: the time until caught up is more than what was seen."""
    calm = disturbed(tmp_path, "", "fixed-delay", "")
    early = disturbed(tmp_path, "", "fixed-delay", "{kill: count, at: 5 s}")
    late = disturbed(tmp_path, "", "fixed-delay", "{kill: count, at: 5 s}, {kill: count, at: 19500 ms}")

    assert {"downtime_ms", "caught_up_ms", "visible_p99_ms"} <= set(calm["nothing"].split())
    assert "caught_up_ms" not in early["unfinished"].split() + early["nothing"].split()
    assert "caught_up_ms" in late["unfinished"].split()
    assert (early["caught_up_ms"] + 500) / 2 == pytest.approx(late["caught_up_ms"], rel=0.05)


def test_expired_checkpoints_are_no_quick_ones(tmp_path):
    """Those that are over within the timeout would be the short ones."""
    row = disturbed(tmp_path, ", timeout: 100 ms, tolerable-failed: 99", "fixed-delay", "")

    assert (row["completed"], row["failed"] > 5) == (0, True)
    assert {"end_to_end_p50_ms", "end_to_end_p99_ms", "alignment_ms", "path_upload_ms"} <= set(
        row["unfinished"].split()
    )
    assert row["end_to_end_p50_ms"] >= 100


def test_a_dead_job_is_not_on_time(tmp_path):
    """Its sources are due to emit until the run ends: no lag was 0, and a recovery that never came was nothing to measure."""
    row = disturbed(tmp_path, "", "none", "{kill: count, at: 5 s}")

    assert row["job_status"].startswith("FAILED")
    assert pytest.approx(row["lag_s"], abs=0.1) == 15
    assert {"lag_s", "delay_mean_s", "delay_p99_s"} <= set(row["unfinished"].split())
    assert "caught_up_ms" not in row["nothing"].split()


def test_an_error_is_a_row(study, monkeypatch):
    """First line only; the cell can be told from it."""

    def broken(scenario, **_):
        raise ArithmeticError("negative credit\nwith a story")

    monkeypatch.setattr(module, "simulate", broken)
    cell = cells(study.scenarios)[0]

    result = outcome(cell)

    assert (cell.id, "error") == (result["cell"], result["status"])
    assert re.fullmatch(r"ArithmeticError: negative credit \(sim/studies/cells\.py:\d+\)", result["error"]), result[
        "error"
    ]


def test_an_error_in_mid_run_says_where_and_when(study, monkeypatch):
    """The innermost line of ours, and the simulated time: what it takes to look for it."""

    def broken(self, *_):
        if self.now >= 1_000_000_000:
            raise ValueError("no credit")
        return step(self)

    step = TwoPlaneEnvironment.step
    monkeypatch.setattr(TwoPlaneEnvironment, "step", broken)
    result = outcome(cells(study.scenarios)[0])["error"]

    assert re.fullmatch(
        r"ValueError: no credit \(sim/runtime/[a-z_/]+\.py:\d+, after \d+\.\d{6} s of simulated time\)", result
    ), result


def test_every_column_is_described():
    """In the order of the tables; nothing is described that does not exist."""
    found = described()
    meanings = {name: meaning for table in ("results", "runs") for name, _, meaning in found[table]}

    assert [*OUTCOME, "throughput_change", *PROVENANCE] == list(meanings)
    assert [name for name, meaning in meanings.items() if not meaning.strip()] == []
    assert set(COLUMNS) <= set(meanings)


def test_the_end_of_a_name_is_its_unit():
    names = ("downtime_ms", "lag_s", "persisted_bytes", "throughput_per_second", "completed")

    assert [unit_of(name).symbol for name in names] == ["ms", "s", "bytes", "records/s", ""]


def test_every_column_of_numbers_can_be_compared():
    """What it follows exists, and a bound is a lower one."""
    assert [name for name, column in COLUMNS.items() if column.follows and column.follows not in COLUMNS] == []
    assert [
        name for name, column in COLUMNS.items() if (column.ends or column.follows) and column.worse == "less"
    ] == []
