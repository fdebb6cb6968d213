"""A reader points at charts, zooms, and hides a strategy: by pointer and by keys."""

import pandas as pd
import pytest

from sim.app.report.figures import lines
from sim.results.page import Block, Page, html
from tests.browser import Key, Mouse, browser, needs_browser

HOSTILE = "<img src=x onerror=alert(1)>"
PLACE = "(() => { const b = document.querySelectorAll('%s')[%d].getBoundingClientRect(); return [b.x + b.width * %g, b.y + b.height * %g]; })()"
TOOLTIPS = """new Promise(done => setTimeout(() => done([...document.querySelectorAll(".chart > div:last-child")]
  .filter(tip => getComputedStyle(tip).visibility === "visible" && tip.textContent).map(tip => tip.innerText)), 300))"""
ZOOM = "reportCharts.states.map(state => (state.instance.getOption().dataZoom ?? []).slice(0, 1).map(zoom => [zoom.start, zoom.end]).flat())"
FOCUS = "document.querySelectorAll('%s')[%d].focus()"
RIGHT = Key("ArrowRight", 39)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Two charts through time."""
    curves = {"aligned": pd.Series([40.0, 50.0, 60.0]), HOSTILE: pd.Series([5.0, 6.0, 7.0])}
    blocks = [
        Block("Lag", chart=lines(curves, "seconds", end_s=2.0, failures=[0.5]), caption="Lag."),
        Block("Queues", chart=lines(curves, "bytes", end_s=2.0), caption="Queues."),
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
    assert zoomed == [[25, 75], [25, 75]]
    assert unzoomed == [[0, 100], [0, 100]]
    assert read == "aligned: 40, 0 simulated time [s]"
    assert hidden[:5] == ["false", "true", "true", "false", "true"]


@pytest.mark.slow
@needs_browser
def test_a_chart_is_not_printed_twice(page):
    """On paper the still picture is there, and the other one is not."""
    displays = "[...document.querySelectorAll('.still, .chart')].map(place => getComputedStyle(place).display)"
    with browser() as opened:
        assert opened.use(page, [displays])[0] == ["none", "block"] * 2
        assert opened.look(page, width=794, printed=True).wide == ""
