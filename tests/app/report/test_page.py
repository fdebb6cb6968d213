"""A page is one file: everything is in it, names of others are text, figures have words beside them."""

from html.parser import HTMLParser
from importlib.resources import files

import pandas as pd
import pytest

from sim.app.report.figures import lines
from sim.app.verbs.pictures import write_report
from sim.results.formats import TextTable
from sim.results.page import Block, Page, html
from tests.places import DATA

HOSTILE = '$x$ <script>alert(1)</script><img src=x onerror=alert(2)> & "quoted" \x1b[31m'
EMPTY = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}


class Reader(HTMLParser):
    """Tags with their attributes; complains about what is not closed."""

    def __init__(self):
        super().__init__()
        self.tags, self.open = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert tag == self.open.pop()


def read(text):
    reader = Reader()
    reader.feed(text)
    assert reader.open == []
    return reader.tags


@pytest.fixture(scope="module")
def text():
    curve = {HOSTILE: pd.Series([1.0, 2.0], index=[0.0, 1.0]), "other": pd.Series([2.0, 1.0], index=[0.0, 1.0])}
    blocks = [
        Block("A table", HOSTILE, TextTable("", ["", HOSTILE], [[HOSTILE, "1"]])),
        Block("A figure", chart=lines(curve, "seconds"), caption=HOSTILE),
        Block("A second figure", chart=lines(curve, "seconds"), caption="words", code=HOSTILE),
    ]
    return html(Page(HOSTILE, HOSTILE, HOSTILE, blocks, [HOSTILE], HOSTILE))


def test_names_of_others_stay_text(text):
    """Nothing of them is a tag or an attribute."""
    tags = read(text)

    assert [attributes.get("id") for tag, attributes in tags if tag == "script"] == ["charts", "echarts", None], (
        "those of the page"
    )
    assert set() == {tag for tag, _ in tags} & {"img", "iframe", "object"}
    assert [(tag, name) for tag, attributes in tags for name in attributes if name.startswith("on")] == []
    assert "&lt;script&gt;" in text
    assert "\x1b" not in text


def test_nothing_is_fetched(text):
    """No address but those of namespaces, no style sheet, no font."""
    places = {"src", "href", "xlink:href", "action", "data", "poster", "srcset"}
    addresses = [value for _, attributes in read(text) for name, value in attributes.items() if name in places]

    assert all(value.startswith("#") for value in addresses)
    assert "@import" not in text
    assert "url(http" not in text
    assert "fetch(" not in (files("sim.results") / "browser.js").read_text()


def test_ids_are_unique_and_references_lead_somewhere(text):
    """Two figures on a page have clip paths of their own."""
    tags = read(text)
    ids = [attributes["id"] for _, attributes in tags if "id" in attributes]
    links = [attributes.get(name, "") for _, attributes in tags for name in ("href", "xlink:href")]

    assert len(ids) == len(set(ids))
    assert {link[1:] for link in links if link.startswith("#")} <= set(ids)


def test_figures_have_words(text):
    """For those who do not see them."""
    tags = [attributes for tag, attributes in read(text) if tag == "div"]
    for role, name in (("img", "still"), ("group", "chart")):
        named = [attributes for attributes in tags if attributes.get("class") == name]

        assert [attributes["aria-label"].partition(".")[0] for attributes in named] == ["A figure", "A second figure"]
        assert {role} == {attributes["role"] for attributes in named}
    assert {"0"} == {attributes["tabindex"] for attributes in named}, "keys reach the charts"


def test_a_wide_table_is_read_downwards_on_a_phone():
    """Each cell carries the heading of its column, and a number stays with its unit."""
    header = ["setting", "runs", "p99", "in flight", "lost", "remarks"]
    text = html(
        Page(
            "",
            "",
            "",
            [Block("", table=TextTable("", header, [["a", "1", "5 ms", "0 B", "0 %", "the one that is advised"]]))],
        )
    )

    assert '<table class="wide">' in text
    assert '<td data-label="p99">5\u00a0ms</td>' in text
    assert '<td data-label="remarks">the one that is advised</td>' in text


def test_dark_screens_phones_and_paper_are_thought_of(text):
    for rule in ("(prefers-color-scheme: dark)", "(max-width: 34rem)", "@media print", 'name="viewport"'):
        assert rule in text


def test_figures_take_their_colours_from_the_page(text):
    """Ink that stays black cannot be read on a dark screen."""
    assert "var(--ink)" in text
    assert "stroke: var(--c0)" in text
    assert "#010203" not in text


def test_without_scripts_all_is_there(text):
    """Every chart has a picture that stands still, and only a chart that stands hides it."""
    assert text.count('class="still"') == text.count('class="chart"') == text.count("<svg ") == 2
    assert ".stands > .still { display: none; }" in text
    assert ".stands > .still { display: block; }" in text.partition("@media print")[2]


def test_the_same_page_is_the_same_bytes():
    curve = {"a": pd.Series([1.0, 2.0])}
    first, again = (html(Page("", "", "", [Block("A", chart=lines(curve, "seconds"))])) for _ in range(2))

    assert first == again


def test_a_long_page_has_contents():
    blocks = [Block(f"Part {k}") for k in range(4)]

    assert '<a href="#s3">Part 3</a>' in html(Page("", "", "", blocks))
    assert "<nav" not in html(Page("", "", "", blocks[:3]))
    assert "<script" not in html(Page("", "", "", blocks)), "nothing to draw"


@pytest.mark.parametrize(
    ("heading", "entry"),
    [
        (
            "Means over three seeds of a single window, with their confidence",
            "Means over three seeds of a single window, with their …",
        ),
        ("x" * 90, "x" * 42 + "..." + "x" * 15),
        ("Short", "Short"),
    ],
)
def test_an_entry_of_the_contents_ends_at_a_word(heading, entry):
    """It was cut in its middle: "Mean over 3 seeds of a single window, with...han the longest"."""
    assert f'<a href="#s0">{entry}</a>' in html(
        Page("", "", "", [Block(heading), *(Block(f"Part {k}") for k in range(4))])
    )


@pytest.mark.parametrize("name", ["planted/channel", "planted-afresh/recovery", "users-jobs/R6-grow-unaligned"])
def test_a_page_stays_below_a_megabyte(tmp_path, name):
    """With the charting library in it, and a hundred checkpoints."""
    file = tmp_path / "page.html"
    write_report(DATA / f"{name}.zip", file)

    assert 300_000 < file.stat().st_size < 1_000_000
