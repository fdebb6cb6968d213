"""The page of what runs cost says what the history of benchmarks says, and no aim that is missed passes for kept."""

from benchmarks.measure import HISTORY
from benchmarks.performance import BEGIN, CASES, PAGE, block, replaced

TEXT = HISTORY.read_text()


def test_the_tables_of_the_page_are_those_of_the_history():
    """`python -m benchmarks.performance --write` was called after the last measurement."""
    page = PAGE.read_text()

    assert replaced(page, block(TEXT)) == page
    assert page.count(BEGIN) == 1


def test_every_whole_run_of_the_benchmark_is_on_the_page():
    assert [case for case in CASES if f"| {case} |" not in PAGE.read_text()] == []
