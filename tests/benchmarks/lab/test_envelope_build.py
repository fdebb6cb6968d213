"""The committed envelope is what the recordings give, and the docs show it."""

import json
from collections import Counter

import pandas as pd
import pytest

from benchmarks.lab.envelope import FOLDERS, PAGE, made
from benchmarks.lab.envelope_build import Judged, block, document, envelope_text
from sim.jobs.evidence.envelope import FILE, features, recorded_values, unvalidated
from sim.jobs.evidence.prediction import scenario_of
from sim.jobs.reading import read_any

POINTS = 0.02
"""A median or a 90 % quantile may move by so much (share) before the file has to be written anew: `make envelope`."""


def row(recording, quantity, error):
    """One vertex of one recording."""
    return (recording, "shuffle", quantity, "sink", 1.0, 1.0, 1.0, 1.0, 1 + error, 1.0, error, True)


def judged(name, errors, **values):
    columns = "recording family quantity vertex observed_p10 observed_p50 observed_p90 predicted_p10 predicted_p50 predicted_p90"
    table = pd.DataFrame(
        [row(name, "latency", error) for error in errors], columns=[*columns.split(), "relative_error", "covered"]
    )
    return Judged(name, "shuffle", values, table)


def test_errors_are_medians_over_recordings_that_have_the_value():
    """Each recording has the median of its vertices; 0.1 and 0.3 of two give 0.2 and a 90 % quantile of 0.28."""
    both = [
        judged("a", [0.0, 0.1, 0.9], parallelism=(2, 4), barriers=("aligned",)),
        judged("b", [-0.3], parallelism=(4,)),
    ]
    recorded = document(both)["features"]

    assert recorded["parallelism"]["4"] == {"recordings": 2, "errors": {"latency": [2, 0.2, 0.28]}}
    assert (
        {"recordings": 1, "errors": {"latency": [1, 0.1, 0.1]}}
        == recorded["parallelism"]["2"]
        == recorded["barriers"]["aligned"]
    )


def test_what_is_written_is_what_is_read():
    given = document([judged("a", [0.1], parallelism=(2,), barriers=("aligned",))])
    text = envelope_text(given)

    assert given == json.loads(text)
    assert "| shuffle (1) | – |" in block(given)
    assert "* parallelism: 2\n" in block(given)


def test_the_readme_shows_the_file():
    assert block(json.loads(FILE.read_text())) in PAGE.read_text()


@pytest.mark.slow
def test_the_file_counts_the_recordings():
    """Without simulating: which values of which features how many have; none lies outside of what is said of all of them."""
    scenarios = [scenario_of(read_any(path)) for folder in FOLDERS for path in folder.glob("*.json.gz")]
    found = [features(scenario) for scenario in scenarios]
    counted = {name: Counter(value for values in found for value in values[name]) for name in found[0]}

    assert unvalidated(scenarios) == []
    assert {name: list(values) for name, values in recorded_values().items()} == {
        name: sorted(values) for name, values in counted.items() if values
    }


def leaves(tree, path=()):
    """(path, number) of all numbers in a document."""
    if isinstance(tree, int | float):
        yield path, tree
    for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree if isinstance(tree, list) else ()):
        yield from leaves(value, (*path, key))


@pytest.mark.slow
def test_the_file_is_what_the_recordings_give():
    """Every count, and every error to `POINTS`."""
    known = dict(leaves(json.loads(FILE.read_text())))

    assert dict(leaves(json.loads(made()))) == pytest.approx(known, abs=POINTS)
