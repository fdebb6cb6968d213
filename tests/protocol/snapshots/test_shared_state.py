"""The registry of shared files: last use decides, ownership limits, whole directories of claimed native savepoints."""

import pytest

from sim.model.storage import StateFile, StoredSnapshot
from sim.protocol.snapshot_store import SharedFile, SharedStateRegistry


def shared(number, *, instance=0, checkpoint=1):
    return StateFile(instance, number, checkpoint, "shared", 100)


def numbers(released):
    return [file.number for file in released.files]


def test_the_newest_naming_counts():
    """Naming a file again moves its last use, not its creator; late acknowledgements never move it back."""
    registry = (
        SharedStateRegistry()
        .registered([shared(1), shared(2)], 5)
        .registered([shared(1)], 7)
        .registered([shared(1)], 6)
    )

    assert SharedFile(shared(1), 5, 7) == registry.entries[0, 1]
    assert SharedFile(shared(2), 5, 5) == registry.entries[0, 2]


def test_what_was_last_used_before_the_lowest_retained_goes():
    """Not what the lowest retained itself names."""
    registry = SharedStateRegistry().registered([shared(1), shared(2)], 5).registered([shared(2)], 6)

    assert numbers(registry.released(5)) == []
    assert numbers(registry.released(6)) == [1]
    assert {(0, 2)} == set(registry.released(6).registry.entries)
    assert numbers(registry.released(7)) == [1, 2]


def test_files_of_a_failed_checkpoint_go_with_the_next_one_retained():
    """Nobody counts references: an aborted checkpoint's files wait until a newer one is the lowest."""
    registry = (
        SharedStateRegistry()
        .registered([shared(1)], 4)
        .registered([shared(2, checkpoint=5)], 5)
        .registered([shared(1)], 6)
    )

    assert numbers(registry.released(4)) == []
    assert numbers(registry.released(6)) == [2]


def test_a_restored_snapshot_that_was_not_claimed_is_never_touched():
    """Its files leave the registry; they stay where they are."""
    old = StoredSnapshot(0, 9, "checkpoint", (shared(1, checkpoint=3),))
    for claim in ("no-claim", "legacy"):
        registry = SharedStateRegistry().restored(old, claim).registered([shared(1, instance=1, checkpoint=10)], 10)

        assert registry.highest_not_claimed == 9
        assert numbers(registry.released(10)) == []
        assert {(1, 1)} == set(registry.released(10).registry.entries)


def test_claimed_files_go_like_ones_own():
    """Whoever wrote them: created by the restored checkpoint, as far as this job is concerned."""
    old = StoredSnapshot(0, 9, "checkpoint", (shared(1, checkpoint=3), StateFile(0, 2, 9, "exclusive", 100)))
    registry = SharedStateRegistry().restored(old, "claim")

    assert SharedFile(shared(1, checkpoint=3), 9, 9) == registry.entries[0, 1]
    assert {(0, 1)} == set(registry.entries)
    assert numbers(registry.released(10)) == [1]


@pytest.mark.parametrize(("type_", "numbers"), [("native", (1, 2)), ("canonical", (1,))])
def test_a_claimed_savepoint_goes_as_a_whole(type_, numbers):
    """Its directory stays while one of its files is used, e.g. by a changelog until the state is materialised; no file goes alone."""
    files = tuple(StateFile(0, number, 9, "savepoint", 100) for number in numbers)
    registry = SharedStateRegistry().restored(StoredSnapshot(0, 9, type_, files), "claim").registered(files[:1], 10)

    assert ((), {9}) == registry.released(10)[1:]
    assert ((), set()) == registry.released(10).registry.released(11)[1:]
