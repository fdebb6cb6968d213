"""Tables of traces, windows and predictions are alike from the command and from Python."""

import json
import shutil

import sim
from tests.app.verbs.conftest import contents
from tests.places import ROOT

DAY = "t_s,rate\n" + "".join(f"{second},{1000 + 10 * (second % 7)}\n" for second in range(60)) + "61,many\n"
RECORDINGS = [ROOT / "tests/data/users-jobs" / f"{name}.zip" for name in ("J2-count-aligned", "J4-pressed-aligned-r1")]


def placed(tmp_path):
    """Recordings in the folder of either way."""
    for way in ("command", "python"):
        (tmp_path / way / "recorded").mkdir(parents=True)
        for file in RECORDINGS:
            shutil.copy(file, tmp_path / way / "recorded")
        (tmp_path / way / "recorded/none.json").write_text("{}")


def test_tables_and_windows_of_traces(both_ways, tmp_path):
    """And all that is said of them."""
    done, found = both_ways(
        {"day.csv": DAY},
        "traces read day.csv --out tables --time t_s --value rate",
        lambda: sim.read_traces("day.csv", "tables", time="t_s", value="rate"),
    )
    assert done.exit_code == 4, done.stderr
    assert done.stderr.splitlines() == found.notes
    assert any("1 row in quarantine, line 62" in line for line in found.notes)
    assert "day: 60 rows of rates" in repr(found)

    done, windows = both_ways(
        {},
        "traces windows tables --length '20 s' --out w/windows.csv",
        lambda: sim.trace_windows("tables", length="20 s", file="w/windows.csv"),
    )
    assert (0, f"{windows!r}\n") == (done.exit_code, done.stdout)
    assert contents(tmp_path / "command") == contents(tmp_path / "python")
    assert "w/windows.csv" in contents(tmp_path / "python")


def test_the_table_of_predictions(both_ways, tmp_path):
    """What was skipped is named by both."""
    placed(tmp_path)
    done, validation = both_ways(
        {},
        "validate recorded --seeds 1 --jobs 1 --json",
        lambda: sim.validate("recorded", seeds=1, jobs=1),
    )

    assert done.exit_code == 4, done.stderr
    assert json.loads(done.stdout) == validation.facts
    assert [f"skipped: {reason}" for reason in validation.skipped] == [
        line for line in done.stderr.splitlines() if line.startswith("skipped: ")
    ]
    assert len(validation.summary) > 5
    assert repr(validation).startswith("2 recordings, 1 skipped: ")
