"""What JSON would take is known before it is parsed, and never too little."""

import json
import sys

import pytest

from sim.jobs.source import recorded_job
from sim.jobs.source.recorded_job import Budget, BudgetError


def size(value):
    """The bytes of a JSON value and its parts, as Python counts them."""
    inner = [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list) else ()
    return sys.getsizeof(value) + sum(map(size, inner))


@pytest.mark.parametrize(
    "content",
    [
        "[" + "[]," * 999 + "1]",
        "[" + "{}," * 999 + "1]",
        "[" + "[[[[1]]]]," * 999 + "1]",
        "[" + '{"a":{"a":{}}},' * 999 + "1]",
        json.dumps({f"{i:x}": i for i in range(1000)}),
        json.dumps([{f"{i:x}": 1.5} for i in range(1000)]),
        json.dumps([str(i) for i in range(1000)]),
        json.dumps(["a" * 1000 + "\U0001f600"]),
        json.dumps(["a" * 1000 + "\U0001f600"], ensure_ascii=False),
        "[" + "1.5," * 999 + "1]",
    ],
    ids=[
        "lists",
        "objects",
        "lists in lists",
        "objects in objects",
        "keys",
        "small objects",
        "texts",
        "escaped",
        "wide",
        "numbers",
    ],
)
def test_no_json_takes_more_than_is_estimated(content):
    """One of each kind that is small to write and large to hold."""
    text = content.encode()
    estimate = Budget()
    value = estimate.parse(text, "x")

    assert size(value) < estimate.bytes_by_place["x"] + 200


def test_a_budget_is_for_all_that_is_read():
    """What is read again counts once."""
    content = b"[" + b"[]," * 1000 + b"1]"
    purse = Budget(3 * recorded_job._bytes(content))
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


def test_usual_depth_is_no_matter():
    assert Budget().parse(b"[" * 100 + b"]" * 100, "x")
    assert Budget().parse(json.dumps([[], []] * 500).encode(), "x") == [[], []] * 500
