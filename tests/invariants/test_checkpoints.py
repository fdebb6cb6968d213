"""The coordinator's promises: each is broken once in a journal written by hand, and the story is told."""

from sim.invariants.checkpoints import coordinator_errors, too_many_retained
from sim.invariants.violation import JournalFormatter
from sim.results.journal import Happening, Journal
from sim.results.tables import CheckpointStats

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
