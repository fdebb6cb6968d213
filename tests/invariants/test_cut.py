"""A consistent cut: what adds up is silent; what is lost, held twice or dealt out wrongly is told in a story."""

from fractions import Fraction

import numpy as np
import pytest

from sim.invariants.counts import Ledger, RecordTally
from sim.invariants.cuts import UNKNOWN, Cuts
from sim.invariants.state import RestoredState, Shape, Stamp, redistribution_errors, state_redistribution_errors
from sim.invariants.violation import JournalFormatter
from sim.results.journal import Happening, Journal

# The arithmetic of a consistent cut: what adds up is silent, what is lost or held twice is told in a story.


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


# A checkpoint dealt out to another parallelism: sums where subtasks differ in number, each on its own where they do not.


def shape(sources, sinks):
    """Two vertices, all to all."""
    tasks = np.arange(sources), np.arange(sources, sources + sinks)
    return Shape(("source", "sink"), tasks, ((0, 1),), (np.arange(sources * sinks),))


def tally(served, read, written, late=None):
    return RecordTally(
        *(np.array(column) for column in (served, late or [0] * len(served), read, written)), np.ones(len(served), bool)
    )


def facts(old, new):
    return [violation.fact for violation in redistribution_errors(5, "restart", old, new)]


TWO = shape(1, 2), tally([9, 4, 3], [4, 3], [5, 4])  # two records in flight
THREE = shape(1, 3)


def test_a_vertex_that_keeps_its_tasks_keeps_them_one_by_one():
    """The first subtask that differs is told."""
    assert facts(TWO, (TWO[0], tally([9, 3, 4], [4, 3], [5, 4]))) == [
        "4 records are served by sink in the checkpoint, 3 in the new tasks (task 0)",
    ]
    assert facts(TWO, (TWO[0], tally([9, 4, 2], [4, 3], [5, 4]))) == [
        "3 records are served by sink in the checkpoint, 2 in the new tasks (task 1)",
    ]


def test_of_a_vertex_with_other_tasks_the_sum_counts():
    forgetful = THREE, tally([9, 3, 3, 0], [0, 0, 0], [1, 1, 0])

    assert facts(TWO, forgetful) == ["7 records are served by sink in the checkpoint, 6 in the new tasks"]


def test_what_is_in_flight_is_dealt_too():
    assert facts(TWO, (THREE, tally([9, 3, 3, 1], [0, 0, 0], [1, 0, 0]))) == [
        "2 records are in flight between source and sink in the checkpoint, 1 in the new channels"
    ]


def test_streams_that_stay_are_compared_channel_by_channel():
    assert facts(TWO, (TWO[0], tally([9, 4, 3], [4, 2], [6, 4]))) == [
        "5 records are written between source and sink in the checkpoint, 6 in the new channels (channel 0)",
        "3 records are read between source and sink in the checkpoint, 2 in the new channels (channel 1)",
    ]


def test_shapes_are_compared_by_their_numbers():
    assert TWO[0].channels_alike(shape(2, 1))
    assert not TWO[0].channels_alike(THREE)
    assert [set(), {1}] == [TWO[0].resized(other) for other in (shape(1, 2), THREE)]


FIRST, SECOND = Stamp(0, 1, "map", 0), Stamp(0, 1, "map", 1)


def dealt(*subtasks):
    """Each subtask: (stamp, share) ..."""
    restored_parts = [
        [RestoredState("keyed", stamp, Fraction(share), 10) for stamp, share in several] for several in subtasks
    ]
    return [
        violation.fact
        for violation in state_redistribution_errors(5, "restart", "map", {"keyed": (FIRST, SECOND)}, restored_parts)
    ]


def test_shares_of_state_add_up_to_one():
    assert dealt([(FIRST, "1/2")], [(FIRST, "1/2"), (SECOND, 1)]) == []
    assert dealt([(FIRST, "1/2"), (SECOND, 1)]) == ["0.5 times the keyed state of map[0] at checkpoint 1 comes back"]
    assert dealt([(FIRST, 1)], [(FIRST, 1)]) == [
        "2 times the keyed state of map[0] at checkpoint 1 comes back (and 1 more of map)"
    ]


def test_state_of_nobody_is_told():
    assert dealt([(FIRST, 1), (SECOND, 1), (Stamp(0, 1, "map", 5), 1)]) == [
        "1 times the keyed state of map[5] at checkpoint 1 comes back"
    ]


# The account no restore touches: counts since the last start, added to where a task stood at the cut it went back to.


SOURCE, SINK = 0, 1


def pair():
    """A source, a sink, one channel."""
    nothing, channel = np.zeros(0, np.int64), np.zeros(1, np.int64)
    return Ledger.opened([nothing, channel], [channel, nothing], 1)


def tally_of_ledger(served, read, written, known=(True, True)):
    return RecordTally(np.array(served), np.zeros(2, np.int64), np.array([read]), np.array([written]), np.array(known))


def parts(stands):
    return stands.served.tolist(), stands.read.tolist(), stands.written.tolist()


def noted(ledger, checkpoint, task, served, *records):
    read, written = [list(records), []] if task == SINK else [[], list(records)]
    return ledger.note(checkpoint, task, served, 0, np.array(read, np.int64), np.array(written, np.int64))


def test_behind_a_restart_only_what_is_counted_leads_on():
    """Ten served, back to the cut at seven, three served again: the task stands at ten."""
    ledger = pair()
    noted(ledger, 1, SOURCE, 7, 7)
    noted(ledger, 1, SINK, 6, 6)
    ledger.restart_at(ledger.of(1), tally_of_ledger([10, 9], 9, 10))
    stands = ledger.stands(tally_of_ledger([13, 9], 9, 13))

    assert parts(stands) == ([10, 6], [6], [10])
    assert noted(ledger, 2, SOURCE, 13, 13)[0] == 10


def test_only_the_tasks_started_go_back():
    ledger = pair()
    ledger.restart_at(ledger.of(0), tally_of_ledger([10, 9], 9, 10, known=(True, False)))
    stands = ledger.stands(tally_of_ledger([10, 9], 9, 10))

    assert parts(stands) == ([0, 9], [9], [0])
