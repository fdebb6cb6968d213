"""`ckptsim report` of a job that really ran, and `timeline`, which refuses it."""

import json

import pytest

import sim
from tests.browser import Sight, browser, needs_browser
from tests.places import REST, USERS

PRESSED = REST / "pressed.zip"
J4 = USERS / "J4-pressed-aligned-r1.zip"


def test_a_page_says_what_explain_says(ckptsim, tmp_path):
    """The slow ones, where their time went, and what they have in common; the waterfall of each that is told."""
    done = ckptsim(f"report {J4} -o {tmp_path}/page.html")
    page = (tmp_path / "page.html").read_text()

    assert (0, f"{tmp_path / 'page.html'}\n") == (done.exit_code, done.stderr)
    for part in (
        "Checkpoints of J4-pressed-aligned-r1",
        "1 of 24 completed ones is slow (over 3.7 s)",
        "86 MB at 38 MB/s",
        "8  upload, count+out-writer[1]",
        "What each subtask did in checkpoint 22",
        "upload of count+out-writer takes longest: 1 of 1",
        "What Flink does not tell",
        "ckptsim report",
    ):
        assert part in page, part


def test_a_live_job_and_one_checkpoint(ckptsim, fake_flink, tmp_path):
    number = json.loads(ckptsim(f"explain {PRESSED} --json").stdout)["known"][-2]
    url = fake_flink().url
    live = ckptsim(f"report {url} -o {tmp_path}/live.html --checkpoint {number}")

    assert live.exit_code == 0, live.stderr
    assert f"Checkpoint {number} of " in (tmp_path / "live.html").read_text()


def test_a_log_has_no_subtasks(ckptsim, tmp_path):
    """A page of what there is."""
    log = REST / "jobmanager.log"

    assert ckptsim(f"report {log} -o {tmp_path}/page.html").exit_code == 0
    assert "Statistics of its subtasks are missing" in (tmp_path / "page.html").read_text()


def test_python_writes_the_same(ckptsim, tmp_path):
    sim.write_report(PRESSED, tmp_path / "python.html")
    ckptsim(f"report {PRESSED} -o {tmp_path}/command.html")

    main = [(tmp_path / f"{name}.html").read_text().split("<footer>")[0] for name in ("python", "command")]
    assert main[0] == main[1], "the footer has the command"


def test_mistakes_are_a_line_and_a_code(ckptsim, tmp_path):
    out = f"-o {tmp_path}/out"
    for command, message in (
        (f"report {PRESSED} {out} --checkpoint 999", "no checkpoint 999"),
        (f"report {PRESSED} {out} --deadline '1 s'", "--deadline: is for live jobs"),
    ):
        done = ckptsim(command)
        assert (done.exit_code, done.stderr.count("\n")) == (2, 1), done.stderr
        assert message in done.stderr
    assert not (tmp_path / "out").exists()


def test_timelines_are_of_simulated_runs(ckptsim, tmp_path):
    """A real job is refused before anything is read, and the password of its address is not printed."""
    log = REST / "jobmanager.log"
    for source in (PRESSED, log, "http://user:s3cret@jobmanager:8081"):
        done = ckptsim(f"timeline {source} -o {tmp_path}/t.json")
        assert (done.exit_code, done.stderr.count("\n")) == (3, 1), done.stderr
        assert "timelines show simulated runs only" in done.stderr
        assert "s3cret" not in done.stderr
    assert not (tmp_path / "t.json").exists()


@pytest.mark.slow
@needs_browser
def test_the_page_in_a_browser(ckptsim, tmp_path):
    """Nothing is wider than the screen, cut, or lies upon another; nothing is fetched."""
    ckptsim(f"report {USERS}/R3-firing-timeout500.zip -o {tmp_path}/page.html")
    with browser() as opened:
        for width, dark, printed in ((1280, False, False), (390, True, False), (794, False, True)):
            assert Sight("", [], [], [], "") == opened.look(
                tmp_path / "page.html", width=width, dark=dark, printed=printed
            )
