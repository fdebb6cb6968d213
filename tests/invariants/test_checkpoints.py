"""The coordinator's promises, and what happens without a JobManager; what a person reads."""

import pytest

from sim.invariants.checkpoints import (
    coordinator_errors,
    restarts_counted_across_leaders,
    too_many_retained,
    without_job_manager,
)
from sim.invariants.violation import SENTENCES, JournalFormatter, Violation
from sim.results.journal import Entry, Happening, Journal
from sim.results.tables import CheckpointStats

# The coordinator's promises: each is broken once in a journal written by hand, and the story is told.


H = Happening
NAMES = [("source", 0), ("sink", 0)]
SOUND = [
    (H.TRIGGERED, 1, -1),
    (H.ACKNOWLEDGED, 1, 0),
    (H.ACKNOWLEDGED, 1, 1),
    (H.LAST_ACKNOWLEDGED, 1, -1),
    (H.COMPLETED, 1, -1),
]


def journal(rows):
    """(happening, checkpoint, task), a millisecond each."""
    written = Journal()
    for ms, (happening, checkpoint, task) in enumerate(rows):
        written.note(ms * 1_000_000, happening, checkpoint, task)
    return written


def facts(*rows):
    written = journal(rows)
    stats = {n: CheckpointStats(n, 0, tasks=2) for n in range(1, 5)}
    return [violation.fact for violation in coordinator_errors(written, stats, JournalFormatter(written, NAMES))]


def test_ids_that_do_not_grow_are_told():
    """A restart must not use an id again."""
    assert facts((H.TRIGGERED, 2, -1), (H.TRIGGERED, 1, -1)) == ["it is triggered after checkpoint 2"]
    assert facts((H.TRIGGERED, 2, -1), (H.TRIGGERED, 2, -1)) == ["it is triggered after checkpoint 2"]


def test_completion_without_metadata_is_told():
    assert facts(*SOUND[:3], SOUND[4]) == ["it completes although no metadata was written"]


def test_a_second_end_is_told():
    assert facts(*SOUND, (H.ABORTED, 1, -1)) == ["it is aborted after it was completed"]


def test_an_early_notification_is_told():
    """A sink would commit what may still fail."""
    assert facts(*SOUND[:4], (H.NOTIFIED_COMPLETE, 1, -1), SOUND[4]) == [
        "tasks are notified that it is complete, but it is not"
    ]


def test_retention_is_told():
    """More than may be kept, or not the latest: with the completions of those concerned."""
    formatter = JournalFormatter(journal(SOUND), NAMES)

    assert None is too_many_retained((1,), 1, 1, 5, formatter)
    assert None is too_many_retained((), 1, 0, 5, formatter)
    assert too_many_retained((1, 2), 1, 2, 5, formatter).fact == "retained: 1, 2; at most 1 allowed, 2 required"
    assert too_many_retained((), 1, 1, 5, formatter).fact == "retained: none; at most 1 allowed, 1 required"
    assert too_many_retained((), 1, 1, 5, formatter).story == ("0.004000 s  checkpoint 1 is complete",)


def test_the_story_of_retention_tells_of_those_retained_and_the_latest():
    """Not of those that went."""
    formatter = JournalFormatter(journal([(H.COMPLETED, n, -1) for n in (1, 2, 3, 4)]), NAMES)

    story = too_many_retained((2,), 1, 4, 5, formatter).story

    assert [line[12:] for line in story] == ["checkpoint 2 is complete", "checkpoint 4 is complete"]


# Laws 82 and 83: what happens without a JobManager, or for reasons that it cannot know, is told.


LOST, ELECTED = (H.JOB_MANAGER_LOST, -1), (H.JOB_MANAGER_ELECTED, -1)
RESTART, GIVEN_UP, ABORTED, FAILED = (H.JOB_RESTARTING, -1), (H.GIVEN_UP, -1), (H.ABORTED, 1), (H.JOB_FAILED, -1)


def journal_without_leader(*rows):
    """(happening, checkpoint), a millisecond each."""
    written = Journal()
    for ms, (happening, checkpoint) in enumerate(rows):
        written.note(ms * 1_000_000, happening, checkpoint)
    return written


def violations(*rows):
    written = journal_without_leader(*rows)
    return list(without_job_manager(written, JournalFormatter(written, [("source", 0)])))


def counted(*rows, attempts=1, tolerable=1):
    written = journal_without_leader(*rows)
    return [
        row.fact
        for row in restarts_counted_across_leaders(
            written, attempts, tolerable, JournalFormatter(written, [("source", 0)])
        )
    ]


@pytest.mark.parametrize(
    "happening",
    [
        H.TRIGGERED,
        H.ACKNOWLEDGED,
        H.COMPLETED,
        H.NOTIFIED_COMPLETE,
        H.JOB_RESTARTING,
        H.JOB_RESTORED,
        H.JOB_FINISHED,
        H.RESCALED,
        H.GIVEN_UP,
    ],
)
def test_what_only_a_job_manager_can_do_is_told(happening):
    doing = (happening, 1)

    assert violations(doing, LOST, ELECTED, doing) == []
    assert [row.time_ns for row in violations(doing, LOST, doing, ELECTED, doing)] == [1_000_000 * 2]
    assert len(violations(LOST, doing)) == 1, "it need not come back"


def test_what_happens_in_the_instant_of_the_loss_is_let_pass():
    """What was pending is aborted then."""
    written = Journal([row._replace(time_ns=5) for row in journal_without_leader(LOST, (H.TRIGGERED, 1))])

    assert list(without_job_manager(written, JournalFormatter(written, []))) == []


def test_giving_up_for_what_another_one_saw_is_told():
    assert counted(RESTART, GIVEN_UP) == []
    assert counted(RESTART, LOST, ELECTED, RESTART, GIVEN_UP) == ["the restart strategy gives up after 0 restarts of 1"]
    assert counted(RESTART, LOST, ELECTED, RESTART, RESTART, GIVEN_UP) == []
    assert counted(GIVEN_UP, attempts=None) == []


def test_failing_for_checkpoints_of_another_one_is_told():
    assert counted(ABORTED, ABORTED, FAILED) == []
    assert counted(ABORTED, LOST, ELECTED, RESTART, ABORTED, FAILED) == [
        "the job fails after 1 failed checkpoint, 1 may fail"
    ]


# What a person reads: sentences with simulated times, in their order.


STORY_NAMES = [("source", 0), ("sink", 3)]


def test_every_sentence_can_be_told():
    """Templates name only what a row has, and no row is told by numbers alone."""
    for happening in Happening:
        sentence = JournalFormatter([], STORY_NAMES).sentence(Entry(5, happening, 7, 1, 10, "because"))

        assert "{" not in sentence
        assert any(
            noun in sentence
            for noun in ("sink[3]", "checkpoint 7", "because", "snapshot 7", "job", "manager", "Manager", "tasks")
        )


def test_kinds_without_a_sentence_are_told_by_their_name():
    """A new kind of row needs no sentence to appear in a story."""
    unnamed = next(happening for happening in Happening if happening not in SENTENCES)

    assert f"sink[3]: {unnamed.value} (checkpoint 7), 10, why" == JournalFormatter([], STORY_NAMES).sentence(
        Entry(5, unnamed, 7, 1, 10, "why")
    )


def test_a_row_about_no_checkpoint_names_none():
    unnamed = next(happening for happening in Happening if happening not in SENTENCES)

    assert [f"sink[3]: {unnamed.value} (checkpoint 0)", f"sink[3]: {unnamed.value}"] == [
        JournalFormatter([], STORY_NAMES).sentence(Entry(5, unnamed, checkpoint, 1, 0, "")) for checkpoint in (0, -1)
    ]


def test_the_story_of_a_checkpoint_leaves_out_the_others():
    journal = Journal()
    for checkpoint in (1, 2):
        journal.note(checkpoint, Happening.TRIGGERED, checkpoint)
        for task in (0, 1):
            journal.note(checkpoint, Happening.SNAPSHOT_BEGUN, checkpoint, task)

    assert [line[12:] for line in JournalFormatter(journal, STORY_NAMES).about(2, {1})] == [
        "the coordinator triggers checkpoint 2",
        "sink[3] begins snapshot 2",
    ]


def test_stories_are_in_the_order_of_time():
    """A trigger is noted when its id is known and happened before."""
    journal = Journal()
    journal.note(2_000_000_000, Happening.SNAPSHOT_BEGUN, 1, 0)
    journal.note(1_500_000, Happening.TRIGGERED, 1)

    assert JournalFormatter(journal, STORY_NAMES).about(1, {0}) == (
        "0.001500 s  the coordinator triggers checkpoint 1",
        "2.000000 s  source[0] begins snapshot 1",
    )


def test_a_violation_reads_from_fact_to_story():
    violation = Violation("what must hold", 1_500_000, "checkpoint 1", "what holds instead", ("first", "then"))

    assert str(violation) == "0.001500 s  checkpoint 1: what holds instead\n  but: what must hold\n    first\n    then"
