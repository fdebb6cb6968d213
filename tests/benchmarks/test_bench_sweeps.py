"""Answers of two versions are told apart by what they say, and parts of sweeps are smaller than the whole."""

from __future__ import annotations

import pytest

from benchmarks.answers import SWEEPS
from benchmarks.bench_sweeps import PARTS, differences, part
from sim.studies.sweeps.run import run_sweep
from sim.studies.sweeps.sweep_file import define
from tests.benchmarks.small_job import SCENARIO

SWEEP = """\
version: 1
scenario: job.yaml
vary: {checkpoint.interval: [1 s, 2 s]}
answer: {show: [completed, end_to_end_p50_ms], least: completed}
"""


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep")
    (folder / "job.yaml").write_text(SCENARIO)
    (folder / "sweep.yaml").write_text(SWEEP)
    result = run_sweep(folder / "sweep.yaml", folder / "rows", jobs=1)
    return result.definition.question, result.results


def test_equal_rows_give_equal_answers(swept):
    question, rows = swept
    assert list(differences(question, rows, rows.copy())) == []


def test_a_mean_that_moved_is_told(swept):
    question, rows = swept
    theirs = rows.assign(end_to_end_p50_ms=4.0)
    ours = theirs.assign(end_to_end_p50_ms=theirs["end_to_end_p50_ms"].mask(rows["checkpoint.interval"] == "1 s", 5.0))
    expected = ["end_to_end_p50_ms: 1 of 2 means differ, by up to 25.00%, at the median by 25.00%"]
    assert expected == list(differences(question, ours, theirs))


def test_another_choice_is_told(swept):
    question, rows = swept
    ours, theirs, *means = differences(question, rows, rows.assign(completed=9 - rows["completed"]))
    assert "here: Least completed:" in ours
    assert "there: Least completed:" in theirs
    assert ours.partition(" ")[2] != theirs.partition(" ")[2]
    assert [line.partition(",")[0] for line in means] == ["completed: 2 of 2 means differ"]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name == "khaos-windows" else name for name in PARTS]
)
def test_a_part_has_the_axes_of_the_whole_and_less_to_do(name, tmp_path):
    full, less = define(SWEEPS / f"{name}.yaml"), define(part(name, tmp_path, complete=False))
    assert SWEEPS / f"{name}.yaml" == part(name, tmp_path, complete=True)
    assert full.question.settings == less.question.settings
    seconds = [sum(scenario.run.duration_ns for scenario in found.scenarios) for found in (full, less)]
    assert seconds[0] >= 4 * seconds[1]
