"""What the next incremental snapshot may build upon: the last checkpoint that is complete and known to be."""

from sim.storage.state_files import Handle, Increments


def files(*names):
    return {name: Handle(name, 100, "shared", i) for i, name in enumerate(names)}


def test_there_is_no_base_at_first():
    assert Increments().base == {}


def test_what_is_stored_is_no_base_before_its_notice():
    """Uploaded, acknowledged, perhaps complete: nobody has said so."""
    increments = Increments()
    increments.store(1, files("a"))

    assert increments.base == {}
    increments.notify_complete(1)
    assert files("a") == increments.base


def test_a_failed_checkpoint_is_never_a_base():
    """Its successor builds on the one before."""
    increments = Increments()
    for number, names in ((1, "a"), (2, "ab"), (3, "ac")):
        increments.store(number, files(*names))
    increments.notify_complete(1)
    increments.notify_complete(3)

    assert files("a", "c") == increments.base


def test_an_older_notice_changes_nothing():
    increments = Increments()
    increments.store(1, files("a"))
    increments.store(2, files("b"))
    increments.notify_complete(2)
    increments.notify_complete(1)

    assert files("b") == increments.base


def test_a_savepoint_leaves_the_base_alone():
    """FLINK-23949: it has no files of its own in the list."""
    increments = Increments()
    increments.store(1, files("a"))
    increments.notify_complete(1)
    increments.notify_complete(2)

    assert files("a") == increments.base


def test_a_forgotten_base_is_replaced_by_the_next_one():
    """The next checkpoint uploads everything again; the one after it builds on that."""
    increments = Increments()
    increments.store(1, files("a"))
    increments.notify_complete(1)
    increments.forget()

    assert increments.base == {}
    increments.store(3, files("a"))
    increments.notify_complete(3)
    assert files("a") == increments.base


def test_a_restart_builds_on_what_was_restored():
    increments = Increments()
    increments.store(7, files("a"))
    increments.restart(5, files("b"))

    assert files("b") == increments.base
    increments.restart(5, {})
    assert increments.base == {}
