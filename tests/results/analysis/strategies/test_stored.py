"""What lies in storage, told to people: from tables made by hand, and from a chain that was run."""

import pandas as pd
import pytest

from sim.results.columns import FILES, RESTORES, SNAPSHOTS
from sim.results.stored import snapshot_tables


def table(columns, *rows):
    return pd.DataFrame(list(rows), columns=[column.name for column in columns])


@pytest.fixture
def run():
    """Ten checkpoints of 1 s every 10 s, a savepoint of 30 s at 20 s, and a long one after it."""
    rows = [(n, "COMPLETED", 10_000.0 * n, 1000.0, 5, 50, "", 0.0) for n in (1, 2, 6, 7)]
    rows += [
        (3, "COMPLETED", 20_500.0, 30_000.0, 50, 50, "CANONICAL", 0.0),
        (5, "COMPLETED", 55_000.0, 4000.0, 45, 50, "", 0.0),
    ]
    columns = [
        "id",
        "status",
        "trigger_timestamp",
        "end_to_end_duration",
        "checkpointed_size",
        "state_size",
        "savepointFormat",
        "x_finalization",
    ]
    return {
        "checkpoints": pd.DataFrame(rows, columns=columns),
        "restores": table(RESTORES),
        "snapshots": table(SNAPSHOTS),
        "files": table(FILES),
    }


def section(run, title):
    found = next(section for section in snapshot_tables({"it": run}) if section.title == title)
    return [dict(zip(found.header, row, strict=True)) for row in found.rows]


def test_a_savepoint_against_checkpoints(run):
    """Each kind of snapshot has its row; the checkpoint after a savepoint is one of its own."""
    rows = {row["snapshot"]: row for row in section(run, "Duration and size of snapshots")}

    assert list(rows) == ["checkpoint", "canonical savepoint", "checkpoint after a savepoint"]
    assert tuple(rows["checkpoint"][column] for column in ("n", "p50", "written")) == ("4", "1 s", "5 B")
    assert tuple(rows["canonical savepoint"][column] for column in ("n", "p50", "written")) == ("1", "30 s", "50 B")
    assert tuple(rows["checkpoint after a savepoint"][column] for column in ("p50", "written")) == ("4 s", "45 B")


def test_nothing_to_say(run):
    """A job that takes checkpoints only."""
    run["checkpoints"]["savepointFormat"] = ""

    assert snapshot_tables({"it": run}) == []


def test_jobs_that_began_from_a_snapshot(run):
    """What the first checkpoint cost, and what may be deleted by whom."""
    run["restores"] = table(
        RESTORES,
        (1, "no-claim", 0, 7, "checkpoint", 0.0, 8, "full", 10**9, 5000.0, 10**9, 5000.0, 6000.0, True),
        (2, "claim", 1, 9, "native", 0.0, -1, "", 0, -1.0, 0, -1.0, -1.0, False),
    )
    full, none = section(run, "Jobs restored from a snapshot")

    assert list(full.values()) == ["it", "1", "0/7 checkpoint", "8 full", "1 GB", "5 s", "6 s", "yes"]
    assert list(none.values()) == ["it", "2", "1/9 native", "-", "-", "-", "never", "no: it is the job's"]


@pytest.mark.parametrize(
    ("claim", "deletable", "free_ms", "cells"),
    [
        ("no-claim", False, 0.0, ["0 ms", "no"]),
        ("claim", True, 6000.0, ["6 s", "yes"]),
    ],
)
def test_an_old_snapshot_may_go_at_once_or_never(run, claim, deletable, free_ms, cells):
    """Checkpoint 0 is a first one as well."""
    run["restores"] = table(
        RESTORES, (1, claim, 0, 7, "checkpoint", 0.0, 0, "full", 10**9, 5000.0, 10**9, 5000.0, free_ms, deletable)
    )
    (row,) = section(run, "Jobs restored from a snapshot")

    assert ["it", "1", "0/7 checkpoint", "0 full", "1 GB", "5 s", *cells] == list(row.values())


def test_what_is_kept_and_what_others_lose(run):
    """Chains show their owners; removing a job's directory is told where a later job still names files in it."""
    run["checkpoints"].loc[0, "savepointFormat"] = "NATIVE"
    run["snapshots"] = table(
        SNAPSHOTS,
        (2, 9, "checkpoint", "/c", 3, 10**6, 3, 1, "0 2", 1, 2, False, False, "no", True, True, "0/5", ""),
        (2, 10, "native", "/s", 1, 10**6, 0, 0, "2", 0, 0, True, True, "n/a", False, False, "", ""),
    )
    run["files"] = table(
        FILES,
        (0, 5, "/a", 1, "shared", -1, 2, 5, 9, -1.0, "0/5 2/9 2/10"),
        (0, 5, "/b", 1, "shared", -1, 2, 5, 9, 7.0, "2/8"),
        (0, 6, "/s", 1, "savepoint", -1, 2, 6, 9, -1.0, "2/7"),
        (0, 5, "/e", 1, "shared", -1, 2, 5, 9, -1.0, "0/6"),
        (2, 9, "/d", 1, "exclusive", -1, 2, 9, 9, -1.0, "2/9"),
    )
    chained, moved = section(run, "Retained snapshots and what they depend on")

    assert list(chained.values()) == ["it", "2/9 checkpoint", "1 MB", "3", "3", "1 (0 2)", "no", "no", "yes", "0/5"]
    assert list(moved.values()) == ["it", "2/10 native, broken", "1 MB", "1", "0", "0", "yes", "n/a", "n/a", "-"]
    assert section(run, "Directories that other snapshots need") == [
        {"strategy": "it", "rm -r": "directory of job 0", "lost": "2/9 2/10"}
    ]
