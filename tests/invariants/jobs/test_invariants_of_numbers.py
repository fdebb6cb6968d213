"""The invariants have numbers, and every number has a test that carries it."""

import re
from pathlib import Path

TESTS = Path(__file__).parents[2]
INVARIANTS = {*range(1, 42), *range(60, 63), *range(65, 77), *range(81, 85)}
"""41 on protocols, those on a backlog, edges, windows, idle sources, a job without a JobManager and a changelog in memory.

Numbers between are invariants on what is not modelled yet.
"""


def numbers(name):
    """``test_invariants_02_03_and_05_on_whole_runs`` -> {2, 3, 5}."""
    found = re.match(r"test_invariants?_((?:\d\d_(?:and_)?)+)", name)
    return set(map(int, re.findall(r"\d\d", found[1]))) if found else set()


def test_every_invariant_has_a_test():
    """Each of them, and no test carries another number."""
    names = (
        name
        for path in TESTS.rglob("test_*.py")
        for name in re.findall(r"def (test_invariants?_\w+)", path.read_text())
    )
    tested = set().union(*map(numbers, names))

    assert tested == INVARIANTS


def test_numbers_are_read_off_names():
    assert {2, 3, 5} == numbers("test_invariants_02_03_and_05_on_whole_runs")
    assert {41} == numbers("test_invariant_41_same_seed_same_run")
    assert set() == numbers("test_lawful_things_2")
