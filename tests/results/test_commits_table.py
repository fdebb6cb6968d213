"""Commits as rows: distinct numbers, one by one; nothing visible has no latency."""

from sim.results.tables import CommitStats, CommittedEpoch, commits_table

MS = 1_000_000
NAMES = [("sink", 0), ("sink", 1), ("committer", 0)]


def epoch(number, writer=0, opened_ms=0, files=(), missing=0):
    return CommittedEpoch(writer, number, ((10, 20), (30, 33)), opened_ms * MS, 500, files, missing)


def test_nothing_visible_has_no_latency():
    """A commit again that was known, or one of which everything is lost."""
    row = commits_table([CommitStats(4, 100 * MS, 2, 70 * MS, (), (epoch(2),))], NAMES).iloc[0]

    assert (row["commit_latency"], row["visible_latency"], row["records"], row["lost_records"]) == (-1.0, -1.0, 0, 13)


def test_output_without_a_checkpoint_has_no_commit_latency():
    row = commits_table([CommitStats(0, 100 * MS, 1, -1, (epoch(2),))], NAMES).iloc[0]

    assert (row["commit_latency"], row["visible_latency"], row["checkpoint"]) == (-1.0, 100.0, 0)
