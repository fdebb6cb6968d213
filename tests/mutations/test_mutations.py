"""Every rule in the list is held by a named test: break the rule, and the test fails."""

import pytest

from tests.mutations.changes import ROOT, mutants_of
from tests.mutations.rules import RULES
from tests.mutations.runner import FAILED, PASSED, TABLE, mistakes, run
from tests.mutations.score import NO_CONTROL, NOTICED, SURVIVED, equivalents, verdict_of


def test_the_rows_can_be_used():
    """Each text stands in its file once, each break is Python, each test exists."""
    assert [mistake for rule in RULES for mistake in mistakes(rule)] == []


def test_rules_are_told_apart():
    assert len(RULES) == len({rule.rule for rule in RULES})
    assert len(RULES) >= 30


def test_the_table_is_that_of_the_rules():
    """`make mutations` was run after the last change of the list, and no break went unnoticed."""
    rows = [line.split(" | ") for line in TABLE.read_text().splitlines() if line.startswith("| ")][1:]

    assert [rule.rule for rule in RULES] == [row[0].removeprefix("| ") for row in rows]
    assert {"fails |"} == {row[-1] for row in rows}


@pytest.mark.slow
@pytest.mark.nightly
def test_without_a_break_the_tests_pass():
    """A test that fails anyway notices nothing.  The quick suite has run all of them, and one runs in a copy below."""
    assert run(*sorted({rule.test for rule in RULES})) == PASSED


def test_a_rule_that_holds_passes():
    """If the way tests are run were broken, every broken rule would seem to be noticed."""
    assert run(RULES[0].test) == PASSED


def test_a_broken_rule_is_whole_again_for_the_next():
    """All rules are broken in one copy, one after the other."""
    assert run(RULES[0].test, rule=RULES[0]) == FAILED
    assert run(RULES[0].test) == PASSED


def test_a_drawn_change_is_noticed_only_by_tests_that_pass_without_it():
    """The first change of restart strategies; one test that reaches it, one that does not, and one that is not there."""
    mutant = mutants_of(ROOT / "sim" / "protocol" / "recovery.py")[0]
    tests = "tests/protocol/"

    assert verdict_of(mutant, (f"{tests}recovery/test_restart.py",), 60) == NOTICED
    assert verdict_of(mutant, (f"{tests}test_strategies.py",), 60) == SURVIVED
    assert verdict_of(mutant, (f"{tests}test_strategies.py::test_of_nothing",), 60) == NO_CONTROL


def test_every_equivalent_change_has_a_reason():
    assert all(len(reason.split()) > 3 for reason in equivalents().values())


@pytest.mark.slow
def test_equivalent_changes_can_still_be_made():
    """Their text stands where the list says; a row whose text has changed is to be judged anew."""
    files = {file for file, _, _ in equivalents()}
    possible = {mutant.key for file in files if (ROOT / file).exists() for mutant in mutants_of(ROOT / file)}

    assert sorted(set(equivalents()) - possible) == []


# every fourth in `make test-slow`: the table says of all of them that `make nightly` has broken them
@pytest.mark.slow
@pytest.mark.parametrize(
    "rule",
    [pytest.param(rule, marks=pytest.mark.nightly if i % 4 else [], id=rule.rule) for i, rule in enumerate(RULES)],
)
def test_a_broken_rule_is_noticed(rule):
    assert run(rule.test, rule=rule) == FAILED
