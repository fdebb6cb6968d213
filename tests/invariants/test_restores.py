"""Restores, and what a restart brings back, held against the ledger."""

from dataclasses import replace

import numpy as np
import pytest

from sim.invariants.counts import (
    Ledger,
    RecordTally,
    Written,
    lost_pending_outputs,
    output_errors,
    position_errors,
    snapshot_position_error,
    unread_records,
    up_to,
)
from sim.invariants.recovery import Surplus, restore_errors
from sim.invariants.violation import JournalFormatter
from sim.results.journal import Happening, Journal

# Restores: the latest completed checkpoint is where they go back to, and what its cut held twice is told as an effect.


H = Happening
NAMES = [("source", 0), ("sink", 0)]


def journal(*rows):
    """(happening, checkpoint, task, number), a millisecond each."""
    written = Journal()
    for ms, (happening, checkpoint, task, number) in enumerate(rows):
        written.note(ms * 1_000_000, happening, checkpoint, task, number)
    return written


def violations(*rows, surpluses=None, savepoints=()):
    written = journal(*rows)
    return list(restore_errors(written, surpluses or {}, savepoints, JournalFormatter(written, NAMES)))


def facts(*rows, surpluses=None):
    return [violation.fact for violation in violations(*rows, surpluses=surpluses)]


FIRST, SECOND = (H.COMPLETED, 1, -1, 0), (H.COMPLETED, 2, -1, 0)
FAILURE = (H.TASK_FAILED, -1, 1, 0)


def restored(checkpoint, number=1):
    return (H.JOB_RESTORED, checkpoint, -1, number)


def test_an_older_checkpoint_is_told():
    (violation,) = violations(FIRST, SECOND, FAILURE, restored(1))

    assert (violation.where, violation.fact) == ("restart 1", "checkpoint 1 is restored, the latest completed one is 2")
    assert violation.story[2] == "0.002000 s  sink[0] fails: "


def test_an_incomplete_checkpoint_is_told():
    assert facts(FIRST, FAILURE, restored(2)) == ["checkpoint 2 is restored, the latest completed one is 1"]
    assert facts(FIRST, FAILURE, restored(0)) == ["checkpoint 0 is restored, the latest completed one is 1"]


def test_what_a_cut_does_not_hold_is_never_processed():
    surpluses = {1: Surplus(5, 10, (0, 1), "")}

    assert facts(FIRST, FAILURE, restored(1), surpluses=surpluses) == [
        "5 bytes are processed twice and 10 bytes are never processed"
    ]


def test_a_single_byte_is_told_and_none_is_not():
    for surplus, fact in (((1, 0), "1 byte is processed twice"), ((0, 1), "1 byte is never processed")):
        assert [fact] == facts(FIRST, FAILURE, restored(1), surpluses={1: Surplus(*surplus, (0, 1), "")})


def test_the_story_of_a_restore_is_the_cut_of_its_channel_the_failure_and_the_restart():
    """Nothing of other checkpoints, of other tasks, of other kinds, nor of what came after the restart."""
    written = Journal()
    for ms, row in enumerate(
        [
            (H.TRIGGERED, 1, -1),
            (H.SNAPSHOT_BEGUN, 1, 0),
            (H.SNAPSHOT_BEGUN, 1, 2),
            (H.ACKNOWLEDGED, 1, 0),
            FIRST[:3],
            (H.TRIGGERED, 2, -1),
            FAILURE[:3],
            restored(1)[:3],
        ]
    ):
        written.note(ms * 1_000_000, *row)
    written.note(7_000_000, H.SNAPSHOT_BEGUN, 1, 1)
    written.note(8_000_000, H.SNAPSHOT_BEGUN, 1, 1)
    formatter = JournalFormatter(written, [*NAMES, ("other", 0)])
    (violation,) = restore_errors(written, {1: Surplus(1, 0, (0, 1), "account")}, (), formatter)

    assert violation.story == (
        "0.000000 s  the coordinator triggers checkpoint 1",
        "0.001000 s  source[0] begins snapshot 1",
        "0.004000 s  checkpoint 1 is complete",
        "0.006000 s  sink[0] fails: ",
        "0.007000 s  restart 0 deploys its tasks with the state of checkpoint 1 (0: none, from the beginning)",
        "0.007000 s  sink[0] begins snapshot 1",
        "source[0] -> sink[0]: account",
    )


def test_what_a_cut_holds_twice_is_processed_twice():
    """Once for each restore from it, with the failure before it and not the one before that."""
    surpluses = {1: Surplus(30, 0, (0, 1), "of 70 bytes 100 were consumed")}
    first, second = violations(
        FIRST, FAILURE, restored(1), (H.TASK_MANAGER_LOST, -1, -1, 7), restored(1, 2), surpluses=surpluses
    )

    assert first.fact == "30 bytes are processed twice"
    assert first.story[-1] == "source[0] -> sink[0]: of 70 bytes 100 were consumed"
    assert [line[12:] for line in second.story[:-1]] == [
        "checkpoint 1 is complete",
        "task manager 7 is lost",
        "restart 2 deploys its tasks with the state of checkpoint 1 (0: none, from the beginning)",
    ]


# What a restart brings back is held against the ledger: every kind of difference is told, with its effect.


NOTHING, CHANNEL = np.zeros(0, np.int64), np.zeros(1, np.int64)


def journal_of_returns():
    rows = Journal()
    for ms, (happening, checkpoint, task) in enumerate(
        [
            (Happening.TRIGGERED, 3, -1),
            (Happening.SNAPSHOT_BEGUN, 3, 0),
            (Happening.COMPLETED, 3, -1),
            (Happening.TASK_FAILED, -1, 1),
            (Happening.JOB_RESTORED, 3, -1),
        ]
    ):
        rows.note(ms * 1_000_000, happening, checkpoint, task, 1)
    return rows


def tally(served=(20, 15), late=(0, 0), read=15, written=20):
    return RecordTally(
        *(np.array(column, np.int64) for column in (served, late, [read], [written])), np.ones(2, np.bool_)
    )


def violations_of_returns(stands, *, input_differs=False):
    rows, ledger = journal_of_returns(), Ledger.opened([NOTHING, CHANNEL], [CHANNEL, NOTHING], len(CHANNEL))
    return list(
        position_errors(rows[-1], ledger, tally(), stands, JournalFormatter(rows, NAMES), input_differs=input_differs)
    )


@pytest.mark.parametrize(
    ("stands", "where", "fact"),
    [
        (
            tally(served=(25, 15)),
            "source[0]",
            "it goes on with record 25, its checkpoint holds 20: 5 records are never emitted",
        ),
        (
            tally(served=(15, 15)),
            "source[0]",
            "it goes on with record 15, its checkpoint holds 20: 5 records are emitted again",
        ),
        (
            tally(served=(20, 16)),
            "sink[0]",
            "it goes on after record 16, its checkpoint holds everything up to record 15",
        ),
        (tally(late=(0, 2)), "sink[0]", "2 records are waiting for outputs, 0 in its checkpoint"),
        (
            tally(read=16),
            "sink[0]",
            "it goes on with record 16 of an input, its checkpoint holds 15: 1 record is never read",
        ),
        (
            tally(read=12),
            "sink[0]",
            "it goes on with record 12 of an input, its checkpoint holds 15: 3 records are read again",
        ),
        (tally(written=22), "source[0]", "it goes on with record 22 of an output, in its checkpoint it had written 20"),
    ],
)
def test_who_stands_elsewhere_is_told(stands, where, fact):
    (violation,) = violations_of_returns(stands)

    assert (f"{where}, restart 1 from checkpoint 3", fact, 4_000_000) == (
        violation.where,
        violation.fact,
        violation.time_ns,
    )
    assert "0.003000 s  sink[0] fails: " in violation.story
    assert ("0.001000 s  source[0] begins snapshot 3" in violation.story) == (where == "source[0]"), (
        "only what the task itself did"
    )


def test_what_a_cut_does_to_inputs_is_told_once():
    """By those who judge cuts."""
    assert violations_of_returns(tally(read=12), input_differs=True) == []
    assert len(violations_of_returns(tally(read=12, served=(25, 15)), input_differs=True)) == 1


def test_others_are_counted():
    assert "(and 1 more)" in violations_of_returns(replace(tally(), late=np.array([1, 1])))[0].fact


def test_a_wrong_note_is_told():
    violation = snapshot_position_error(9, 3, 0, "it says so", JournalFormatter(journal_of_returns(), NAMES))

    assert (violation.where, violation.fact, violation.time_ns) == ("snapshot 3 of source[0]", "it says so", 9)


def facts_of_returns(check, *arguments):
    return [violation.fact for violation in check(9, *arguments, JournalFormatter([], NAMES))]


@pytest.mark.parametrize(
    ("num", "den", "per_channel", "expected_output"),
    [(1, 1, False, 20), (3, 2, False, 30), (1, 3, False, 6), (2, 1, True, 40)],
)
def test_every_record_served_leaves_its_outputs(num, den, per_channel, expected_output):
    """On all channels together, or on each of a broadcast: one channel here."""

    def found(more, uncounted=0):
        written = tally(written=expected_output + more)
        return facts_of_returns(
            output_errors, [Written(0, CHANNEL, num, den, per_channel)], written, [uncounted], "at the end"
        )

    assert found(0) == found(4, uncounted=4) == []
    assert [f"it should hold {expected_output} records and holds {expected_output - 1} (at the end)"] == found(-1)


def test_late_records_have_left_nothing_yet():
    output = Written(0, CHANNEL, 1, 1, per_channel=False)

    assert facts_of_returns(output_errors, [output], tally(late=(3, 0), written=17), [0], "") == []


def test_a_finished_job_has_read_everything():
    """What was written, and what its sources have."""

    def unread(tally, total):
        return facts_of_returns(unread_records, [(0, 1)], tally, [(0, total)])

    assert unread(tally(read=20), 20) == []
    assert unread(tally(), 20) == ["20 records are written and 15 read, on 1 channel"]
    assert unread(tally(read=20), 25) == ["it has 25 records and has emitted 20, each counted once"]


@pytest.mark.parametrize(
    ("read", "written_at_cut", "channel", "told"),
    [
        (15, 15, True, []),
        (15, 12, True, []),
        (18, 16, True, []),
        (15, 16, True, ["16 records are written and 15 read, on 1 channel"]),
        (15, 15, False, ["20 records are written and 15 read, on 1 channel"]),
    ],
)
def test_what_comes_behind_a_cut_may_be_read_or_not(read, written_at_cut, channel, told):
    """The job was stopped without a drain."""
    expected = up_to(tally(read=read), tally(written=written_at_cut), np.array([channel]))

    assert told == facts_of_returns(unread_records, [(0, 1)], expected, [])


def test_answers_that_came_too_late_are_told():
    """Only of tasks that made requests."""
    (violation,) = lost_pending_outputs(9, [0, 1], tally(late=(0, 3)), JournalFormatter(journal_of_returns(), NAMES))

    assert violation.where == "an output of sink[0]"
    assert "3 records are lost" in violation.fact
    assert list(lost_pending_outputs(9, [0], tally(late=(0, 3)), JournalFormatter(journal_of_returns(), NAMES))) == []
