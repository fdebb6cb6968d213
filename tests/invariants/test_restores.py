"""Restores: the latest completed checkpoint is where they go back to, and what its cut held twice is told as an effect."""

from sim.invariants.recovery import Surplus, restore_errors
from sim.invariants.violation import JournalFormatter
from sim.results.journal import Happening, Journal

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
