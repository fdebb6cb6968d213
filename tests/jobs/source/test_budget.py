"""What JSON would take is known before it is parsed, and never too little."""

import json

import pytest

from sim.jobs.source.recorded_job import VALUE_BYTES, Budget, BudgetError


def test_a_budget_is_for_all_that_is_read():
    """What is read again counts once."""
    content = b"[" + b"[]," * 1000 + b"1]"
    purse = Budget(3 * (len(content) + 2001 * VALUE_BYTES))  # brackets and commas
    for _ in range(10):
        purse.parse(content, "again")
    purse.parse(content, "b")
    purse.parse(content, "c")
    with pytest.raises(BudgetError, match="of memory, with what was read before"):
        purse.parse(content, "d")


def test_what_stands_in_texts_counts_as_text():
    """Brackets and commas of the plan of a query neither nest nor weigh."""
    text = json.dumps(["[{," * 1000, '\\"[' * 1000]).encode()

    assert len(Budget(10 * len(text)).parse(text, "x")) == 2


@pytest.mark.parametrize("content", [b"[" * 101 + b"]" * 101, b'{"a":' * 101 + b"1" + b"}" * 101, b"[" * 500_000])
def test_depth_has_an_end(content):
    with pytest.raises(BudgetError, match="nested more than 100 levels"):
        Budget().parse(content, "x")
