"""Conditions: one parser for scenarios, sweeps and expectations."""

import pytest

from sim.model.quantities import parse_condition


@pytest.mark.parametrize("comparison", ["<", "<=", ">", ">=", "==", "!="])
def test_a_comparison_and_its_bound(comparison):
    """Blanks around them do not matter."""
    assert (comparison, "60 s") == parse_condition(f"  {comparison} 60 s ") == parse_condition(f"{comparison}60 s")


@pytest.mark.parametrize("text", ["", "60 s", "<", "<  ", "=> 3", "= 3", "60 s <"])
def test_what_is_no_condition(text):
    assert parse_condition(text) is None


@pytest.mark.parametrize(
    ("comparison", "holding"), [("<", {1}), ("<=", {1, 2}), (">", {3}), (">=", {2, 3}), ("==", {2}), ("!=", {1, 3})]
)
def test_when_it_holds(comparison, holding):
    condition = parse_condition(f"{comparison} 2")

    assert holding == {value for value in (1, 2, 3) if condition.holds(value, 2)}
