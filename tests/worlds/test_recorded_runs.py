"""Runs of known worlds are what they were, to the byte."""

import json

import pytest

from tests.worlds.recorded_runs import RECORDED, WORLDS, compute_digests

RECORDS = json.loads(RECORDED.read_text())


def differing_tables(world):
    digests = compute_digests(world)
    return sorted(name for name in digests | RECORDS[world] if digests.get(name) != RECORDS[world].get(name))


@pytest.mark.parametrize(
    "world", [pytest.param(world, marks=[pytest.mark.slow] if index % 3 else []) for index, world in enumerate(WORLDS)]
)
def test_a_run_is_what_it_was(world):
    """If it was meant to change: `python -m tests.worlds.recorded_runs`, and look at `git diff` for worlds that were not meant."""
    assert differing_tables(world) == []
