"""Committed output: what tiles is silent; gaps, overlaps, early commits and missing files are told in stories."""

from dataclasses import replace

from sim.invariants.output import commit_errors, uncommitted
from sim.invariants.violation import JournalFormatter
from sim.results.journal import Happening, Journal
from sim.results.tables import CheckpointStats, CommitStats, CommittedEpoch

MS = 1_000_000
NAMES = [("source", 0), ("sink", 0)]
SINK = 1


def epoch(number, *inputs, **fields):
    return CommittedEpoch(SINK, number, inputs, opened_ns=0, size_bytes=10, **fields)


def commit(checkpoint, *epochs, at_ms=None, **fields):
    """Checkpoint n completes at 10 n ms and is committed 1 ms later, unless something else is said."""
    return CommitStats(checkpoint, (10 * checkpoint + 1 if at_ms is None else at_ms) * MS, SINK, 0, epochs, **fields)


def stats():
    rows = {n: CheckpointStats(n, 0, 2, status="COMPLETED", completed_ns=10 * n * MS) for n in (1, 2, 3, 4)}
    return {**rows, 3: replace(rows[3], status="FAILED", completed_ns=-1)}


def journal(commits):
    rows = Journal()
    for number, row in stats().items():
        rows.note((10 * number - 5) * MS, Happening.TRIGGERED, number)
        rows.note(10 * number * MS, Happening.COMPLETED if row.status == "COMPLETED" else Happening.ABORTED, number)
    for commit in commits:
        rows.note(
            commit.time_ns,
            Happening.COMMITTED,
            commit.checkpoint,
            commit.task,
            sum(e.records for e in commit.committed),
        )
    return rows


def violations(*commits):
    return list(commit_errors(commits, stats(), JournalFormatter(journal(commits), NAMES)))


def test_a_gap_is_told():
    """Records 10 to 14 of the first channel and 5 to 6 of the second are in no commit."""
    (violation,) = violations(commit(1, epoch(1, (0, 10), (0, 5))), commit(2, epoch(2, (14, 20), (6, 7))))

    assert violation.fact == "5 records are lost before it"
    assert violation.where == "epoch 2 of sink[0], committed with checkpoint 2"
    assert "0.011000 s  sink[0] makes 15 records visible on completion of checkpoint 1" in violation.story
    assert violation.story[-1] == "input channel 0: records up to 10 were committed before, this epoch holds 14 to 20"


def test_an_overlap_is_told():
    (violation,) = violations(commit(1, epoch(1, (0, 10))), commit(2, epoch(2, (7, 20))))

    assert violation.fact == "3 records are committed twice"


def test_the_same_epoch_twice_is_told():
    """Two writes of one transaction: what an external system that does not recognise it would show."""
    (violation,) = violations(commit(1, epoch(1, (0, 10))), commit(2, epoch(1, (0, 10))))

    assert violation.fact == "10 records are committed twice"


def test_a_lost_transaction_is_told_once():
    """What the external system threw away is lost; what follows it is not blamed again."""
    (violation,) = violations(
        commit(1, epoch(1, (0, 10))), commit(2, lost=(epoch(2, (10, 30)),)), commit(4, epoch(4, (30, 40)))
    )

    assert violation.fact.startswith("20 records are lost: the transaction")


def test_output_newer_than_its_checkpoint_is_told():
    (violation,) = violations(commit(1, epoch(2, (0, 1))))

    assert violation.fact == "it makes epoch 2 visible, which is newer than checkpoint 1"


def test_missing_files_are_told():
    """Committed output names a file that was deleted or never finished."""
    (violation,) = violations(commit(1, epoch(1, (0, 10), files=("a", "b"), missing=1)))

    assert violation.fact == "1 of the 2 files it names are not there in full"


def left(read, *commits):
    return [
        violation.fact
        for violation in uncommitted(commits, {SINK: read}, 99 * MS, JournalFormatter(journal(commits), NAMES))
    ]


def test_an_uncommitted_tail_is_told():
    """Between the last checkpoint and the end: 3 records of one channel, 1 of another."""
    assert left((13, 6), commit(1, epoch(1, (0, 10), (0, 5)))) == [
        "the job has finished and 4 records are lost: never committed"
    ]
    assert left((7,)) == ["the job has finished and 7 records are lost: never committed"]


def again(checkpoint, **fields):
    return commit(checkpoint, epoch(checkpoint, (0, 1)), again=True, **fields)


def test_a_commit_after_a_restore_needs_a_complete_checkpoint_too():
    assert [len(violations(repetition)) == 1 for repetition in (again(1, at_ms=9), again(3))] == [True, True]


def test_an_instance_commits_what_it_began_from_without_completing_it():
    """Another instance did, whether it had committed the output or not."""
    formatter = JournalFormatter(journal([]), NAMES)

    for first in (again(7), commit(7, epoch(7, (0, 1)))):
        assert list(commit_errors([first], stats(), formatter, begun_from=7)) == []
        assert len(list(commit_errors([first], stats(), formatter, begun_from=6))) == 1


def test_the_story_of_a_gap_begins_with_the_last_commit_before_it():
    """Failures between the two, both moments included; the commits of this task only, and the ends of their checkpoints."""
    commits = [commit(1, epoch(1, (0, 10))), commit(2, epoch(2, (10, 20))), commit(4, epoch(4, (25, 30)))]
    rows = journal(commits)
    rows.note(41 * MS, Happening.COMMITTED, 4, 0, 99)
    for ms, why in ((20, "before"), (21, "then"), (41, "now"), (42, "later")):
        rows.note(ms * MS, Happening.TASK_FAILED, -1, 0, 0, why)
    (violation,) = commit_errors(commits, stats(), JournalFormatter(rows, NAMES))

    assert violation.story == (
        "0.015000 s  the coordinator triggers checkpoint 2",
        "0.020000 s  checkpoint 2 is complete",
        "0.021000 s  sink[0] makes 10 records visible on completion of checkpoint 2",
        "0.021000 s  source[0] fails: then",
        "0.035000 s  the coordinator triggers checkpoint 4",
        "0.040000 s  checkpoint 4 is complete",
        "0.041000 s  sink[0] makes 5 records visible on completion of checkpoint 4",
        "0.041000 s  source[0] fails: now",
        "input channel 0: records up to 20 were committed before, this epoch holds 25 to 30",
    )


def test_the_story_of_a_first_gap_begins_with_the_run():
    commits = [commit(1, epoch(1, (3, 10)))]
    rows = journal(commits)
    rows.note(0, Happening.TASK_FAILED, -1, 0, 0, "at once")
    (violation,) = commit_errors(commits, stats(), JournalFormatter(rows, NAMES))

    assert violation.story[0] == "0.000000 s  source[0] fails: at once"


def test_a_commit_of_nothing_covers_nothing():
    assert left((1,), commit(1, epoch(1, (0, 0)))) == ["the job has finished and 1 record is lost: never committed"]


def test_the_story_of_an_uncommitted_tail_is_the_last_eight_ends():
    """Completions, commits, failures; no triggers."""
    rows = Journal()
    for n in range(10):
        rows.note(n * MS, Happening.COMPLETED, n)
        rows.note(n * MS, Happening.TRIGGERED, n + 1)
    (violation,) = uncommitted([], {SINK: (1,)}, 99 * MS, JournalFormatter(rows, NAMES))

    assert [f"checkpoint {n} is complete" for n in range(2, 10)] == [line[12:] for line in violation.story]


def test_epochs_of_channels_that_are_no_more_are_not_laid_beside_those_of_today():
    """Rescaled from checkpoint 1: two channels became one.  What expires is lost all the same, and files must be there."""
    old, expired = epoch(1, (0, 10), (0, 5), files=("a",), missing=1), epoch(1, (10, 12), (5, 9))
    commits = [commit(1, old, lost=(expired,), again=True), commit(2, epoch(2, (7, 20)))]
    formatter, begun = JournalFormatter(journal(commits), NAMES), {"covered": {SINK: [7]}, "counted_from": 1}
    facts = [violation.fact for violation in commit_errors(commits, stats(), formatter, begun_from=1, **begun)]

    assert facts[0].startswith("6 records are lost: the transaction")
    assert facts[1:] == ["1 of the 1 files it names are not there in full"]
    assert list(uncommitted(commits, {SINK: (20,)}, 99 * MS, formatter, **begun)) == []
    assert len(list(uncommitted(commits, {SINK: (21,)}, 99 * MS, formatter, **begun))) == 1


def test_the_story_of_a_commit_is_that_of_its_sink_since_the_commit_before():
    """What another sink drops, or this one later, is no part of it."""
    commits = [commit(1, epoch(1, (0, 10))), commit(2, epoch(2, (14, 20)))]
    rows = journal(commits)
    for ms, task in ((9, SINK), (11, SINK), (15, 0), (21, SINK), (22, SINK)):
        rows.note(ms * MS, Happening.OUTPUT_DROPPED, 2, task, 1, "it failed")
    (violation,) = commit_errors(commits, stats(), JournalFormatter(rows, NAMES))
    dropped = [line for line in violation.story if "drops" in line]

    assert [line[:25] for line in dropped] == ["0.011000 s  sink[0] drops", "0.021000 s  sink[0] drops"]
