"""`ckptsim report`: a page from what run, sweep and advise kept."""

import json
import re
from functools import partial

import pytest
from typer.testing import CliRunner

from sim.app.cli import app
from tests.app.cli.conftest import TINY
from tests.browser import Sight, browser, needs_browser
from tests.places import REST

SWEEP = """\
# Which interval is best?
version: 1
scenario: tiny.yaml
vary: {checkpoint.interval: [500 ms, 1 s], checkpoint.barriers: [aligned, unaligned]}
answer: {settings: [checkpoint.interval, checkpoint.barriers], show: [end_to_end_p99_ms, throughput_per_second], least: end_to_end_p99_ms}
"""


def test_a_comparison(ckptsim, tiny, tmp_path):
    """Question, verdict, table, figures, what was assumed, and the command that makes it again."""
    folder = tmp_path / "results"
    ckptsim(f"run {tiny} --jobs 1 --out {folder}")
    done = ckptsim(f"report {folder} -o {tmp_path}/page.html")
    text = (tmp_path / "page.html").read_text()

    assert (0, "", f"{tmp_path / 'page.html'}\n") == (done.exit_code, done.stdout, done.stderr)
    verdict = json.loads((folder / "comparison.json").read_text())["verdict"]
    for part in (
        "Checkpoints of tiny",
        "Does it matter how barriers travel?",
        "Completed checkpoints",
        "Throughput",
        "What was assumed",
    ):
        assert part in text
    assert verdict[:30] in re.sub("<[^>]*>", "", text)  # its numbers link to their cells
    assert "ckptsim run tiny.yaml --out results" in text
    assert "end_to_end" not in text


def test_a_report_plays_a_checkpoint(ckptsim, tiny, tmp_path):
    """On request only: the runs are simulated again for it."""
    ckptsim(f"run {tiny} --jobs 1 --out {tmp_path}/results")
    ckptsim(f"report {tmp_path}/results -o {tmp_path}/page.html --checkpoint 1")
    page = (tmp_path / "page.html").read_text()

    assert page.count('<section class="player"') == 1
    assert "Checkpoint 1 as it ran" in page


def test_failures_commits_and_what_is_unknown(ckptsim, tiny, tmp_path):
    text = tiny.read_text().replace("service: 1 ms", "service: 1 ms, commit: two-phase")
    text = text.replace("{interval: 1 s, ", "\n  interval: 1 s  # UNKNOWN: nobody said\n  ").replace(
        "[aligned, unaligned]}", "[aligned, unaligned]"
    )
    tiny.write_text(text.replace("run: {duration: 3 s}", "faults: [{kill: sink, at: 1.5 s}]\nrun: {duration: 5 s}"))
    ckptsim(f"run {tiny} --jobs 1 --out {tmp_path}/results")
    done = ckptsim(f"report {tmp_path}/results -o {tmp_path}/page.html")
    assert done.exit_code == 0, done.stderr

    page = (tmp_path / "page.html").read_text()
    assert "Failures, recovery and commits" in page
    assert "1 failure marked" in page
    assert "interval: 1 s (unknown: nobody said)" in page


def test_a_job_without_periodic_checkpoints(ckptsim, tiny, tmp_path):
    """Nothing in its folder has changed: no other job is compared with it."""
    tiny.write_text(tiny.read_text().replace("{interval: 1 s, barriers: [aligned, unaligned]}", "{interval: off}"))
    run = ckptsim(f"run {tiny} --jobs 1 --out {tmp_path}/results")
    done = ckptsim(f"report {tmp_path}/results -o {tmp_path}/page.html")

    assert "\nno checkpoints " in run.stdout
    assert (done.exit_code, done.stderr.replace(f"{tmp_path / 'page.html'}\n", "")) == (0, "")
    assert "no checkpoints" in (tmp_path / "page.html").read_text()


def test_what_a_run_broke_is_on_the_page(ckptsim, tiny, tmp_path):
    """Kept in the summary, as the tables do not show it."""
    ckptsim(f"run {tiny} --jobs 1 --out {tmp_path}/results")
    summary = json.loads((tmp_path / "results" / "comparison.json").read_text())
    (tmp_path / "results" / "comparison.json").write_text(
        json.dumps(summary | {"violations": {"aligned": ["a record came twice"]}})
    )
    assert ckptsim(f"report {tmp_path}/results -o {tmp_path}/page.html").exit_code == 0

    page = (tmp_path / "page.html").read_text()
    assert "aligned: a run broke what checkpoints promise" in page
    assert "a record came twice" in page


def test_a_sweep(ckptsim, tiny, tmp_path):
    (tmp_path / "sweep.yaml").write_text(SWEEP)
    ckptsim(f"sweep {tmp_path}/sweep.yaml --jobs 1 --out {tmp_path}/results --set run.replications=2")
    done = ckptsim(f"report {tmp_path}/results -o {tmp_path}/page.html")
    assert done.exit_code == 0, done.stderr

    page = (tmp_path / "page.html").read_text()
    for part in (
        "Which interval is best?",
        "Values and confidence intervals",
        "95 % confidence",
    ):
        assert part in page
    assert "end_to_end" not in page


def test_mistakes_are_a_line_and_a_code(ckptsim, tiny, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "answer.json").write_text("{}")
    for place, message in (
        (tmp_path / "empty", "is not a folder of results"),
        (tmp_path / "nothing", "is not a folder"),
        (tmp_path / "odd", "is not what 'ckptsim sweep' or 'advise' wrote"),
    ):
        done = ckptsim(f"report {place} -o {tmp_path}/page.html")

        assert (done.exit_code, done.stderr.count("\n")) == (3, 1), done.stderr
        assert message in done.stderr


def test_an_import_has_its_history_beside_its_simulation(ckptsim, tmp_path):
    """The backtest of the file, as a table."""
    ckptsim(f"import {REST}/pressed.zip -o {tmp_path}/job.yaml")
    ckptsim(f"run {tmp_path}/job.yaml --out {tmp_path}/job")
    done = ckptsim(f"report {tmp_path}/job -o {tmp_path}/page.html")
    page = (tmp_path / "page.html").read_text()

    assert done.exit_code == 0, done.stderr
    assert "The unchanged job, compared with its history" in page
    assert "checkpoints that was imported" in page


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """A page of each kind."""
    folder = tmp_path_factory.mktemp("pages")
    call = partial(CliRunner().invoke, app, prog_name="ckptsim", catch_exceptions=False)
    (folder / "tiny.yaml").write_text(
        TINY.replace("run: {duration: 3 s}", "faults: [{kill: sink, at: 1.5 s}]\nrun: {duration: 6 s}")
    )
    (folder / "sweep.yaml").write_text(SWEEP)
    call(f"import {REST}/pressed.zip -o {folder}/imported.yaml")
    call(f"run {folder}/tiny.yaml --out {folder}/run")
    call(f"run {folder}/imported.yaml --out {folder}/imported")
    call(f"sweep {folder}/sweep.yaml --out {folder}/sweep")
    call(f"advise {folder}/imported.yaml --p99 '10 s' --replications 1 --out {folder}/advice")
    for name in ("run", "imported", "sweep", "advice"):
        call(f"report {folder}/{name} -o {folder}/{name}.html")
    return folder


@pytest.mark.slow
@pytest.mark.xdist_group("pages of results")
@needs_browser
@pytest.mark.parametrize(
    ("width", "dark", "printed"),
    [
        (1100, False, False),
        (1100, True, False),
        (768, False, False),
        (390, False, False),
        (390, True, False),
        (700, False, True),
    ],
)
def test_a_browser_shows_all_of_it(pages, width, dark, printed):
    """Nothing is cut off or stands on something else, letters can be read, contrasts are AA, nothing is asked of a network."""
    with browser() as reader:
        seen = {
            path.stem: reader.look(path, width=width, dark=dark, printed=printed)
            for path in sorted(pages.glob("*.html"))
        }

    assert (
        dict.fromkeys(("advice", "imported", "run", "sweep"), Sight(wide="", cut=[], overlaps=[], faint=[], small=""))
        == seen
    )
