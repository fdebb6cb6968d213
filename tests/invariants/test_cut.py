"""The arithmetic of a consistent cut: what adds up is silent, what is lost or held twice is told in a story."""

import pytest

from sim.invariants.cuts import UNKNOWN, Cuts
from sim.invariants.violation import JournalFormatter
from sim.results.journal import Happening, Journal

NAMES = [("source", 0), ("source", 1), ("sink", 0)]
ACCOUNT = "bytes sent before the barrier: 500; consumed before the reader's snapshot 400, captured at the reader 50, captured at the writer 10"
ENDS = [(0, 2), (1, 2)]  # two channels into one sink


def broken(cuts, *, exactly_once=True):
    return cuts.violation(3, 9_000_000, JournalFormatter(journal(), NAMES), exactly_once=exactly_once)


def journal():
    rows = Journal()
    rows.note(1_000_000, Happening.TRIGGERED, 3)
    rows.note(2_000_000, Happening.SNAPSHOT_BEGUN, 3, 0)
    rows.note(3_000_000, Happening.BARRIER_FORWARDED, 3, 0, 10)
    rows.note(3_500_000, Happening.SNAPSHOT_BEGUN, 3, 1)
    rows.note(4_000_000, Happening.SNAPSHOT_BEGUN, 3, 2)
    rows.note(5_000_000, Happening.SNAPSHOT_BEGUN, 4, 2)
    return rows


def cuts(*channels):
    """Checkpoint 3; per channel what was written, consumed, captured at the reader and at the writer."""
    rows = Cuts(*zip(*ENDS[: len(channels)], strict=True))
    cut = rows.of(3)
    for channel, (written, consumed, captured_input, captured_output) in enumerate(channels):
        cut.written[channel], cut.consumed[channel] = written, consumed
        cut.captured_input[channel], cut.captured_output[channel] = captured_input, captured_output
    return rows


def test_loss_is_told():
    """40 of 500 bytes are nowhere: where they went missing, who took part and when, and the account."""
    violation = broken(cuts((500, 400, 50, 10)))

    assert (
        violation.where,
        violation.fact,
        violation.time_ns,
    ) == ("checkpoint 3, channel source[0] -> sink[0]", "40 bytes are lost", 9_000_000)
    assert violation.story == (
        "0.001000 s  the coordinator triggers checkpoint 3",
        "0.002000 s  source[0] begins snapshot 3",
        "0.003000 s  source[0] writes barrier 3 to its outputs, overtaking 10 bytes",
        "0.004000 s  sink[0] begins snapshot 3",
        ACCOUNT,
    ), "nothing of the other source, nor of another checkpoint"


def test_loss_is_told_at_least_once_too():
    """At least once allows duplicates, never losses."""
    assert broken(cuts((500, 460, 0, 0)), exactly_once=False).fact == "40 bytes are lost"


def test_duplication_is_told():
    """30 bytes are in the snapshot and in the in-flight data."""
    assert broken(cuts((500, 480, 50, 0))).fact == "30 bytes are held twice"


def test_duplication_is_allowed_at_least_once():
    assert None is broken(cuts((500, 530, 0, 0)), exactly_once=False)


@pytest.mark.parametrize(
    ("known", "missing"), [((500, UNKNOWN), "reader"), ((UNKNOWN, 500), "writer"), ((UNKNOWN, UNKNOWN), "writer")]
)
def test_half_a_cut_is_told(known, missing):
    """A checkpoint must not complete before both ends of a channel took part: silence would pass for a proof."""
    violation = broken(cuts((*known, 0, 0)))

    assert f"it completed although the {missing} took no part" == violation.fact
    assert "not known" in violation.story[-1]


def test_losses_are_told_before_duplicates():
    """A loss here does not make up for a duplicate there; one story, the others are counted."""
    violation = broken(cuts((100, 190, 0, 0), (100, 95, 0, 0)))

    assert (violation.where, violation.fact) == (
        "checkpoint 3, channel source[1] -> sink[0]",
        "5 bytes are lost (and 1 more channel)",
    )


def test_what_is_forgotten_is_gone():
    """Checkpoints that can neither complete nor be restored any more."""
    rows = cuts((100, 100, 0, 0))
    rows.of(4)
    rows.forget(lambda number: number <= 3)

    assert list(rows.of_checkpoint) == [4]


def test_cuts_compare_by_value():
    assert cuts((5, 5, 0, 0)).of(3) == cuts((5, 5, 0, 0)).of(3)
    assert cuts((5, 5, 0, 0)).of(3) != cuts((5, 4, 1, 0)).of(3)


def test_one_byte_is_enough():
    assert broken(cuts((500, 501, 0, 0))).fact == "1 byte is held twice"
    assert broken(cuts((500, 499, 0, 0))).fact == "1 byte is lost"


def test_half_a_cut_is_told_at_least_once_too():
    assert (
        broken(cuts((UNKNOWN, 500, 0, 0)), exactly_once=False).fact == "it completed although the writer took no part"
    )


def test_what_a_cut_holds_twice_and_not_at_all_is_counted_apart():
    """Over all channels; with the account of the worst one."""
    twice, lost, channel, account = cuts((100, 101, 0, 0), (100, 97, 0, 0)).worst(3)

    assert (twice, lost, channel) == (1, 3, 1)
    assert account.startswith("bytes sent before the barrier: 100; consumed before the reader's snapshot 97")
    assert None is cuts((100, 90, 10, 0)).worst(3)
