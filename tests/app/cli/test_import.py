"""`ckptsim import` and `ckptsim schema`."""

import json

import pytest

from sim.jobs.evidence.backtest import TooLargeError
from sim.model.schema.study import load, loads
from sim.model.schema.text import SCHEMA_LINE
from tests.places import ROOT, USERS


def without_history(file):
    """The text, without the line that names what stands beside it."""
    return "".join(line for line in file.read_text().splitlines(keepends=True) if not line.startswith("history: "))


def test_the_backtest_stands_in_the_terminal_in_the_head_and_in_a_section(ckptsim, tmp_path):
    """A job of more threads than cores, whose service is not what the model takes, is named as off in all three."""
    done = ckptsim(f"import {USERS}/R7-cores-aligned.zip -o {tmp_path}/job.yaml")
    head = [
        line.removeprefix("# ") for line in (tmp_path / "job.yaml").read_text().splitlines() if line.startswith("# ")
    ]
    lines = done.stderr.splitlines()
    printed = lines[next(i for i, line in enumerate(lines) if line.startswith("Backtest: ")) :]

    assert printed == head[-len(printed) :]
    assert "are: end-to-end (p50 +" in " ".join(printed)
    assert all(len(line) <= 80 for line in printed)
    assert "p50" in load(tmp_path / "job.yaml").backtest.of("end-to-end").off


def test_a_scenario_without_its_history_is_refused(ckptsim, tmp_path):
    """In one message, which says what to do."""
    ckptsim(f"import {USERS}/J2-count-unaligned.zip -o {tmp_path}/job.yaml --no-backtest")
    (tmp_path / "job.history.json").unlink()
    done = ckptsim(f"run {tmp_path}/job.yaml")

    assert (done.exit_code, len(done.stderr.splitlines())) == (3, 1)
    assert (
        "job.history.json: no such file; 'ckptsim import' writes it next to the scenario: keep both files together"
        in done.stderr
    )


def test_without_a_backtest(ckptsim, tmp_path):
    """Nothing is simulated, and nothing is said of it."""
    done = ckptsim(f"import {USERS}/J2-count-unaligned.zip -o {tmp_path}/job.yaml --no-backtest")

    assert "acktest" not in done.stderr + (tmp_path / "job.yaml").read_text()


@pytest.mark.parametrize("to_file", [True, False])
def test_an_interrupt_keeps_the_import(ckptsim, tmp_path, monkeypatch, to_file):
    """What was read is worth more than its backtest."""

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    plain = ckptsim(f"import {USERS}/J2-count-unaligned.zip --no-backtest").stdout
    monkeypatch.setattr("sim.jobs.evidence.backtest.runs_within", interrupted)
    done = ckptsim("import", USERS / "J2-count-unaligned.zip", *(["-o", tmp_path / "job.yaml"] if to_file else []))

    assert done.exit_code == 130
    assert loads(plain, "job") == (load(tmp_path / "job.yaml") if to_file else loads(done.stdout, "job"))
    assert "is complete but for its backtest" in done.stderr


@pytest.mark.parametrize(
    ("error", "message"),
    [(TooLargeError("the job has 8 channels"), "the job has 8 channels"), (KeyError("x"), "broke")],
)
def test_a_job_that_cannot_be_simulated_is_imported(ckptsim, monkeypatch, error, message):
    def broken(*_, **__):
        raise error

    monkeypatch.setattr("sim.jobs.evidence.backtest.runs_within", broken)
    done = ckptsim(f"import {USERS}/J2-count-unaligned.zip")

    assert done.exit_code == 0
    assert loads(done.stdout).scenarios
    assert "no backtest: " in done.stderr
    assert message in done.stderr


def test_what_is_no_recording(ckptsim, tmp_path):
    (tmp_path / "x.json").write_text("{}")

    for path in (tmp_path / "x.json", tmp_path / "none.json"):
        done = ckptsim(f"import {path}")
        assert done.exit_code == 3
        assert len(done.stderr.splitlines()) == 1
        assert path.name in done.stderr


def test_as_json(ckptsim):
    """The same scenario, and the questions of stderr."""
    job = f"import {USERS}/J2-count-unaligned.zip --no-backtest"
    plain, done = ckptsim(job), ckptsim(f"{job} --json")
    found = json.loads(done.stdout)

    assert plain.stdout == found["scenario"]
    assert found["unknown"]
    assert all(f"  {question}\n" in plain.stderr for question in found["unknown"])
    assert all(f"not modelled: {lost}\n" in plain.stderr for lost in found["not_modelled"])


def test_editors_are_sent_to_a_schema_that_is_there(ckptsim, tmp_path):
    """Beside the file; a pipe has no place."""
    recording = f"import {USERS}/J2-count-aligned.zip --no-backtest"
    (tmp_path / "with").mkdir()
    (tmp_path / "with" / "ckptsim.schema.json").write_text("{}")
    piped = ckptsim(recording).stdout
    ckptsim(f"{recording} -o {tmp_path}/alone.yaml")
    ckptsim(f"{recording} -o {tmp_path}/with/job.yaml")

    assert f"{SCHEMA_LINE}\n{without_history(tmp_path / 'alone.yaml')}" == without_history(
        tmp_path / "with" / "job.yaml"
    )
    assert "$schema" not in piped


def test_what_schema_prints_is_what_is_committed(ckptsim):
    """docs/adding.md writes the file from it."""
    committed = ROOT / "scenarios" / "ckptsim.schema.json"

    assert committed.read_text() == ckptsim("schema").stdout
