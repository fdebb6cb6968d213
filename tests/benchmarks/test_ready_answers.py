"""The answer of a ready sweep comes into its page whole, and nothing else of the page changes."""

import pytest

from benchmarks import answers
from tests.benchmarks.small_job import SCENARIO

SWEEP = """\
# How often?
version: 1
scenario: jobs/job.yaml
vary: {checkpoint.interval: [1 s, 2 s]}
replications: 2
answer: {show: [completed]}
"""
PAGE = "# How often\n\nOften.\n\n<!-- answer -->\nold\n<!-- /answer -->\n\nThe end.\n"


@pytest.fixture
def sweeps(tmp_path, monkeypatch):
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "job.yaml").write_text(SCENARIO)
    (tmp_path / "often.yaml").write_text(SWEEP)
    (tmp_path / "often.md").write_text(PAGE)
    monkeypatch.setattr(answers, "SWEEPS", tmp_path)
    monkeypatch.setattr(answers, "ROWS", tmp_path / "rows")
    return tmp_path


def test_a_sweep_without_a_question_has_no_answer(sweeps, capfd):
    (sweeps / "often.yaml").write_text(SWEEP.partition("answer:")[0])

    assert answers.main(["often", "--jobs", "1"]) == 3
    assert "often.yaml: no answer" in capfd.readouterr().err
