"""What a person reads: sentences with simulated times, in their order."""

from sim.invariants.violation import SENTENCES, JournalFormatter, Violation
from sim.results.journal import Entry, Happening, Journal

NAMES = [("source", 0), ("sink", 3)]


def test_every_sentence_can_be_told():
    """Templates name only what a row has, and no row is told by numbers alone."""
    for happening in Happening:
        sentence = JournalFormatter([], NAMES).sentence(Entry(5, happening, 7, 1, 10, "because"))

        assert "{" not in sentence
        assert any(
            noun in sentence
            for noun in ("sink[3]", "checkpoint 7", "because", "snapshot 7", "job", "manager", "Manager", "tasks")
        )


def test_kinds_without_a_sentence_are_told_by_their_name():
    """A new kind of row needs no sentence to appear in a story."""
    unnamed = next(happening for happening in Happening if happening not in SENTENCES)

    assert f"sink[3]: {unnamed.value} (checkpoint 7), 10, why" == JournalFormatter([], NAMES).sentence(
        Entry(5, unnamed, 7, 1, 10, "why")
    )


def test_a_row_about_no_checkpoint_names_none():
    unnamed = next(happening for happening in Happening if happening not in SENTENCES)

    assert [f"sink[3]: {unnamed.value} (checkpoint 0)", f"sink[3]: {unnamed.value}"] == [
        JournalFormatter([], NAMES).sentence(Entry(5, unnamed, checkpoint, 1, 0, "")) for checkpoint in (0, -1)
    ]


def test_the_story_of_a_checkpoint_leaves_out_the_others():
    journal = Journal()
    for checkpoint in (1, 2):
        journal.note(checkpoint, Happening.TRIGGERED, checkpoint)
        for task in (0, 1):
            journal.note(checkpoint, Happening.SNAPSHOT_BEGUN, checkpoint, task)

    assert [line[12:] for line in JournalFormatter(journal, NAMES).about(2, {1})] == [
        "the coordinator triggers checkpoint 2",
        "sink[3] begins snapshot 2",
    ]


def test_stories_are_in_the_order_of_time():
    """A trigger is noted when its id is known and happened before."""
    journal = Journal()
    journal.note(2_000_000_000, Happening.SNAPSHOT_BEGUN, 1, 0)
    journal.note(1_500_000, Happening.TRIGGERED, 1)

    assert JournalFormatter(journal, NAMES).about(1, {0}) == (
        "0.001500 s  the coordinator triggers checkpoint 1",
        "2.000000 s  source[0] begins snapshot 1",
    )


def test_a_violation_reads_from_fact_to_story():
    violation = Violation("what must hold", 1_500_000, "checkpoint 1", "what holds instead", ("first", "then"))

    assert str(violation) == "0.001500 s  checkpoint 1: what holds instead\n  but: what must hold\n    first\n    then"
