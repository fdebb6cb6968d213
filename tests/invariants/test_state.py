"""Stamps of restored state: whose it must be, all of it, once."""

from fractions import Fraction

from sim.invariants.state import RESTORED, RestoredState, Stamp, restored_state_differences, union_errors

OWN, OTHER = Stamp(0, 3, "map", 1), Stamp(1, 2, "map", 0)
ALL, HALF = Fraction(1), Fraction(1, 2)


def facts(*restored_parts, stored=None):
    stored = {"keyed": (OWN, 100)} if stored is None else stored
    found = list(restored_state_differences(7, "restart 1", stored, restored_parts, lambda: ("story",)))

    for violation in found:
        assert (violation.law, violation.time_ns, violation.where, violation.story) == (
            RESTORED,
            7,
            "restart 1",
            ("story",),
        )
    return [violation.fact for violation in found]


def keyed(stamp=OWN, share=ALL, size_bytes=100, copied_from=None):
    return RestoredState("keyed", stamp, share, size_bytes, copied_from)


def test_state_that_is_missing_is_told():
    assert facts() == ["its keyed state is not restored: 100 bytes in the checkpoint"]


def test_state_in_parts_is_told():
    """Half of it, all of it twice, or one whole in two halves: a task that was not rescaled gets its state in one piece."""
    assert facts(keyed(share=HALF)) == ["its keyed state comes back 0.5 times, in 1 part"]
    assert facts(keyed(), keyed()) == ["its keyed state comes back 2 times, in 2 parts"]
    assert facts(keyed(share=HALF), keyed(share=HALF)) == ["its keyed state comes back 1 times, in 2 parts"]


def test_state_of_somebody_else_is_told():
    assert facts(keyed(OTHER)) == [
        "its keyed state is that of map[0] at checkpoint 2 of job 1, the checkpoint holds that of map[1] at checkpoint 3"
    ]


def test_state_of_another_size_is_told():
    assert facts(keyed(size_bytes=99)) == ["its keyed state comes back with 99 bytes, the checkpoint holds 100"]


def test_a_copy_of_something_else_is_told():
    assert facts(keyed(copied_from=("map", 1, 2))) == [
        "its keyed state is read from a local copy of another one, ('map', 1, 2)"
    ]


def test_state_that_no_checkpoint_holds_is_told():
    """Each kind of state on its own."""
    operator = RestoredState("operator", OWN, ALL, 5)

    assert facts(keyed(), operator) == [
        "it gets operator state, that of map[1] at checkpoint 3, and its checkpoint holds none"
    ]
    assert facts(keyed(), operator, stored={"keyed": (OWN, 100), "operator": (OWN, 5)}) == []


def union_facts(*pieces):
    stored = [(OWN, 60), (Stamp(0, 3, "map", 0), 60)]
    found = union_errors(
        7, "restart 1", stored, [RestoredState("union", *piece) for piece in pieces], lambda: ("story",)
    )
    return [violation.fact for violation in found]


def test_union_list_state_comes_back_as_it_was_written_by_all():
    first, second = (OWN, ALL, 60), (Stamp(0, 3, "map", 0), ALL, 60)

    assert union_facts(second, first) == []
    for wrong in (
        [first],
        [first, first],
        [first, second, second],
        [first, (OTHER, ALL, 60)],
        [first, (*second[:1], HALF, 60)],
    ):
        (fact,) = union_facts(*wrong)
        assert fact.endswith("the checkpoint holds 2 parts, 120 bytes")
