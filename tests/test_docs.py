"""Pages in docs/ and CONTRIBUTING: what they name is there."""

import re
from pathlib import Path

import pytest

from tests.places import ROOT

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_what_a_page_names_is_there(path: Path):
    """Links, files and modules of the repository."""
    text = path.read_text()
    links = [path.parent / link for link in re.findall(r"\]\(([^)#:]+)\)", text)]
    files = [ROOT / name for name in re.findall(r"`([\w.-][\w./-]*/[\w./-]*)`", text)]
    commands = [
        ROOT / f"{name.replace('.', '/')}" for name in re.findall(r"python -m ((?:tests|benchmarks|docs)[\w.]*)", text)
    ]

    commands = [name for name in commands if name.name != "NAME"]  # whichever

    missing = [name for name in [*links, *files] if not name.exists()]
    missing += [
        name for name in commands if not name.with_suffix(".py").exists() and not (name / "__main__.py").exists()
    ]

    assert missing == []


@pytest.mark.parametrize("picture", sorted((ROOT / "docs" / "pictures").glob("*.png")), ids=lambda path: path.name)
def test_screenshots_are_small(picture):
    """A clone carries all of them for ever; each is shown on a page."""
    assert picture.stat().st_size < 80_000
    assert any(f"pictures/{picture.name}" in page.read_text() for page in PAGES)


def test_numbers_of_ready_scenarios_are_those_of_their_excerpts():
    """What the table of docs/scenarios.md says of a scenario is printed by it: tests/app/cli/test_excerpts.py holds the excerpt."""
    number = re.compile(r"\b\d+(?:\.\d+)?(?: (?:ms|s|min)\b|[kM]\b)")
    rows = re.findall(
        r"^\| `scenarios/([\w-]+)\.yaml` \|.*\((.*)\) \|$", (ROOT / "docs/scenarios.md").read_text(), re.MULTILINE
    )
    numbers = {name: number.findall(text) for name, text in rows if number.search(text)}
    excerpts = {name: (ROOT / "tests/data/excerpts" / f"{name}.txt").read_text() for name in numbers}

    assert len(numbers) == 5
    assert [(name, text) for name, found in numbers.items() for text in found if text not in excerpts[name]] == []
