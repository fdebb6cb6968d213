"""Words put together."""

import pytest

from sim.model.text import capitalised, listed


@pytest.mark.parametrize(
    ("names", "expected"), [([], ""), (["a"], "a"), (["a", "b"], "a and b"), (["a", "b", "c"], "a, b and c")]
)
def test_names_are_listed(names, expected):
    assert expected == listed(names)


def test_only_the_beginning_changes():
    assert tuple(map(capitalised, ("rocksDB and S3", "'sink' waits", ""))) == ("RocksDB and S3", "'sink' waits", "")
