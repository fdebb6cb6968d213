"""Which tests are asked about a change, and in which lines it is drawn."""

import random

from tests.mutations.alone import Price, cheapest_first, drawn_for, runners
from tests.mutations.changes import ROOT, mutants_of
from tests.mutations.touched import AT_IMPORT, Ran, Touched, functions_of

FILE = "sim/model/units.py"
NAME = "parse_duration"
FIRST = functions_of(ROOT / FILE)[NAME]
LINES = sorted({mutant.line - FIRST.first for mutant in mutants_of(ROOT / FILE) if mutant.where == NAME})


def reached(lines):
    """`lines`: line from the first of the function -> tests."""
    tests = sorted({test for of_line in lines.values() for test in of_line} - {AT_IMPORT})
    return Touched(
        {test: float(i) for i, test in enumerate(tests)}, {(FILE, NAME): Ran({FIRST.text}, lines)}, {FILE: tests}
    )


def test_changes_are_drawn_where_fewest_tests_run():
    line, *others = LINES
    places = runners(reached({line: ["a", "c"], **{other: ["a", "b", "c"] for other in others}}))

    assert (FILE, NAME, line) == places["a"][0] == places["c"][0]
    assert (FILE, NAME, line) not in places["b"]
    drawn = drawn_for(places["c"], 2, random.Random(1), {})
    assert len(drawn) == 2
    assert {NAME} == {mutant.where for mutant in drawn}


def test_what_runs_at_import_is_left_out():
    assert runners(reached({LINES[0]: [AT_IMPORT, "a"]})) == {}


def test_cheaper_tests_are_asked_first_and_the_dear_one_last():
    mutant = next(mutant for mutant in mutants_of(ROOT / FILE) if mutant.where == NAME)
    request = cheapest_first(mutant, reached({mutant.line - FIRST.first: ["a", "b", "c", "d"]}), "c")

    assert request.tests == ["a", "b", "c"]


def test_a_price_is_per_second():
    assert Price("a", 4.0, 8, 6, 2).per_second == 0.5
