"""Every feature meets every fault in some random world; what a run says of faults is counted with it."""

import pytest

from tests.worlds.generator import document
from tests.worlds.nightly import Task, run
from tests.worlds.pairs import FAULTS, FEATURES, MET, Pairs, faults_of, features_of
from tests.worlds.tally import Tally


@pytest.fixture(scope="module")
def pairs():
    pairs = Pairs()
    for seed in range(5000):
        world = document(seed)
        pairs.add(features_of(world), faults_of(world))
    return pairs


def test_no_pair_is_empty(pairs):
    """A feature that never meets a fault is not tested with it."""
    assert pairs.empty == []


def test_no_feature_and_no_fault_is_in_all_worlds(pairs):
    """One that every world has would say nothing about pairs."""
    assert all(0 < sum(pairs.counts[feature, fault] for fault in FAULTS) < 5000 * len(FAULTS) for feature in FEATURES)


def test_an_empty_pair_is_told():
    pairs = Pairs()
    pairs.add({"sessions"}, {"a task fails"})

    assert ("sessions", "a task fails") not in pairs.empty
    assert len(FEATURES) * len(FAULTS) - 1 == len(pairs.empty)
    assert any(line.startswith("in no world: ") for line in pairs.lines())


def test_what_happened_in_a_run_is_counted():
    """Declined or expired checkpoints and exhausted restarts are known when a world has run."""
    tally = Tally()
    for seed in range(100, 112):
        tally.add(run(Task(seed)))

    assert any(tally.pairs.counts[feature, what] for feature in FEATURES for what in MET)
