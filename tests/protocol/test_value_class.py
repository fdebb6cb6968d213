"""Values of a value class: equal by their fields, usable as keys, without other attributes, read-only for the type checker."""

import pytest

from sim.protocol.machine import value_class


@value_class
class Lamp:
    lit: bool
    watts: int = 5


def test_equal_values_are_one_key():
    assert {Lamp(lit=True): "on"} == {Lamp(True, 5): "on"}


def test_there_are_no_other_fields():
    with pytest.raises(AttributeError):
        Lamp(lit=True).colour = "red"


def test_the_type_checker_refuses_assignments():
    """mypy reads this mark; before Python 3.12 it stands among other arguments."""
    mark = value_class.__dataclass_transform__

    assert True is (mark | mark["kwargs"])["frozen_default"]
