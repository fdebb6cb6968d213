"""Ready sweeps: each can be run as it stands, and its page has its answer."""

from pathlib import Path

import pytest

from benchmarks.answers import BEGIN, END, SWEEPS
from sim.scenario.plain import first_comment
from sim.sweep.asked.definition import define
from sim.sweep.plan import cells, distinct, with_baselines

FILES = sorted(SWEEPS.glob("*.yaml"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_it_can_be_planned(file: Path):
    """All its scenarios are valid and their traces are there; it says what it asks, warns of nothing, and has a question."""
    asked = define(file)

    assert asked.text.rstrip().partition("\n")[0].endswith("?")
    assert () == asked.warnings
    assert asked.question is not None
    assert len(distinct(with_baselines(cells(asked.scenarios)))) > 1


@pytest.mark.parametrize("file", [file for file in FILES if file.with_suffix(".md").exists()], ids=lambda file: file.stem)
def test_its_page_answers(file: Path):
    """The answer stands in it, written by `make answers`, of the question as the file puts it; the list names it."""
    page = file.with_suffix(".md").read_text()
    answer = page.partition(BEGIN)[2].partition(END)[0]

    assert f"`ckptsim sweep scenarios/sweeps/{file.name}`" in answer
    assert first_comment(file.read_text()) in answer
    assert f"`{file.stem}.yaml`" in (SWEEPS / "README.md").read_text()
