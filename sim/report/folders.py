"""A folder of results -> its page, by what lies in it."""

from __future__ import annotations

from pathlib import Path

from sim.explain.runs import FolderError
from sim.report.answer_page import ADVICE, ANSWER, DIFF, answer_page
from sim.report.comparison_page import comparison_page
from sim.report.page import Page
from sim.report.results import read_results


def page_of(folder: Path) -> Page:
    """Raises FolderError, ScenarioError."""
    if not folder.is_dir():
        raise FolderError(f"{folder}: is no folder: give one that 'ckptsim run', 'sweep', 'advise' or 'diff' wrote")
    for name in (ANSWER, ADVICE, DIFF):
        if (folder / name).is_file():
            return answer_page(folder, name)
    return comparison_page(read_results(folder))
