"""What a job holds, what may be deleted when something of it ends, and the registry of shared files."""

import pytest

from sim.model.storage import StateFile, StoredSnapshot
from sim.protocol.machine import InvalidTransition
from sim.protocol.snapshot_store import (
    DeleteDirectory,
    DeleteSharedFiles,
    FailedOver,
    LoseAcknowledgement,
    SharedStateRegistry,
    SnapshotCompleted,
    SnapshotDiscarded,
    SnapshotStore,
    SnapshotTriggered,
    StateRegistered,
    StoreLost,
)
from tests.protocol.machines import feed_all as feed


def shared(number, checkpoint, instance=0):
    return StateFile(instance, number, checkpoint, "shared", 100)


def private(number, checkpoint, instance=0, scope="exclusive"):
    return StateFile(instance, number, checkpoint, scope, 10)


def lifecycle(checkpoint, *files, type="checkpoint"):  # noqa: A002
    return SnapshotTriggered(checkpoint, type), StateRegistered(checkpoint, files), SnapshotCompleted(checkpoint)


def test_a_subsumed_checkpoint_leaves_what_the_next_one_names():
    """Its directory goes, of the shared files only those nobody names."""
    store, commands = feed(
        SnapshotStore(),
        *lifecycle(1, shared(1, 1), shared(2, 1), private(3, 1)),
        *lifecycle(2, shared(2, 1), shared(4, 2), private(5, 2)),
        SnapshotDiscarded(1),
    )

    assert (DeleteDirectory(1, (private(3, 1),)), DeleteSharedFiles((shared(1, 1),))) == commands
    assert list(store.retained) == [2]
    assert (shared(2, 1), shared(4, 2), private(5, 2)) == store.retained[2].files


def test_another_jobmanager_knows_the_completed_checkpoints_only():
    """What a pending one named stays for ever, also when it names what a completed one brought; that goes when no other names it."""
    store, commands = feed(
        SnapshotStore(),
        *lifecycle(1, shared(1, 1), private(2, 1)),
        SnapshotTriggered(2, "checkpoint"),
        StateRegistered(2, (shared(1, 1), shared(3, 2), private(4, 2))),
        StoreLost(),
    )

    assert commands == ()
    assert ({}, [1], {(0, 1)}) == (store.pending, list(store.retained), set(store.registry.entries))
    _, commands = feed(store, *lifecycle(3, shared(5, 3)), SnapshotDiscarded(1))
    assert (DeleteDirectory(1, (private(2, 1),)), DeleteSharedFiles((shared(1, 1),))) == commands


def test_an_aborted_checkpoint_leaves_its_shared_files():
    """A later checkpoint may build on them; only what lies in its own directory goes."""
    begun, registered = SnapshotTriggered(1, "checkpoint"), StateRegistered(1, (shared(1, 1), private(2, 1)))
    store, commands = feed(SnapshotStore(), begun, registered, SnapshotDiscarded(1))

    assert (DeleteDirectory(1, (private(2, 1),)),) == commands
    assert {(0, 1)} == set(store.registry.entries)


def test_a_late_acknowledgement_registers_what_it_shares():
    """The checkpoint is gone: its private files go, its shared files are registered."""
    store, commands = feed(
        SnapshotStore(),
        SnapshotTriggered(1, "checkpoint"),
        SnapshotDiscarded(1),
        StateRegistered(1, (shared(1, 1), private(2, 1))),
    )

    assert (DeleteDirectory(1, (private(2, 1),)),) == commands
    assert store.registry.entries[0, 1].last_used == 1
    assert store.pending == {}


def test_a_savepoint_is_the_users():
    """Neither retained, nor registered, nor a first full checkpoint."""
    old = StoredSnapshot(0, 3, "checkpoint", (shared(1, 2),))
    store, commands = feed(
        SnapshotStore.restored(1, old, "no-claim"), *lifecycle(4, private(1, 4, 1, "savepoint"), type="native")
    )

    assert commands == ()
    assert list(store.retained) == [3]
    assert [snapshot.checkpoint for snapshot in store.savepoints] == [4]
    assert store.type_for("checkpoint") == "full"


def test_without_a_claim_the_first_checkpoint_is_full():
    """Until one completes; an aborted one does not count."""
    old = StoredSnapshot(0, 3, "checkpoint", (shared(1, 2),))
    store, _ = feed(SnapshotStore.restored(1, old, "no-claim"), SnapshotTriggered(4, "full"), SnapshotDiscarded(4))

    assert store.type_for("checkpoint") == "full"

    store, commands = feed(store, *lifecycle(5, shared(1, 5, 1), type="full"), SnapshotDiscarded(3))

    assert store.type_for("checkpoint") == "checkpoint"
    assert (DeleteDirectory(3, ()),) == commands


@pytest.mark.parametrize(("claim", "type_"), [("no-claim", "full"), ("claim", "checkpoint"), ("legacy", "checkpoint")])
def test_failing_over_to_the_restored_snapshot_needs_a_full_checkpoint_again(claim, type_):
    """Only without a claim; with two retained both may be failed over to."""
    old = StoredSnapshot(0, 3, "checkpoint", (shared(1, 2),))
    store, _ = feed(SnapshotStore.restored(1, old, claim), *lifecycle(4, shared(1, 4, 1), type="full"))

    assert type_ == feed(store, FailedOver(3))[0].type_for("checkpoint")
    assert feed(store, FailedOver(3), FailedOver(4))[0].type_for("checkpoint") == "checkpoint"


def test_a_claimed_checkpoint_is_deleted_when_subsumed():
    """Directory and shared files of a job that no longer exists."""
    old = StoredSnapshot(0, 3, "checkpoint", (shared(1, 2), shared(2, 3), private(3, 3)))
    store, commands = feed(
        SnapshotStore.restored(1, old, "claim"), *lifecycle(4, shared(2, 3), shared(1, 4, 1)), SnapshotDiscarded(3)
    )

    assert (DeleteDirectory(3, (private(3, 3),)), DeleteSharedFiles((shared(1, 2),))) == commands

    _, commands = feed(store, *lifecycle(5, shared(1, 4, 1)), SnapshotDiscarded(4))

    assert (DeleteDirectory(4, ()), DeleteSharedFiles((shared(2, 3),))) == commands


def test_a_claimed_native_savepoint_stays_while_a_file_of_it_is_used():
    """The directory outlives its subsumption, then goes at once."""
    files = (private(1, 3, scope="savepoint"), private(2, 3, scope="savepoint"))
    restored = SnapshotStore.restored(1, StoredSnapshot(0, 3, "native", files), "claim")
    store, commands = feed(restored, *lifecycle(4, files[0]), SnapshotDiscarded(3))

    assert (DeleteDirectory(3, ()),) == commands
    assert list(store.kept_whole) == [3]

    store, commands = feed(store, *lifecycle(5, shared(1, 5, 1)), SnapshotDiscarded(4))

    assert (DeleteDirectory(4, ()), DeleteSharedFiles(files)) == commands
    assert store.kept_whole == {}


@pytest.mark.parametrize("event", [SnapshotCompleted(7), SnapshotDiscarded(7), FailedOver(7)])
def test_what_is_not_held_cannot_end(event):
    with pytest.raises(InvalidTransition, match=r"it is not (retained|pending)"):
        feed(SnapshotStore(), SnapshotTriggered(1, "checkpoint"), event)


def test_a_file_stored_twice_is_missed_by_those_who_build_on_the_first_copy():
    """5 and 6 overlap and store the same table; 7 builds on 5, whose copy goes when 6 completes: the message of 7 comes to nothing."""
    overlapping = (
        SnapshotTriggered(5, "checkpoint"),
        SnapshotTriggered(6, "checkpoint"),
        StateRegistered(5, (shared(1, 5),)),
        StateRegistered(6, (shared(2, 6),)),
        SnapshotCompleted(5),
        SnapshotTriggered(7, "checkpoint"),
        SnapshotCompleted(6),
        SnapshotDiscarded(5),
    )
    store, commands = feed(SnapshotStore(), *overlapping)

    assert (DeleteDirectory(5, ()), DeleteSharedFiles((shared(1, 5),))) == commands

    after, commands = feed(store, StateRegistered(7, (shared(1, 5), shared(3, 7))))

    assert (LoseAcknowledgement(7),) == commands
    assert store == after


def test_a_job_that_begins_from_nothing_takes_ordinary_checkpoints():
    assert SnapshotStore().type_for("checkpoint") == "checkpoint"


def test_what_a_late_acknowledgement_shares_goes_with_the_next_completion():
    """Nobody names it, and what lies below the oldest retained checkpoint had been let go before."""
    late = StateRegistered(1, (shared(1, 1),))
    _, commands = feed(
        SnapshotStore(), SnapshotTriggered(1, "checkpoint"), SnapshotDiscarded(1), *lifecycle(2), late, *lifecycle(3)
    )

    assert (DeleteSharedFiles((shared(1, 1),)),) == commands


@pytest.mark.parametrize(("type_", "numbers"), [("native", (1, 2)), ("canonical", (1,))])
def test_a_claimed_savepoint_goes_as_a_whole(type_, numbers):
    """Its directory stays while one of its files is used, e.g. by a changelog until the state is materialised; no file goes alone."""
    files = tuple(StateFile(0, number, 9, "savepoint", 100) for number in numbers)
    registry = SharedStateRegistry().restored(StoredSnapshot(0, 9, type_, files), "claim").registered(files[:1], 10)

    assert ((), {9}) == registry.released(10)[1:]
    assert ((), set()) == registry.released(10).registry.released(11)[1:]
