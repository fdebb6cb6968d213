"""What the history of an imported job says of results stands beside them, for people and for machines."""

import json

import pytest

from sim.model.schema.history_file import write_scenario_and_history

HISTORY = """\
residuals: {checkpoints: 2, unit: 1 ms, of: {sink: {async: [[0, 40]]}}}
backtest:
  runs: 3
  simulated: 90 s
  end-to-end:
    observed: {p50: 400 ms, p90: 1 s, max: 2 s, count: 20}
    predicted: {p50: 390 ms, p90: 410 ms, max: 420 ms, count: 60}
    off: [p90]
    cause: unknown
"""
SENTENCES = [
    "the simulation deviates from the history of 20 checkpoints that was imported: end-to-end p90 -59 %",
    "tails are drawn from the residuals of 2 checkpoints of the job's own history",
]
OFF = {
    "quantity": "end-to-end",
    "vertex": None,
    "quantile": "p90",
    "observed": 1000.0,
    "predicted": 410.0,
}
EXPECTED = {"sentences": SENTENCES, "checkpoints": 20, "off": [OFF], "tail_from_checkpoints": 2}


@pytest.fixture
def imported(tiny):
    tiny.write_text(tiny.read_text() + HISTORY)
    return tiny


def test_of_a_run(ckptsim, imported, tmp_path):
    done = ckptsim(f"run {imported} --json --out {tmp_path}/out --jobs 1")

    assert json.loads(done.stdout)["history"] == EXPECTED
    assert json.loads((tmp_path / "out" / "comparison.json").read_text())["history"] == EXPECTED
    assert all(f"tiny: {sentence}" in done.stderr for sentence in SENTENCES)


def test_of_a_scenario_that_nobody_imported(ckptsim, tiny):
    assert None is json.loads(ckptsim(f"run {tiny} --json --jobs 1").stdout)["history"]


def test_of_the_answer_of_a_sweep(ckptsim, imported, tmp_path):
    """Its page names it among what is known of the job."""
    file = tmp_path / "sweep.yaml"
    file.write_text("scenario: tiny.yaml\nanswer: {show: [end_to_end_p50_ms], least: end_to_end_p50_ms}\n")
    done = ckptsim(f"sweep {file} --out {tmp_path}/out --jobs 1")
    answer = json.loads((tmp_path / "out" / "answer.json").read_text())

    assert done.exit_code == 0
    assert answer["history"] == EXPECTED
    others = ("known defect", "axes: ", " left at defaults that often matter")
    assert [f"sweep: {sentence}" for sentence in SENTENCES] == [
        line.removeprefix("warning: ") for line in answer["findings"] if not any(other in line for other in others)
    ]


def test_a_folder_of_results_needs_no_history_elsewhere(ckptsim, imported, tmp_path):
    """It is reported after the scenario and its history have gone."""
    text = imported.read_text()
    write_scenario_and_history(text, imported)
    ckptsim(f"run {imported} --out {tmp_path}/out --jobs 1")
    (tmp_path / "tiny.history.json").unlink()
    imported.unlink()
    done = ckptsim(f"report {tmp_path}/out -o {tmp_path}/page.html")

    assert done.exit_code == 0, done.stderr
    assert "the simulation deviates from the history of 20 checkpoints" in (tmp_path / "page.html").read_text()
