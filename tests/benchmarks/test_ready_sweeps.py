"""Ready sweeps: each can be run as it stands, and its page has its answer."""

import pytest

from benchmarks.answers import BEGIN, END, SWEEPS, answer
from sim.model.schema.text import first_comment
from sim.studies.plan import cells, distinct, with_baselines
from sim.studies.sweeps.sweep_file import define

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
