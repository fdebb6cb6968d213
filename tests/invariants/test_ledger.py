"""The account no restore touches: counts since the last start, added to where a task stood at the cut it went back to."""

import numpy as np

from sim.invariants.counts import Ledger, RecordTally

SOURCE, SINK = 0, 1


def pair():
    """A source, a sink, one channel."""
    nothing, channel = np.zeros(0, np.int64), np.zeros(1, np.int64)
    return Ledger.opened([nothing, channel], [channel, nothing], 1)


def tally(served, read, written, known=(True, True)):
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
    ledger.restart_at(ledger.of(1), tally([10, 9], 9, 10))
    stands = ledger.stands(tally([13, 9], 9, 13))

    assert parts(stands) == ([10, 6], [6], [10])
    assert noted(ledger, 2, SOURCE, 13, 13)[0] == 10


def test_only_the_tasks_started_go_back():
    ledger = pair()
    ledger.restart_at(ledger.of(0), tally([10, 9], 9, 10, known=(True, False)))
    stands = ledger.stands(tally([10, 9], 9, 10))

    assert parts(stands) == ([0, 9], [9], [0])
