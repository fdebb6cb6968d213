"""The documentation as a site: it is built without a warning, nothing is fetched from elsewhere, all of it can be read."""

import os
import re

import pytest
from matplotlib.image import imread

from docs.drawing import lanes, storeys
from docs.pictures import FOLDER, PICTURES
from tests.browser import Sight, browser, needs_browser, served
from tests.places import ROOT
from tests.processes import run_python

SIMULATED = {"failures-lag", "first-durations", "regional"}
GOOD = Sight(wide="", cut=[], overlaps=[], faint=[], small="")
PAGES = (
    "index",
    "tutorial",
    "protocols",
    "player",
    "architecture",
    "truth",
    "your-own-job",
    "gallery/index",
    "gallery/khaos-iot",
    "reference/scenario",
    "reference/command",
    "reference/tables",
    "reference/python",
)
pytestmark = pytest.mark.xdist_group("site")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Links to pages and to headings are checked while it is built: a broken one is an error."""
    folder = tmp_path_factory.mktemp("site")
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = run_python("-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", folder, env=environment)
    assert (done.returncode, done.stderr.strip()) == (0, "")
    return folder


@pytest.fixture(scope="module")
def reader():
    with browser() as found:
        yield found


@pytest.mark.parametrize("name", sorted(set(PICTURES) - SIMULATED))
def test_a_drawing_is_the_one_that_is_kept(name):
    """`python -m docs.pictures` was called after the last change."""
    assert PICTURES[name]() == (FOLDER / f"{name}.svg").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SIMULATED))
def test_a_figure_is_the_one_that_is_kept(name):
    """What the tutorial shows is what the examples say today."""
    assert _numbers(PICTURES[name]()) == pytest.approx(_numbers((FOLDER / f"{name}.svg").read_text()), abs=0.01)


def test_every_picture_is_on_a_page():
    pages = "".join(path.read_text() for path in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")])

    assert sorted(PICTURES) == sorted(path.stem for path in FOLDER.glob("*.svg"))
    assert [name for name in PICTURES if f"pictures/{name}.svg" not in pages] == []


def test_a_label_that_does_not_fit_is_an_error():
    """Nobody looks at every picture after every change."""
    with pytest.raises(ValueError, match="'much too long' does not fit"):
        lanes("Short", [("row", [(0, 1, "a", "much too long"), (1, 20, "a", "")])])
    with pytest.raises(ValueError, match="does not fit its room"):
        storeys("Narrow", [("Attic", "", ["a much too long name", *"bcdefg"])])


@pytest.mark.slow
@needs_browser
def test_a_page_seen_by_day_is_dark_at_night(site, reader, tmp_path):
    """The theme of the documentation keeps the scheme of the first visit, and there is no switch to change it."""
    for dark in (False, True):
        reader.look(site / "tutorial.html", dark=dark, picture=tmp_path / f"{dark}.png")

    assert imread(tmp_path / "False.png")[600, 5, :3].mean() > 0.9
    assert imread(tmp_path / "True.png")[600, 5, :3].mean() < 0.2


SEARCHED = """new Promise(done => {
  const box = document.querySelector("input.md-search__input")
  document.querySelector("#__search").click()
  box.focus()
  box.value = "unaligned"
  box.dispatchEvent(new KeyboardEvent("keyup", { bubbles: true }))
  const begun = Date.now()
  const look = () => {
    const found = [...document.querySelectorAll(".md-search-result__item a")].map(link => link.href)
    if (found.length || Date.now() - begun > 20000) done(found)
    else setTimeout(look, 100)
  }
  look()
})"""


@pytest.mark.slow
@needs_browser
@pytest.mark.parametrize("page", ["index.html", "gallery/index.html"])
def test_the_search_finds_pages_that_are_opened_as_files(site, reader, page):
    """Without a web server browsers start no worker and fetch no index."""
    found = reader.value((site / page).as_uri(), SEARCHED)

    assert found
    assert all(link.startswith(site.as_uri()) for link in found)


@pytest.mark.slow
def test_nothing_comes_from_elsewhere(site):
    """No style sheet, font, script or image of another host; links that a reader follows are fine."""
    tags = [
        tag
        for path in site.rglob("*.html")
        for tag in re.findall(r"<(?:link|script|img|iframe)\b[^>]*>", path.read_text())
    ]
    foreign = [tag for tag in tags if re.search(r"(?:src|href)=[\"']?(?:https?:)?//", tag)]

    assert len(tags) > 100
    assert foreign == []
    assert [path for path in site.rglob("*.css") if re.search(r"url\(['\"]?https?:|@import", path.read_text())] == []


@pytest.mark.slow
@needs_browser
@pytest.mark.parametrize(("width", "dark", "printed"), [(1300, False, False), (390, True, False), (700, False, True)])
def test_pages_can_be_read(site, reader, width, dark, printed):
    """On a desk, on a phone at night and on paper."""
    with served(site) as address:
        seen = {page: reader.look(f"{address}/{page}.html", width=width, dark=dark, printed=printed) for page in PAGES}

    assert dict.fromkeys(PAGES, GOOD) == seen


@pytest.mark.slow
@needs_browser
@pytest.mark.parametrize("page", ["index", "tutorial", "watch"])
def test_code_is_not_cut_at_1280(site, reader, page):
    cut = "[...document.querySelectorAll('pre > code')].filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.textContent)"

    assert reader.use(site / f"{page}.html", [f"{cut}.join('---')"], width=1280) == [""]


@pytest.mark.slow
@needs_browser
@pytest.mark.parametrize("dark", [False, True])
def test_pictures_can_be_read(reader, dark):
    """No two texts on each other, none cut off."""
    names = sorted(PICTURES)
    seen = {name: reader.look(FOLDER / f"{name}.svg", width=700, dark=dark) for name in names}

    assert dict.fromkeys(names, GOOD) == seen


def _numbers(text):
    return [float(number) for number in re.findall(r"-?\d+\.\d+", text)]
