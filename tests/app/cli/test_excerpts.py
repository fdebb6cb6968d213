"""Golden: what `ckptsim run` says about a committed scenario holds the excerpt that is kept of it, word for word."""

import pytest

from tests.places import ROOT

EXCERPTS = sorted((ROOT / "tests" / "data" / "excerpts").glob("*.txt"))
DEAR = ("flink-37375-slow-dfs-nodes", "flip-76-vicious-circle", "flink-37375-number-of-writers")
"""They take as long as all others together: the slow half reads them."""


@pytest.mark.parametrize(
    "excerpt",
    [pytest.param(path, marks=[pytest.mark.slow] if path.stem in DEAR else [], id=path.stem) for path in EXCERPTS],
)
def test_a_scenario_says_what_it_said(ckptsim, tmp_path, excerpt):
    """Each paragraph of the excerpt is one of the output; a difference is shown beside the nearest line."""
    done = ckptsim("run", ROOT / "scenarios" / f"{excerpt.stem}.yaml", "--jobs", 1, "--out", tmp_path / "out")
    paragraphs = [paragraph.strip("\n") for paragraph in done.stdout.split("\n\n")]

    assert int("\nviolation: " in done.stdout) == done.exit_code, "strategies known to be wrong are told as such"
    for paragraph in excerpt.read_text().strip("\n").split("\n\n"):
        title = paragraph.splitlines()[0]
        printed = next(
            (candidate for candidate in paragraphs if candidate.splitlines()[:1] == [title]), "nothing under this title"
        )
        assert paragraph.splitlines() == printed.splitlines()
