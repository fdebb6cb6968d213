"""A reader plays a checkpoint, moves through it by pointer and keys, and sees it on any screen."""

import pytest

from sim.app.examples import contents
from sim.explain.close_up import rerun_with_observers
from sim.explain.player import choose_checkpoints, describe
from sim.model.schema.study import loads
from sim.results.page import Block, Page, html
from tests.browser import Key, Mouse, Sight, browser, needs_browser

GOOD = Sight(wide="", cut=[], overlaps=[], faint=[], small="")
HOSTILE = "</script><img src=x onerror=alert(1)>"
STATE = """(() => {
  const find = name => document.querySelector(".player-" + name), runs = [...document.querySelectorAll(".player-run")];
  const visible = (run, which) => [...run.querySelectorAll(which)].filter(node => node.getAttribute("visibility") === "visible").length;
  return { place: +find("place").value, time: find("time").textContent, play: find("play").textContent, event: find("event").textContent,
    facts: runs.map(run => run.querySelector(".player-state").textContent), barriers: runs.map(run => visible(run, ".player-barrier")),
    blocked: runs.map(run => visible(run, 'rect[fill^="url"]')),
    phases: runs.map(run => [...run.querySelectorAll("g > title")].map(title => title.parentNode.lastChild.textContent)) };
})()"""
SCRUB = "(() => { const s = document.querySelector('.player-place'); s.value = %d; s.dispatchEvent(new Event('input')); })()"
PLACE = "(() => { const b = document.querySelector('%s').getBoundingClientRect(); return [b.x + b.width * %g, b.y + b.height * %g]; })()"
WAIT = "new Promise(done => setTimeout(done, 700))"
FOCUS = "document.querySelector('.player-place').focus()"
SPACE, DOT, COMMA, END = Key(" ", 32, " "), Key(".", 190, "."), Key(",", 188, ","), Key("End", 35)
pytestmark = [pytest.mark.slow, needs_browser]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Two subtasks of each vertex, with a foreign name: three runs side by side."""
    text = contents("first")["first.yaml"].replace("parallelism: 4", "parallelism: 2").replace("60 s", "12 s")
    runs = {one.checkpoint.barriers.kind: rerun_with_observers(one) for one in loads(text, "first").scenarios}
    runs[HOSTILE] = runs.pop("aligned-timeout")
    file = tmp_path_factory.mktemp("player") / "page.html"
    file.write_text(html(Page("It", "", "", [Block("", player=describe(choose_checkpoints(runs, 2)))])))
    return file


@pytest.fixture(scope="module")
def reader():
    with browser() as found:
        yield found


def test_it_is_played_and_paused(page, reader):
    """The first play begins at the trigger, whatever was shown before."""
    click = Mouse(PLACE % (".player-play", 0.5, 0.5), is_click=True)
    before, playing, _, paused, _, later = reader.use(page, [STATE, click, STATE, WAIT, click, STATE, WAIT, STATE])

    assert (before["play"], playing["play"], paused["play"]) == ("▶ Play", "❚❚ Pause", "▶ Play")
    assert playing["place"] < 50 < before["place"]
    assert playing["place"] < paused["place"] < 200
    assert later == paused


def test_it_is_scrubbed(page, reader):
    """By the slider, and by the strip of phases: from the trigger, where nothing has happened, to the end."""
    strip = Mouse(PLACE % (".player-phases > rect", 0.5, 0.5), is_click=True)
    _, begin, _, end, middle = reader.use(page, [SCRUB % 0, STATE, SCRUB % 1000, STATE, strip, STATE], width=1280)

    assert [facts.split(" acknowledged")[0] for facts in begin["facts"]] == ["0 of 6"] * 3
    assert [facts.split(" acknowledged")[0] for facts in end["facts"]] == ["6 of 6"] * 3
    assert begin["phases"] == [["waiting"] * 6] * 3
    assert end["phases"] == [["acknowledged"] * 6] * 3
    assert (begin["barriers"], end["barriers"], begin["time"]) == ([0, 0, 0], [0, 0, 0], "0.0 ms")
    assert [facts.split(" in flight")[1] for facts in begin["facts"]] == ["0 B stored"] * 3
    assert end["facts"][0].endswith("0 B stored")
    assert not any(facts.endswith("0 B stored") for facts in end["facts"][1:])
    assert 480 < middle["place"] < 520


def test_protocols_look_different_at_the_same_moment(page, reader):
    """While the aligned run has barriers in channels and blocks some, the unaligned one is complete."""
    steps = [step for place in range(0, 1000, 20) for step in (SCRUB % place, STATE)]
    seen = reader.use(page, steps, width=1280)[1::2]
    aligned, unaligned, timeout = (max(state["blocked"][i] for state in seen) for i in range(3))

    assert (aligned > 0, unaligned, timeout) == (True, 0, 0)
    moment = next(state for state in seen if state["blocked"][0])
    assert moment["barriers"][0] > 0 == moment["barriers"][1]
    assert "aligning" in moment["phases"][0]
    assert set(moment["phases"][1]) == {"acknowledged"}


def test_keys_step_and_play(page, reader):
    """Comma and dot go from event to event, space plays and pauses, and the slider has its own keys."""
    _, _, before, after, back, playing, paused, end = reader.use(
        page, [SCRUB % 0, FOCUS, STATE, DOT, DOT, STATE, COMMA, STATE, SPACE, STATE, SPACE, STATE, END, STATE]
    )

    assert before["event"] != after["event"]
    assert before["place"] <= back["place"] <= after["place"]
    assert (playing["play"], paused["play"], end["place"]) == ("❚❚ Pause", "▶ Play", 1000)


def test_all_events_are_listed(page, reader):
    """A click on one goes there."""
    button = Mouse(PLACE % (".player-all", 0.5, 0.5), is_click=True)
    last = "(() => { const all = document.querySelectorAll('.player-list button'); all[all.length - 1].click(); return all.length; })()"
    count, current, state = reader.use(
        page, [button, last, "document.querySelector('.player-list [aria-current]').textContent", STATE]
    )

    assert count > 100
    assert "complete" in current
    assert state["place"] == 1000


@pytest.mark.parametrize(
    ("width", "dark", "printed"),
    [(1280, False, False), (1280, True, False), (390, False, False), (390, True, False), (794, False, True)],
)
def test_it_can_be_read(page, reader, width, dark, printed):
    """On a desk, on a phone, at night and on paper; what others named is text, and no script."""
    assert reader.look(page, width=width, dark=dark, printed=printed) == GOOD
