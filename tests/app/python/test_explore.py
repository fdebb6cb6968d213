"""Sliders over a study: their values, what is simulated when it is chosen, and what a browser draws of it."""

import json
import sys

import pandas as pd
import pytest

import sim
from tests.browser import Key, browser, needs_browser
from tests.places import DATA, SIM

INTERVALS = {"checkpoint.interval": ["500 ms", "1 s"], "checkpoint.barriers": ["aligned", "unaligned"]}


@pytest.fixture
def anywidget():
    return pytest.importorskip("anywidget", reason="pip install -e '.[notebook]'")


def test_what_is_missing_is_named(study, monkeypatch):
    monkeypatch.setitem(sys.modules, "anywidget", None)
    monkeypatch.delitem(sys.modules, "sim.app.verbs.explore", raising=False)

    with pytest.raises(ImportError, match=r"explore\(\) needs anywidget: pip install 'ckptsim\[notebook\]'"):
        study.explore()


@pytest.mark.extra
def test_what_is_known_is_not_simulated(study, results, anywidget, monkeypatch):
    """A table of results has a column per axis, and so have the rows of a sweep."""
    baseline = results.table[:1].assign(**{"strategy": "none", "checkpoint.barriers": None})  # as in a sweep
    explorer = study.explore(
        {"checkpoint.barriers": ["aligned", "unaligned"]}, rows=pd.concat([baseline, results.table])
    )
    monkeypatch.setattr(sim.Study, "run", None)
    explorer.chosen = "unaligned"

    median = results.table.set_index("strategy").loc["unaligned", "end_to_end_p50_ms"]
    assert explorer.points["unaligned"]["end_to_end_p50_ms"] == median
    assert {"aligned", "unaligned"} <= set(explorer.points)
    assert json.loads(json.dumps(explorer.points)) == explorer.points


@pytest.mark.extra
def test_default_axes_are_those_of_known_results(study, results, anywidget):
    """What has run has no column for the other ones."""
    assert set(study.explore(rows=results.table).axes) == {"checkpoint.barriers"}
    with pytest.raises(ValueError, match=r"rows: no column for the axis checkpoint\.interval"):
        study.explore(INTERVALS, rows=results.table)


@pytest.mark.extra
def test_what_is_chosen_is_simulated(study, anywidget):
    """Once, and to the numbers of an ordinary run of this combination."""
    explorer = study.explore(INTERVALS)
    explorer.chosen = chosen = "500 ms\nunaligned"

    assert explorer.axes == INTERVALS
    assert set(explorer.points) == {chosen}
    (row,) = study["unaligned"].with_({"checkpoint.interval": "500 ms"}).run(jobs=1).table.to_dict("records")
    assert explorer.points[chosen] == {name: row[name] for name in explorer.points[chosen]}


@pytest.mark.extra
@pytest.mark.parametrize(("key", "loads"), [("rate", [100, 200, 300]), ("rate-per-subtask", [100, 200, 300])])
def test_default_axes_are_around_the_study(anywidget, key, loads):
    """Intervals, barriers and loads from the file; a load is given by the key that the file has."""
    text = (DATA / "tiny.yaml").read_text().replace("rate:", f"{key}:")
    axes = sim.loads(text, "tiny").explore().axes

    assert axes["checkpoint.interval"] == ["250 ms", "500 ms", "1 s", "2 s"]
    assert axes["checkpoint.barriers"] == ["aligned", "unaligned"], "the lists of the study stay"
    assert axes[f"job.source.source.{key}"] == [f"{load}/s" for load in loads]
    assert len(axes["storage.bandwidth"]) == 3


SEEN = """(() => { const root = document.querySelector(".explore"); return {
  shown: [...root.querySelectorAll("output")].map(node => node.textContent), answer: [...root.querySelectorAll("dd")].map(node => node.textContent),
  status: root.querySelector("p").textContent, bars: [...root.querySelectorAll("li")].map(node => node.textContent),
  chosen: model.values.chosen }; })()"""
PAGE = """<!doctype html><meta name="color-scheme" content="light dark"><meta name="viewport" content="width=device-width"><body>
<script type="module">
const model = window.model = { values: %s, get(name) { return this.values[name]; }, set(name, value) { this.values[name] = value; },
  on(event, act) { this.act = act; }, off() {}, save_changes() { setTimeout(() => { this.values.points = { ...this.values.points,
    [this.values.chosen]: { end_to_end_p50_ms: 42, persisted_bytes: 7e6 } }; this.act(); }, 100); } };
const { render } = (await import(URL.createObjectURL(new Blob([%s], { type: "text/javascript" })))).default;
render({ model, el: document.body });
</script>"""
WAIT = "new Promise(done => setTimeout(done, 600))"
FOCUS = "document.querySelectorAll('.explore input')[%d].focus()"


@pytest.mark.slow
@needs_browser
def test_a_reader_moves_sliders(tmp_path):
    """What is known is shown at once; what is not is asked of the kernel, here one that answers after 100 ms."""
    axes = {"interval": ["1 s", "2 s"], "barriers": ["aligned", "unaligned"]}
    points = {"1 s\naligned": {"end_to_end_p50_ms": 3451.7, "throughput_per_second": 1200, "throughput_change": -0.05}}
    values = {"axes": axes, "points": points, "chosen": ""}
    code = (SIM / "results" / "explore.js").read_text()
    page = tmp_path / "page.html"
    page.write_text(PAGE % (json.dumps(values), json.dumps(code).replace("</", "<\\/")))

    right, left = Key("ArrowRight", 39), Key("ArrowLeft", 37)
    with browser() as opened:
        _, first, _, asked, _, known, _, back = opened.use(
            page, [WAIT, SEEN, FOCUS % 1, right, SEEN, WAIT, SEEN, FOCUS % 1, left, SEEN]
        )
        for width, dark in ((1280, False), (390, True)):
            seen = opened.look(page, width=width, dark=dark)
            assert (seen.wide, seen.faint, seen.console, seen.requests) == ("", [], [], [])

    assert first["answer"] == ["3.45 s", "–", "–", "1,200", "-5.0 %"]
    assert first["chosen"] == "", "it is known, so nothing was asked"
    assert (asked["status"], asked["shown"]) == ("Simulating ...", ["1 s", "unaligned"])
    assert (known["answer"][0], known["answer"][2], known["chosen"]) == ("42 ms", "7.0 MB", "1 s\nunaligned")
    assert known["bars"] == ["aligned3.45 s", "unaligned42 ms"]
    assert back["answer"] == first["answer"]
