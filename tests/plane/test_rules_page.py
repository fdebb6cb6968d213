"""The page of the rules, the seam that names them and the tests that hold them go together."""

import inspect
import re
from pathlib import Path

from sim.plane import interface

PAGE = Path(interface.__file__).parent / "RULES.md"
RULES = re.findall(r"^- \*\*([A-Z]\d+)\*\* ", PAGE.read_text(), re.MULTILINE)
LETTERS = "".join(dict.fromkeys(rule[0] for rule in RULES))
CITED = rf"\b[{LETTERS}][1-9]\d?\b"
# Tests name a rule in front of what must hold.  These are held by tests that name what happens instead.
HELD_BY_OTHER_NAMES = {
    "N1",
    "N3",
    "N4",  # every row number that a test states
    "L1",
    "L2",
    "L3",
    "L4",
    "L5",
    "L6",
    "L7",
    "L8",
    "L9",  # test_rules_late.py
    "C1",  # every capture in test_rules_markers.py
    "W2",  # every draw that a test states
}


def test_rules_are_numbered_without_gaps():
    """Per letter 1, 2, 3, ..., each once."""
    for letter in LETTERS:
        numbers = [int(rule[1:]) for rule in RULES if rule[0] == letter]

        assert list(range(1, len(numbers) + 1)) == numbers, letter


def test_the_seam_cites_rules_that_exist():
    """A comment such as `# M1` leads to the page."""
    cited = {rule for module in (interface, interface) for rule in re.findall(CITED, inspect.getsource(module))}

    assert "M1" in cited
    assert set() == cited - set(RULES)


def test_the_page_cites_rules_that_exist():
    """Rules refer to each other."""
    assert set() == set(re.findall(CITED, PAGE.read_text())) - set(RULES)


def test_every_rule_has_a_test_of_its_name():
    """test_O4_... holds rule O4."""
    names = re.findall(
        r"def test_((?:[A-Z]\d+_)+)",
        "\n".join(path.read_text() for path in Path(__file__).parent.glob("test_rules_*.py")),
    )
    tested = {rule for name in names for rule in name.strip("_").split("_")}

    assert set() == tested - set(RULES)
    assert sorted(HELD_BY_OTHER_NAMES) == sorted(set(RULES) - tested)
