"""Commits as rows: distinct numbers, one by one; nothing visible has no latency."""

from sim.results.schema import COMMITS
from sim.results.tables import CommitStats, CommittedEpoch, commits_table

MS = 1_000_000
NAMES = [("sink", 0), ("sink", 1), ("committer", 0)]


def epoch(number, writer=0, opened_ms=0, files=(), missing=0):
    return CommittedEpoch(writer, number, ((10, 20), (30, 33)), opened_ms * MS, 500, files, missing)


def test_a_commit_is_one_row():
    """Two writers of two epochs: the oldest transaction counts."""
    covered = epoch(3, opened_ms=40, files=("a", "b"), missing=1), epoch(4, 1, opened_ms=60, files=("c",))
    table = commits_table([CommitStats(4, 100 * MS, 2, 70 * MS, covered, (epoch(2),), again=True)], NAMES)
    expected = {
        "checkpoint": 4,
        "commit_timestamp": 100.0,
        "vertex": "committer",
        "index": 0,
        "epochs": 2,
        "records": 26,
        "bytes": 1000,
        "files": 3,
        "commit_latency": 30.0,
        "visible_latency": 60.0,
        "again": True,
        "lost_records": 13,
        "missing_files": 1,
    }

    assert [column.name for column in COMMITS] == list(table.columns)
    assert expected == table.iloc[0].to_dict()


def test_nothing_visible_has_no_latency():
    """A commit again that was known, or one of which everything is lost."""
    row = commits_table([CommitStats(4, 100 * MS, 2, 70 * MS, (), (epoch(2),))], NAMES).iloc[0]

    assert (row["commit_latency"], row["visible_latency"], row["records"], row["lost_records"]) == (-1.0, -1.0, 0, 13)


def test_output_without_a_checkpoint_has_no_commit_latency():
    row = commits_table([CommitStats(0, 100 * MS, 1, -1, (epoch(2),))], NAMES).iloc[0]

    assert (row["commit_latency"], row["visible_latency"], row["checkpoint"]) == (-1.0, 100.0, 0)
