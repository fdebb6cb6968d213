"""The committer of Iceberg's FlinkSink: one list of files per checkpoint, set anew by each snapshot."""

import pytest

from sim.protocol.commit import (
    CommitEpochs,
    Committable,
    CommittablesReceived,
    Committer,
    CompletionNotified,
    IcebergCommitter,
    ReportDropped,
    Restored,
    SnapshotTaken,
    TaskClosed,
)
from tests.protocol.machines import feed as fed


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


def test_before_the_barrier_all_files_of_a_checkpoint_are_one_list():
    """Aligned: nothing comes behind the barrier, and an aborted checkpoint is committed with the next one."""
    first, second, third = files(1), files(1, writer=1), files(2)
    _, commands = fed(
        IcebergCommitter(),
        received(first, second),
        SnapshotTaken(0, 1),
        received(third),
        SnapshotTaken(0, 2),
        CompletionNotified(0, 2),
    )

    assert [first, second, third] == visible(commands)
    assert dropped(commands) == []


def test_files_behind_the_barrier_replace_those_before_it():
    """apache/iceberg#15846: half of the files of checkpoint 1 came before its snapshot, the other half later, and it has failed."""
    early, late, third = files(1), files(1, writer=1), files(2)
    events = received(early), SnapshotTaken(0, 1), received(late, third), SnapshotTaken(0, 2), CompletionNotified(0, 2)

    _, commands = fed(IcebergCommitter(), *events)
    assert [late, third] == visible(commands)
    assert [early] == dropped(commands)

    _, commands = fed(Committer(), *events)
    assert [early, third, late] == sorted(
        visible(commands), key=lambda committable: (committable.writer, committable.epoch)
    )


def test_files_behind_the_barrier_of_a_complete_checkpoint_are_committed_with_the_next():
    """They are late, and not lost, as long as nothing fails."""
    late = files(1)
    machine, commands = fed(IcebergCommitter(), SnapshotTaken(0, 1), CompletionNotified(0, 1), received(late))
    assert visible(commands) == []

    _, commands = fed(machine, SnapshotTaken(0, 2), CompletionNotified(0, 2))
    assert [late] == visible(commands)


@pytest.mark.parametrize(("newest_commit", "forgotten"), [(0, 0), (1, 1), (2, 2)])
def test_a_restore_takes_older_lists_for_committed(newest_commit, forgotten):
    """It asks the table for its newest commit, which names a checkpoint and no files."""
    lists = files(1), files(2)
    _, commands = fed(IcebergCommitter(), Restored(0, 2, lists, newest_commit))

    assert [*lists[:forgotten]] == dropped(commands)
    assert [*lists[forgotten:]] == visible(commands)


def test_an_older_completion_commits_nothing():
    """Notices may come late, and in any order."""
    machine, _ = fed(IcebergCommitter(), received(files(1)), SnapshotTaken(0, 1), CompletionNotified(0, 2))

    assert (machine, ()) == machine.on(CompletionNotified(0, 1))


def test_a_task_that_waits_for_no_checkpoint_commits_all_that_it_has():
    """Lists and files without one."""
    _, commands = fed(IcebergCommitter(), received(files(1)), SnapshotTaken(0, 1), received(files(2)), TaskClosed(0))

    assert [files(1), files(2)] == visible(commands)


def test_the_committer_of_flink_commits_what_comes_late_at_once():
    """Before FLINK-36379; aligned, a committable behind its completion is a mistake of the model (see test_sink.py)."""
    machine, commands = fed(Committer(), CompletionNotified(0, 1), received(files(1)), received(files(2)))

    assert [CommitEpochs(1, (files(1),))] == commands
    assert (files(2),) == machine.committables

    _, commands = fed(Committer(), Restored(0, 1, ()), received(files(1)))
    # in-flight data of the checkpoint that the job began with
    assert [CommitEpochs(1, (files(1),), again=True)] == commands
