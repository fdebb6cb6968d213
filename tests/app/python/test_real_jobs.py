"""Real jobs from Python: imported, advised on, held against predictions."""

import json

import pytest

import sim
from tests.places import ROOT

RECORDING = ROOT / "tests/data/users-jobs/J2-count-aligned.zip"


def test_a_recording_becomes_a_study(tmp_path):
    job = sim.import_job(RECORDING, backtest=False)

    assert sim.loads(job.text).labels == ["aligned"]
    lines = job.save(tmp_path / "job.yaml").read_text().splitlines()
    assert job.text.splitlines()[1:50] == lines[:49], "no schema lies beside it"
    assert any(line.startswith("history: job.history.json") for line in lines)
    assert job.checkpoints == json.loads((tmp_path / "job.history.json").read_text())["checkpoints"]
    assert "J2-count" in repr(job)


def test_an_import_says_what_it_needs():
    with pytest.raises(TypeError, match="an address, a folder, or files"):
        sim.import_job()
    with pytest.raises(ValueError, match="expected one address"):
        sim.import_job("http://a:8081", "http://b:8081")


def test_advice_has_a_setting_its_reasons_and_the_study_with_it(study, tmp_path):
    advice = sim.advise(
        study["aligned"],
        p99="5 s",
        folder=tmp_path,
        replications=1,
        budget="1 ms",
        jobs=1,
        changes={"run.duration": "4 s"},
    )

    interval, protocol = advice.setting
    assert ", and monitor it. " in advice.verdict, "1 ms has no room for a long run"
    assert advice.facts["confirmed"] is False
    assert interval in advice.verdict
    assert protocol in advice.verdict
    assert f"execution.checkpointing.interval: {interval}" in advice.configuration
    assert advice.facts["advised"]["interval"] == interval
    assert len(advice.study) == 1
    assert "<table" in advice._repr_html_()


def test_several_combinations_get_no_advice(study):
    with pytest.raises(ValueError, match="advise takes one combination"):
        sim.advise(study)


def test_a_validation_needs_recordings():
    with pytest.raises(ValueError, match="no recordings"):
        sim.validate()


def test_a_real_checkpoint_is_explained():
    """With the same parts as a simulated one."""
    source = ROOT / "tests/data/rest/pressed.zip"
    explained = sim.explain_job(source, checkpoint=77)

    assert explained.parts["duration_ms"].sum() == explained.records[0]["duration_ns"] / 1e6
    assert {"behind data", "acknowledgement"} <= set(explained.parts["part"])
    with pytest.raises(LookupError, match="no checkpoint 99"):
        sim.explain_job(source, checkpoint=99)
