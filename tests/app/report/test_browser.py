"""A reader points at charts, zooms, hides a strategy and moves through a checkpoint: by pointer and by keys."""

import pandas as pd
import pytest

from sim.app.report.figures import SampledQueues, lines, one_checkpoint, with_moments
from sim.results.page import Block, Page, html
from tests.app.report.test_one_checkpoint import GRAPH, subtask
from tests.browser import Key, Mouse, browser, needs_browser

HOSTILE = "<img src=x onerror=alert(1)>"
PLACE = "(() => { const b = document.querySelectorAll('%s')[%d].getBoundingClientRect(); return [b.x + b.width * %g, b.y + b.height * %g]; })()"
TOOLTIPS = """new Promise(done => setTimeout(() => done([...document.querySelectorAll(".chart > div:last-child")]
  .filter(tip => getComputedStyle(tip).visibility === "visible" && tip.textContent).map(tip => tip.innerText)), 300))"""
ZOOM = "reportCharts.states.map(state => (state.instance.getOption().dataZoom ?? []).slice(0, 1).map(zoom => [zoom.start, zoom.end]).flat())"
MOMENT = """[document.querySelector("output").textContent,
  ...[...document.querySelectorAll(".moment tbody tr")].map(row => [...row.cells].map(cell => cell.textContent).join("|"))]"""
DOTS = "reportCharts.states[2].instance.getOption().series.find(series => series.id === 'barriers').data.length"
FOCUS = "document.querySelectorAll('%s')[%d].focus()"
RIGHT, HOME, END = Key("ArrowRight", 39), Key("Home", 36), Key("End", 35)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Two charts through time, and one checkpoint with queues."""
    curves = {"aligned": pd.Series([40.0, 50.0, 60.0]), HOSTILE: pd.Series([5.0, 6.0, 7.0])}
    rows = [
        subtask("src", 0, 1.0, 0.0, 2.0, 3.0, 7.0),
        subtask("src", 1, 1.0, 0.0, 2.0, 3.0, 6.0),
        subtask("fast", 0, 25.0, 0.0, 0.0, 0.0, 25.0),
        subtask("fast", 1, 26.0, 0.0, 0.0, 0.0, 26.0),
        subtask("join", 0, 30.0, 20.0, 1.0, 10.0, 61.0),
    ]
    queues = SampledQueues([0.0, 30.0], [["a", "b", "c"], ["d", "e", "f"]])
    blocks = [
        Block("Lag", chart=lines(curves, "seconds", end_s=2.0, failures=[0.5]), caption="Lag."),
        Block("Queues", chart=lines(curves, "bytes", end_s=2.0), caption="Queues."),
        Block("One", chart=one_checkpoint(with_moments(pd.DataFrame(rows)), "it", GRAPH, queues), caption="One."),
    ]
    file = tmp_path_factory.mktemp("page") / "page.html"
    file.write_text(html(Page("It", "", "", blocks)))
    return file


@pytest.mark.slow
@needs_browser
def test_a_reader_points_zooms_and_hides(page):
    """Charts through time do it together."""
    plus, zero = Key("+", 187, "+"), Key("0", 48, "0")
    pressed = "[...document.querySelectorAll('.legend button')].map(button => button.ariaPressed)"
    with browser() as opened:
        tips, _, zoomed, unzoomed, read, hidden = opened.use(
            page,
            [
                Mouse(PLACE % (".chart", 0, 0.53, 0.3)),
                TOOLTIPS,
                FOCUS % (".chart", 0),
                plus,
                ZOOM,
                zero,
                ZOOM,
                RIGHT,
                "document.querySelector('.read').textContent",
                Mouse(PLACE % (".legend button", 0, 0.5, 0.5), is_click=True),
                pressed,
            ],
        )

    assert ["1 s\naligned: 50\n" + f"{HOSTILE}: 6"] * 2 == tips, "both, and what others named is text"
    assert zoomed == [[25, 75], [25, 75], []]
    assert unzoomed == [[0, 100], [0, 100], []]
    assert read == "aligned: 40, 0 simulated time [s]"
    assert hidden[:5] == ["false", "true", "true", "false", "true"]


@pytest.mark.slow
@needs_browser
def test_a_reader_moves_through_a_checkpoint(page):
    """Barriers travel, and each vertex says for whom it waits."""
    middle = "(() => { const slider = document.querySelector('input'); slider.value = 400; slider.dispatchEvent(new Event('input')); })()"
    with browser() as opened:
        _, first, none, _, between, dots, last = opened.use(
            page,
            [
                FOCUS % ("input", 0),
                HOME,
                RIGHT,
                MOMENT,
                DOTS,
                middle,
                MOMENT,
                DOTS,
                END,
                MOMENT,
            ],
        )

    assert first == [
        "0.0610 ms since the trigger",
        "src|no barrier yet (2 of 2)||a",
        "fast|no barrier yet (2 of 2)|src[0], src[1] (not sent yet)|b",
        "join|no barrier yet|src[0], src[1], fast[0], fast[1] (not sent yet)|c",
    ]
    assert none == 0
    assert between[0] == "24.4 ms since the trigger"
    assert between[2] == "fast|no barrier yet (2 of 2)|src[0], src[1] (on the way, behind data)|b"
    assert dots == 4, "one to each of fast, two to join"
    assert last == [
        "61.0 ms since the trigger",
        "src|acknowledged (2 of 2)||d",
        "fast|acknowledged (2 of 2)||e",
        "join|acknowledged||f",
    ]


@pytest.mark.slow
@needs_browser
def test_a_chart_is_not_printed_twice(page):
    """On paper the still picture is there, and the other one is not."""
    displays = "[...document.querySelectorAll('.still, .chart')].map(place => getComputedStyle(place).display)"
    with browser() as opened:
        assert opened.use(page, [displays])[0] == ["none", "block"] * 3
        assert opened.look(page, width=794, printed=True).wide == ""
