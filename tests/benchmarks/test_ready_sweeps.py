"""Ready sweeps: each can be run as it stands, and its answer comes into its page whole."""

import pytest

from benchmarks import answers
from benchmarks.answers import BEGIN, END, SWEEPS, answer
from sim.model.schema.text import first_comment
from sim.studies.plan import cells, distinct, with_baselines
from sim.studies.sweeps.sweep_file import define
from tests.benchmarks.small_job import SCENARIO

# Ready sweeps: each can be run as it stands, and its page has its answer.


FILES = sorted(SWEEPS.glob("*.yaml"))
CHEAPEST = "khaos-iot-at-rest"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_it_can_be_planned(file):
    """All its scenarios are valid and their traces are there; it says what it asks, warns of nothing, and has a question."""
    sweep = define(file)

    assert sweep.text.rstrip().partition("\n")[0].endswith("?")
    assert sweep.warnings == ()
    assert sweep.question is not None
    assert len(distinct(with_baselines(cells(sweep.scenarios)))) > 1


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_its_page_answers(file):
    """The answer stands in it, written by `make answers`, of the question as the file puts it; the list names it."""
    page = file.with_suffix(".md").read_text()
    answer = page.partition(BEGIN)[2].partition(END)[0]

    assert f"`ckptsim sweep scenarios/sweeps/{file.name}`" in answer
    assert first_comment(file.read_text()) in answer
    assert f"`{file.stem}.yaml`" in (SWEEPS / "README.md").read_text()


@pytest.mark.slow
def test_the_cheapest_answers_as_its_page_says(tmp_path):
    """Run whole, it prints to the letter what the page has: pages are not out of date."""
    page = (SWEEPS / f"{CHEAPEST}.md").read_text()

    assert f"{BEGIN}\n```\n{answer(SWEEPS / f'{CHEAPEST}.yaml', tmp_path, 2)}\n```\n" in page


# The answer of a ready sweep comes into its page whole, and nothing else of the page changes.


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
