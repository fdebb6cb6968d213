"""Splits of a source: who owns them, and what a checkpoint holds of that."""

from sim.protocol.regional import SplitEnumerator, Splits

READERS = (3, 4)


def after(*steps):
    """An enumerator after these steps: a number of discoveries, or (method, arguments ...)."""
    enumerator = SplitEnumerator(READERS)
    for step in steps:
        if isinstance(step, int):
            for _ in range(step):
                enumerator = enumerator.discover()
        else:
            name, *given = step
            enumerator = getattr(enumerator, name)(*given)
    return enumerator


def test_splits_go_to_the_readers_in_turn():
    assert after(3).live == Splits(3, (), {3: (0, 2), 4: (1,)})


def test_a_checkpoint_holds_what_was_at_its_trigger():
    state = after(2, ("trigger", 1), 2).checkpoints[1]

    assert [state.owners(split) for split in range(4)] == [[3], [4], [], []]


def test_a_failed_region_keeps_what_it_had_and_the_rest_goes_back():
    """Split 2 is read on by 3, and the enumerator has it as well; split 3 is in neither state."""
    enumerator = after(2, ("trigger", 1), 1, ("trigger", 2), 1, ("fall_back", 2, 1, {3}))
    state = enumerator.checkpoints[2]

    assert [state.owners(split) for split in range(4)] == [[3], [4], [-1], []]
    assert enumerator.live.owners(2) == [3, -1]


def test_what_goes_back_does_so_once():
    enumerator = after(
        2, ("trigger", 1), 1, ("trigger", 2), ("fall_back", 2, 1, {3}), ("trigger", 3), ("fall_back", 3, 2, {3})
    )

    assert enumerator.live.unassigned == (2,)


def test_a_reader_that_restarts_gives_back_what_its_checkpoint_does_not_hold():
    enumerator = SplitEnumerator(READERS).discover().trigger(1).complete(1).discover().discover()

    assert enumerator.restore(1, {3}, resets=False).live == Splits(3, (2,), {3: (0,), 4: (1,)})
    assert enumerator.restore(1, READERS, resets=True).live == Splits(1, (), {3: (0,)})


def test_completions_cut_what_can_go_back():
    enumerator = after(2, ("trigger", 1), 1, ("trigger", 2), ("complete", 2), 1)

    assert [row.split for row in enumerator.tracked] == [3]
