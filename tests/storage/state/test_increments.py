"""What the next incremental snapshot may build upon: the last checkpoint that is complete and known to be."""

from sim.storage.state_files import Handle, Increments


def files(*names):
    return {name: Handle(name, 100, "shared", i) for i, name in enumerate(names)}


def test_a_failed_checkpoint_is_never_a_base():
    """Its successor builds on the one before."""
    increments = Increments()
    for number, names in ((1, "a"), (2, "ab"), (3, "ac")):
        increments.store(number, files(*names))
    increments.notify_complete(1)
    increments.notify_complete(3)

    assert files("a", "c") == increments.base


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
