"""A scenario that was imported says where it is assumed."""

from sim.model.schema.text import assumptions_note


def test_marks_are_found_wherever_a_comment_begins():
    """At the end of a line and on a line of its own, not inside of a text."""
    text = "a: 1  # UNKNOWN: why?\nb: '#UNKNOWN'\n  # UNKNOWN: what?\n# UNKNOWN\n"

    assert assumptions_note(text) == "2 values are assumed, see UNKNOWN in lines 1, 3"


def test_one_and_none():
    assert assumptions_note("\na: 1 # UNKNOWN: why?") == "1 value is assumed, see UNKNOWN in line 2"
    assert assumptions_note("a: 1  # known") == ""


def test_many_are_counted():
    assert assumptions_note("# UNKNOWN: x\n" * 20) == "20 values are assumed, see UNKNOWN in lines 1, 2, 3, 4, 5, 6 ..."
