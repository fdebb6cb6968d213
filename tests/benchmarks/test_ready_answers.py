"""The answer of a ready sweep comes into its page whole, and nothing else of the page changes."""

import re

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


def test_the_block_is_exchanged_and_nothing_else(sweeps, capsys):
    """Tables and question as printed, then command, cells (baselines included) and CPU time."""
    assert answers.main(["--jobs", "1"]) == 0

    page = (sweeps / "often.md").read_text()
    printed = capsys.readouterr().out
    assert "How often?\n\nMean over 2 seeds of a single window" in printed
    assert re.fullmatch(
        r"# How often\n\nOften\.\n\n<!-- answer -->\n```\n(.*)\n```\n"
        r"`ckptsim sweep scenarios/sweeps/often\.yaml`: 6 cells, \d+\.\d minutes of CPU\.\n<!-- /answer -->\n\nThe end\.\n",
        page,
        re.DOTALL,
    ).group(1) == printed.strip("\n")
    assert "cells have a row" not in page


@pytest.mark.parametrize(
    ("name", "page", "message"),
    [
        ("seldom", PAGE, "there is no seldom.yaml; there are: often"),
        ("often", None, "often.md is missing"),
        ("often", "no marks", "write <!-- answer --> and <!-- /answer --> once"),
        ("often", PAGE + PAGE, "write <!-- answer --> and <!-- /answer --> once"),
    ],
)
def test_what_cannot_be_written_is_told_before_anything_runs(sweeps, capsys, name, page, message):
    (sweeps / "often.md").unlink()
    if page is not None:
        (sweeps / "often.md").write_text(page)

    assert answers.main([name]) == 3
    assert message in capsys.readouterr().err
    assert not (sweeps / "rows").exists()


def test_a_sweep_that_cannot_run_leaves_the_page_alone(sweeps, capfd):
    """The exit code is that of ckptsim."""
    (sweeps / "often.yaml").write_text(SWEEP.replace("completed", "completd"))

    assert answers.main(["often", "--jobs", "1"]) == 3
    assert "did you mean 'completed'" in capfd.readouterr().err
    assert (sweeps / "often.md").read_text() == PAGE


def test_a_sweep_without_a_question_has_no_answer(sweeps, capfd):
    (sweeps / "often.yaml").write_text(SWEEP.partition("answer:")[0])

    assert answers.main(["often", "--jobs", "1"]) == 3
    assert "often.yaml: no answer" in capfd.readouterr().err
