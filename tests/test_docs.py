"""Pages in docs/ and CONTRIBUTING: what they name is there, what is drawn is drawn from today's code."""

import re
from pathlib import Path

import pytest

from docs.house import BEGIN, END, PAGE, ROOT, circles, page

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_the_house_is_drawn_as_it_is():
    """`python -m docs.house` was called after the last move."""
    assert page(PAGE.read_text()) == PAGE.read_text()


def test_circles_are_found():
    """Strongly connected modules form one group; a module that only leads there does not belong to it."""
    edges = {"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"e"}, "e": {"f"}, "f": {"d", "a"}}

    assert [["d", "e", "f"], ["b", "c"]] == circles(edges)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_what_a_page_names_is_there(path: Path):
    """Links, files and modules of the repository."""
    text = re.sub(f"{BEGIN}.*?{END}", "", path.read_text(), flags=re.DOTALL)  # what is drawn names folders of sim/
    links = [path.parent / link for link in re.findall(r"\]\(([^)#:]+)\)", text)]
    files = [ROOT / name for name in re.findall(r"`([\w.-][\w./-]*/[\w./-]*)`", text)]
    commands = [ROOT / f"{name.replace('.', '/')}" for name in re.findall(r"python -m ((?:tests|benchmarks|docs)[\w.]*)", text)]

    commands = [name for name in commands if name.name != "NAME"]  # whichever

    missing = [name for name in [*links, *files] if not name.exists()]
    missing += [name for name in commands if not name.with_suffix(".py").exists() and not (name / "__main__.py").exists()]

    assert [] == missing


@pytest.mark.parametrize("picture", sorted((ROOT / "docs" / "pictures").glob("*.png")), ids=lambda path: path.name)
def test_screenshots_are_small(picture):
    """A clone carries all of them for ever; each is shown on a page."""
    assert picture.stat().st_size < 80_000
    assert any(f"pictures/{picture.name}" in page.read_text() for page in PAGES)
