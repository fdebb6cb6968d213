"""A page says what the terminal says: every sentence that a verb prints about what it keeps stands in the HTML of its folder."""

import re
import shlex
from html import unescape
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sim.app.cli import app
from sim.results.summary import in_words
from tests.app.verbs.conftest import TINY

FAILING = TINY.replace("3 s}", "6 s, warmup: auto}").replace(
    "run:", "faults: [{kill: sink, at: 1.5 s}]\nexpect: {checkpoints.completed: '> 99'}\nrun:"
)
IMPORTED = """\
residuals: {checkpoints: 2, unit: 1 ms, of: {sink: {async: [[0, 40]]}}}
backtest:
  runs: 3
  simulated: 90 s
  longest: [2 s, 1.2 s, 1 s, 800 ms, 700 ms, 600 ms, 500 ms, 450 ms, 420 ms, 410 ms]
  tail: 3
  end-to-end:
    observed: {p50: 400 ms, p90: 1 s, max: 2 s, count: 20}
    predicted: {p50: 390 ms, p90: 410 ms, max: 420 ms, count: 60}
    off: [p90]
"""
UNLIKE = FAILING.replace("service: 1 ms", "service: 20 ms").replace("200/s", "20/s")
TODAY = TINY.replace("[aligned, unaligned]", "aligned").replace(
    "checkpoint:", "# UNKNOWN: How fast?\nstorage: {bandwidth: 1 MB/s}\ncheckpoint:"
)
SWEEP = """\
# Which interval is best?
version: 1
scenario: job.yaml
vary: {checkpoint.interval: [500 ms, 1 s]}
answer: {settings: [checkpoint.interval, checkpoint.barriers], show: [end_to_end_p50_ms], least: end_to_end_p50_ms}
"""
CASES = {
    "run": ("run job.yaml", UNLIKE + IMPORTED),
    "sweep": ("sweep sweep.yaml --set run.replications=2", UNLIKE.replace("> 99", "> 0") + IMPORTED),
    "advise": ("advise job.yaml --p99 '10 s' --recovery '1 min' --within '1 h' --why", TODAY + IMPORTED),
}
OF_THE_PLACE = re.compile(r"kept: |kept$|\d+ of \d+ cells have a row in |trying settings: ")
"""Lines about where things lie, and how far the work was."""


@pytest.fixture(scope="module")
def kept(tmp_path_factory, short_trials):
    """Verb -> (what it printed, the page of its folder as it is read)."""
    folder = tmp_path_factory.mktemp("pages")
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for verb, (command, job) in CASES.items():
            (folder / verb).mkdir()
            patch.chdir(folder / verb)
            Path("job.yaml").write_text(job)
            Path("sweep.yaml").write_text(SWEEP)
            done = CliRunner().invoke(
                app, [*shlex.split(command), "--jobs", "1", "--out", "kept"], catch_exceptions=False
            )
            report = CliRunner().invoke(app, ["report", "kept", "-o", "page.html"])
            assert report.exit_code == 0, done.stderr + report.stderr
            found[verb] = (f"{done.stdout}\n{done.stderr}", Path("page.html").read_text())
    return found


def read(page):
    """The words of a page, one blank between them.  Numbers that are links are words of their sentence."""
    text = re.sub(r"<style>.*?</style>|<svg.*?</svg>", " ", page, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", re.sub(r"</?a\b[^>]*>", "", text))).split())


def sentences(printed):
    """Lines of prose: a cell of a table stands two blanks from the next."""
    lines = [
        " ".join(line.split())
        for line in printed.splitlines()
        if "  " not in line.strip() and not OF_THE_PLACE.search(line)
    ]
    return [in_words_of(line) for line in lines if len(line.split()) > 3]


def in_words_of(line):
    """A page has words for names of columns."""
    return re.sub(r"\b\w+_(ms|bytes|per_second)\b", lambda name: in_words(name[0]), line)


@pytest.mark.parametrize("verb", CASES)
def test_every_sentence_stands_in_the_page(kept, verb):
    printed, page = kept[verb]
    text, printed_lines = read(page), sentences(printed)

    assert len(printed_lines) > 3, printed
    assert [sentence for sentence in printed_lines if sentence not in text] == []


@pytest.mark.parametrize("verb", CASES)
def test_every_page_says_what_it_rests_on(kept, verb):
    """The backtest, the envelope, the version, the date, and the command."""
    _, page = kept[verb]
    text = read(page)

    for part in (
        "the simulation deviates from the history of 20 checkpoints",
        "tails are drawn from the residuals of 2 checkpoints",
    ):
        assert part in text
    assert ("not validated: time per record 20 ms" in text) == (verb != "advise")
    assert re.search(r"Made by ckptsim \d+\.\d+\.\d+ \(code \w+\), 2026-09-21 \d\d:\d\d UTC", text)
    assert f"ckptsim {verb} " in text
    assert ("<figure" in page) == (verb != "advise"), "an advice has tables only"
