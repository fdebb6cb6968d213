"""An advice is kept alike by the command and by Python."""

import pytest

import sim
from tests.app.verbs.conftest import TINY, contents, report_of

JOB = TINY.replace("[aligned, unaligned]", "aligned").replace(
    "checkpoint:", "# UNKNOWN: How fast?\nstorage: {bandwidth: 1 MB/s}\ncheckpoint:"
)


OPTIONS = "--p99 '10 s' --recovery '1 min' --budget '1 h' --within '1 h'"


@pytest.mark.usefixtures("short_trials")
def test_the_same_bytes_are_kept(both_ways, tmp_path):
    """Rows, the sweep of what was tried, and the advice; the page of either shows it."""
    done, advice = both_ways(
        {"tiny.yaml": JOB},
        f"advise {tmp_path}/command/tiny.yaml {OPTIONS} --set run.seed=3 --jobs 1 --out {tmp_path}/command/kept",
        lambda: sim.advise(
            "tiny.yaml",
            p99="10 s",
            recovery="1 min",
            budget="1 h",
            within="1 h",
            changes={"run.seed": 3},
            jobs=1,
            folder="kept",
        ),
    )
    command, python = contents(tmp_path / "command" / "kept"), contents(tmp_path / "python" / "kept")

    assert done.exit_code == 0, done.stderr
    assert {"advice.json", "sweep.yaml", "results.parquet"} <= set(command)
    assert command == python
    assert [name for name, content in command.items() if str(tmp_path).encode() in content] == []
    assert f"ckptsim advise tiny.yaml {OPTIONS} --set run.seed=3 --out kept\\n" in command["advice.json"].decode()
    assert advice.verdict in report_of("kept")
