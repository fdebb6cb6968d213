"""`ckptsim report`: a page from what run, sweep and advise kept."""

import json
import shutil
import subprocess

import pytest

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
    ckptsim("run", tiny, "--jobs", 1, "--out", folder)
    done = ckptsim("report", folder, "-o", tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()

    assert (0, "", f"{tmp_path / 'page.html'}\n") == (done.exit_code, done.stdout, done.stderr)
    verdict = json.loads((folder / "comparison.json").read_text())["verdict"]
    for part in ("Checkpoints of tiny", "Does it matter how barriers travel?", "Completed checkpoints", "Throughput", "What was assumed"):
        assert part in text
    assert verdict[:30] in text
    assert f"ckptsim run {tiny} --out {folder}" in text
    assert "end_to_end" not in text


def test_failures_commits_and_what_is_unknown(ckptsim, tiny, tmp_path):
    text = tiny.read_text().replace("service: 1 ms", "service: 1 ms, commit: two-phase")
    text = text.replace("{interval: 1 s, ", "\n  interval: 1 s  # UNKNOWN: nobody said\n  ").replace(
        "[aligned, unaligned]}", "[aligned, unaligned]"
    )
    tiny.write_text(text.replace("run: {duration: 3 s}", "faults: [{kill: sink, at: 1.5 s}]\nrun: {duration: 5 s}"))
    ckptsim("run", tiny, "--jobs", 1, "--out", tmp_path / "results")
    done = ckptsim("report", tmp_path / "results", "-o", tmp_path / "page.html")
    assert 0 == done.exit_code, done.stderr

    page = (tmp_path / "page.html").read_text()
    assert "Failures, recovery and commits" in page
    assert "1 failure marked" in page
    assert "interval: 1 s (unknown: nobody said)" in page


def test_what_a_run_broke_is_on_the_page(ckptsim, tiny, tmp_path):
    """Kept in the summary, as the tables do not show it."""
    ckptsim("run", tiny, "--jobs", 1, "--out", tmp_path / "results")
    summary = json.loads((tmp_path / "results" / "comparison.json").read_text())
    (tmp_path / "results" / "comparison.json").write_text(json.dumps(summary | {"violations": {"aligned": ["a record came twice"]}}))
    assert 0 == ckptsim("report", tmp_path / "results", "-o", tmp_path / "page.html").exit_code

    page = (tmp_path / "page.html").read_text()
    assert "aligned: a run broke what checkpoints promise" in page
    assert "a record came twice" in page


def test_a_sweep(ckptsim, tiny, tmp_path):
    (tmp_path / "sweep.yaml").write_text(SWEEP)
    ckptsim("sweep", tmp_path / "sweep.yaml", "--jobs", 1, "--out", tmp_path / "results", "--replications", 2)
    done = ckptsim("report", tmp_path / "results", "-o", tmp_path / "page.html")
    assert 0 == done.exit_code, done.stderr

    page = (tmp_path / "page.html").read_text()
    for part in (
        "Which interval is best?",
        "Values and how sure they are",
        "What one costs the other",
        "Over two settings",
        "95 % confidence",
    ):
        assert part in page
    assert "end_to_end" not in page


def test_an_advice(ckptsim, tiny, tmp_path):
    tiny.write_text(tiny.read_text().replace("[aligned, unaligned]", "aligned").replace("3 s}", "20 s}"))
    ckptsim("advise", tiny, "--p99", "10 s", "--replications", 1, "--no-unknowns", "--jobs", 1, "--out", tmp_path / "results")
    done = ckptsim("report", tmp_path / "results", "-o", tmp_path / "page.html")
    assert 0 == done.exit_code, done.stderr

    page = (tmp_path / "page.html").read_text()
    for part in ("Advice for tiny", "Which checkpoint settings keep the limits?", "execution.checkpointing.interval", "What was assumed"):
        assert part in page


def test_mistakes_are_a_line_and_a_code(ckptsim, tiny, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "answer.json").write_text("{}")
    for place, message in (
        (tmp_path / "empty", "is no folder of results"),
        (tiny, "is no folder"),
        (tmp_path / "odd", "is not what 'ckptsim sweep' or 'advise' wrote"),
    ):
        done = ckptsim("report", place, "-o", tmp_path / "page.html")

        assert (3, 1) == (done.exit_code, done.stderr.count("\n")), done.stderr
        assert message in done.stderr


BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
MEASURE = """<body><iframe id=f width={width} height=2000 src="{page}"></iframe><script>
onload = () => {{
  const page = document.getElementById("f").contentDocument, root = page.documentElement;
  const texts = [...page.querySelectorAll("svg text")];
  const out = texts.filter(text => {{
    const box = text.getBoundingClientRect(), frame = text.closest("svg").getBoundingClientRect();
    return box.left < frame.left - 1 || box.right > frame.right + 1;
  }});
  const size = text => Math.hypot(text.getScreenCTM().a, text.getScreenCTM().b) * parseFloat(getComputedStyle(text).fontSize);
  const font = Math.min(...texts.map(size));
  document.title = JSON.stringify({{width: root.scrollWidth, out: out.map(text => text.textContent), font: font}});
}}</script>"""


@pytest.mark.extra
@pytest.mark.skipif(BROWSER is None, reason="needs Chromium")
@pytest.mark.parametrize("width", [1100, 390])
def test_a_browser_shows_all_of_it(ckptsim, tiny, tmp_path, width):
    """No scrolling to the side, no text of a figure cut off, letters that can be read."""
    ckptsim("run", tiny, "--jobs", 1, "--out", tmp_path / "results")
    ckptsim("report", tmp_path / "results", "-o", tmp_path / "page.html")
    (tmp_path / "frame.html").write_text(MEASURE.format(width=width, page=(tmp_path / "page.html").as_uri()))
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files", "--virtual-time-budget=5000", "--dump-dom"]
    command = [BROWSER, *options, (tmp_path / "frame.html").as_uri()]
    dom = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    measured = json.loads(dom.partition("<title>")[2].partition("</title>")[0])

    assert measured["width"] <= width
    assert [] == measured["out"]
    assert measured["font"] >= 8
