"""Writers and committers of transactional sinks, Iceberg's FlinkSink among them: what is committed when, what is lost."""

import pytest

from sim.protocol.commit import (
    CommitEpochs,
    Committable,
    CommittablesReceived,
    Committer,
    CompletionNotified,
    EpochEnded,
    HandOver,
    IcebergCommitter,
    ReportDropped,
    ReportLost,
    Restored,
    SnapshotTaken,
    TaskClosed,
    Writer,
    WriterInputEnded,
    WriterRestored,
)
from sim.protocol.machine import InvalidTransition
from tests.protocol.machines import feed

S = 1_000_000_000


def committable(epoch, writer=0, opened_ns=0):
    return Committable(writer, epoch, ((10 * epoch, 10 * epoch + 10),), opened_ns, 100, (f"{writer}-{epoch}",))


def holding(*committables, timeout_ns=None):
    return feed(Committer(timeout_ns), CommittablesReceived(0, committables))[0]


def test_a_committable_counts_the_records_of_all_its_channels():
    assert Committable(7, 2, ((3, 6), (4, 6)), 0, 100).records == 5


# ---------------------------------------------------------------------------------------------- writer


def test_a_barrier_closes_the_transaction_and_opens_the_next():
    """What was read on each channel since the last barrier is one committable; its file names are chosen before they are written."""
    writer, commands = feed(
        Writer(7, (0, 0)), EpochEnded(5, 1, (3, 4), 700, ("a",)), EpochEnded(9, 2, (3, 6), 200, ("b",))
    )

    assert [
        HandOver(Committable(7, 1, ((0, 3), (0, 4)), 0, 700, ("a",))),
        HandOver(Committable(7, 2, ((3, 3), (4, 6)), 5, 200, ("b",))),
    ] == commands
    assert Writer(7, (3, 6), 9, 2) == writer


def test_a_restored_writer_goes_on_where_its_checkpoint_stood():
    """Records up to there are in other transactions; older checkpoints do not come again."""
    writer, commands = feed(Writer(7, (0, 0), opened_ns=5), WriterRestored(3, (4, 6)), EpochEnded(9, 4, (5, 6), 700))

    assert [HandOver(Committable(7, 4, ((4, 5), (6, 6)), 5, 700))] == commands
    assert writer.last_checkpoint == 4
    with pytest.raises(InvalidTransition):
        feed(Writer(7, (0, 0)), WriterRestored(3, (4, 6)), EpochEnded(9, 3, (5, 6), 700))


def test_the_end_of_the_input_belongs_to_the_next_checkpoint():
    """Whichever that is, the final one covers it; the barrier after it finds nothing more (SinkWriterOperator#endInput)."""
    writer, commands = feed(
        Writer(0, (0,)), EpochEnded(5, 4, (3,), 30), WriterInputEnded(6, (8,), 50), EpochEnded(9, 7, (8,), 0)
    )

    assert [hand_over.committable.epoch for hand_over in commands] == [4, 5]
    assert writer.ended


def test_a_writer_cannot_go_back():
    """Checkpoints increase and the input ends once."""
    writer, _ = feed(Writer(0, (0,)), EpochEnded(5, 4, (3,), 30), WriterInputEnded(6, (8,), 50))

    with pytest.raises(InvalidTransition):
        writer.on(EpochEnded(9, 4, (9,), 1))
    with pytest.raises(InvalidTransition):
        writer.on(WriterInputEnded(9, (9,), 1))


def test_what_is_written_is_not_taken_back():
    """A transaction of fewer records than none would be committed twice by the next one."""
    writer, _ = feed(Writer(0, (3, 8)), EpochEnded(5, 4, (3, 9), 30))

    for event in (EpochEnded(9, 5, (3, 8), 1), WriterInputEnded(9, (2, 9), 1)):
        with pytest.raises(InvalidTransition, match="must not decrease"):
            writer.on(event)


# ---------------------------------------------------------------------------------------------- committer


def test_a_completion_commits_what_it_covers():
    """Epoch 2 waits for its own checkpoint; what is committed is no longer held."""
    first, second = committable(1), committable(2)
    committer, commands = feed(holding(first, second), CompletionNotified(3, 1))

    assert [CommitEpochs(1, (first,))] == commands
    assert (second,) == committer.committables


def test_commits_coalesce():
    """After a lost notification, or an aborted checkpoint, the next completion covers all before it, in order of epochs."""
    late, early = committable(2), committable(1, writer=1)
    _, commands = feed(holding(late, early, committable(4)), CompletionNotified(3, 3))

    assert [CommitEpochs(3, (early, late))] == commands


def test_what_a_snapshot_held_is_committed_again():
    """A restart between completion and commit must not lose it; the external system knows what it has."""
    first, second = committable(1), committable(2)
    committer, commands = feed(holding(committable(5)), Restored(9, 2, (second, first)), CompletionNotified(9, 2))

    assert [CommitEpochs(2, (first, second), again=True)] == commands
    assert committer.committables == ()


def test_a_transaction_open_for_too_long_is_lost():
    """The loss has a name; the younger ones are committed (I.8: the timeout must exceed interval, duration and recovery)."""
    old, young = committable(1, opened_ns=0), committable(2, opened_ns=30 * S)
    _, commands = feed(holding(old, young, timeout_ns=60 * S), CompletionNotified(61 * S, 2))

    assert [ReportLost(2, (old,)), CommitEpochs(2, (young,))] == commands


def test_a_transaction_just_young_enough_is_kept():
    _, commands = feed(holding(committable(1), timeout_ns=60 * S), CompletionNotified(60 * S, 1))

    assert [CommitEpochs(1, (committable(1),))] == commands


def test_a_complete_checkpoint_gets_no_committables():
    """They come before the barrier: whoever sends them later breaks the rule the commit relies on."""
    committer, _ = feed(Committer(), CompletionNotified(3, 2))

    with pytest.raises(InvalidTransition):
        committer.on(CommittablesReceived(4, (committable(2),)))


def test_a_task_that_waits_for_nothing_commits_at_its_end():
    """No checkpoint holds it: commit-at-finish, known to be wrong."""
    committer, commands = feed(holding(committable(3), committable(2)), TaskClosed(9), TaskClosed(10))

    assert [CommitEpochs(0, (committable(2), committable(3)))] == commands
    assert committer.committables == ()


# The committer of Iceberg's FlinkSink: one list of files per checkpoint, set anew by each snapshot.


def files(epoch, writer=0):
    return Committable(writer, epoch, ((10 * epoch, 10 * epoch + 10),), 0, 100)


def received(*committables):
    return CommittablesReceived(0, committables, behind=True)


def visible(commands):
    return [
        committable for command in commands if isinstance(command, CommitEpochs) for committable in command.committables
    ]


def dropped(commands):
    return [
        committable
        for command in commands
        if isinstance(command, ReportDropped)
        for committable in command.committables
    ]


def test_files_behind_the_barrier_replace_those_before_it():
    """apache/iceberg#15846: half of the files of checkpoint 1 came before its snapshot, the other half later, and it has failed."""
    early, late, third = files(1), files(1, writer=1), files(2)
    events = received(early), SnapshotTaken(0, 1), received(late, third), SnapshotTaken(0, 2), CompletionNotified(0, 2)

    _, commands = feed(IcebergCommitter(), *events)
    assert [late, third] == visible(commands)
    assert [early] == dropped(commands)

    _, commands = feed(Committer(), *events)
    assert [early, third, late] == sorted(
        visible(commands), key=lambda committable: (committable.writer, committable.epoch)
    )


def test_files_behind_the_barrier_of_a_complete_checkpoint_are_committed_with_the_next():
    """They are late, and not lost, as long as nothing fails."""
    late = files(1)
    machine, commands = feed(IcebergCommitter(), SnapshotTaken(0, 1), CompletionNotified(0, 1), received(late))
    assert visible(commands) == []

    _, commands = feed(machine, SnapshotTaken(0, 2), CompletionNotified(0, 2))
    assert [late] == visible(commands)


@pytest.mark.parametrize(("newest_commit", "forgotten"), [(0, 0), (1, 1), (2, 2)])
def test_a_restore_takes_older_lists_for_committed(newest_commit, forgotten):
    """It asks the table for its newest commit, which names a checkpoint and no files."""
    lists = files(1), files(2)
    _, commands = feed(IcebergCommitter(), Restored(0, 2, lists, newest_commit))

    assert [*lists[:forgotten]] == dropped(commands)
    assert [*lists[forgotten:]] == visible(commands)


def test_an_older_completion_commits_nothing():
    """Notices may come late, and in any order."""
    machine, _ = feed(IcebergCommitter(), received(files(1)), SnapshotTaken(0, 1), CompletionNotified(0, 2))

    assert (machine, ()) == machine.on(CompletionNotified(0, 1))


def test_a_task_that_waits_for_no_checkpoint_commits_all_that_it_has():
    """Lists and files without one."""
    _, commands = feed(IcebergCommitter(), received(files(1)), SnapshotTaken(0, 1), received(files(2)), TaskClosed(0))

    assert [files(1), files(2)] == visible(commands)


def test_the_committer_of_flink_commits_what_comes_late_at_once():
    """Before FLINK-36379; aligned, a committable behind its completion is a mistake of the model."""
    machine, commands = feed(Committer(), CompletionNotified(0, 1), received(files(1)), received(files(2)))

    assert [CommitEpochs(1, (files(1),))] == commands
    assert (files(2),) == machine.committables

    _, commands = feed(Committer(), Restored(0, 1, ()), received(files(1)))
    # in-flight data of the checkpoint that the job began with
    assert [CommitEpochs(1, (files(1),), again=True)] == commands
