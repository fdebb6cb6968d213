"""An advice is kept alike by the command and by Python."""

import pytest

import sim
from tests.verbs.conftest import TINY, contents, report_of

JOB = TINY.replace("[aligned, unaligned]", "aligned").replace(
    "checkpoint:", "# UNKNOWN: How fast?\nstorage: {bandwidth: 1 MB/s}\ncheckpoint:"
)


@pytest.mark.usefixtures("short_trials")
def test_the_same_bytes_are_kept(both_ways, tmp_path):
    """Rows, the sweep of what was tried, and the advice; the page of either shows it."""
    done, advice = both_ways(
        {"tiny.yaml": JOB},
        "advise tiny.yaml --p99 '10 s' --recovery '1 min' --set run.seed=3 --jobs 1 --budget '1 h' --out kept",
        lambda: sim.advise("tiny.yaml", p99="10 s", recovery="1 min", changes={"run.seed": 3}, jobs=1, budget="1 h", folder="kept"),
    )
    command, python = contents(tmp_path / "command" / "kept"), contents(tmp_path / "python" / "kept")

    assert 0 == done.exit_code, done.stderr
    assert {"advice.json", "sweep.yaml", "results.parquet"} <= set(command)
    assert command == python
    again = "ckptsim advise tiny.yaml --p99 '10 s' --recovery '1 min' --budget '1 h' --set run.seed=3 --out kept\\n"
    assert again in command["advice.json"].decode()
    assert advice.verdict in report_of("kept")
