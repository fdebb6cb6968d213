"""`ckptsim advise --restart-times`, and the page that shows what it prints."""

from tests.places import ROOT


def test_the_page_shows_what_is_printed(ckptsim, tmp_path):
    """docs/your-own-job.md, word for word but for the name of the folder."""
    page = (ROOT / "docs" / "your-own-job.md").read_text()
    shown = page.partition("--restart-times\n\n```\n")[2].partition("```")[0]
    done = ckptsim(
        f"advise {ROOT}/tests/data/lost-task-managers/L2-lost-pressed-aligned/job.yaml --restart-times -o {tmp_path}/out"
    )

    assert done.exit_code == 0, done.stderr
    assert shown.splitlines() == done.stdout.splitlines()[: len(shown.splitlines())]
    assert len(shown.splitlines()) > 8
