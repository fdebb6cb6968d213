"""Bugs as data: each least world is clean without its bug, goes where the bug is, and shows it."""

import pytest

from sim.model.schema.text import write
from sim.runtime.simulate import simulate
from tests.injections.catalogue import INJECTIONS
from tests.injections.injection import judged
from tests.injections.random_worlds import Noticed, Rate, Trial, noticed_in, sums, table
from tests.injections.restoring_worlds import WORLDS
from tests.oracle import oracle
from tests.places import DATA
from tests.scenarios import read_scenario

LEAST = {(write(bug.world, "A world."), bug.reference): bug.name for bug in INJECTIONS.values()}
RESTORES = [bug.name for bug in INJECTIONS.values() if bug.part == "restores"]
SAMPLE = sorted({*RESTORES, "foreign key groups are restored", *sorted(INJECTIONS)[::6]})


def run(text, *, reference=False):
    scenario = read_scenario(text, folder=DATA / "worlds")
    return simulate(scenario, engine=oracle if reference else "compiled")


@pytest.mark.parametrize(("text", "reference"), LEAST, ids=LEAST.values())
def test_least_worlds_are_clean(text, reference):
    """Without its bug nothing is said of a world, and something happens in it."""
    result = run(text, reference=reference)

    assert judged(result).kind == ""
    assert len(result.checkpoints) > 0


@pytest.mark.parametrize("name", WORLDS)
def test_worlds_of_restores_restore_and_are_clean(name):
    """From a checkpoint, not from the beginning."""
    result = run(write(WORLDS[name], "A world."))

    assert judged(result).kind == ""
    assert len(result.recoveries) >= 1
    assert result.recoveries["restored_checkpoint"].gt(0).all()
    assert result.recoveries["restored_bytes"].gt(0).all()


@pytest.mark.parametrize("name", SAMPLE)
def test_a_bug_is_noticed_in_its_least_world(name):
    bug = INJECTIONS[name]

    assert bug.verdict(bug.world).noticed


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(INJECTIONS) - set(SAMPLE)))
def test_every_bug_is_noticed_in_its_least_world(name):
    bug = INJECTIONS[name]

    assert bug.verdict(bug.world).noticed


def test_there_are_bugs_of_every_room():
    """Sixty at least, and each part has several."""
    parts = [bug.part for bug in INJECTIONS.values()]

    assert len(INJECTIONS) >= 60
    assert all(parts.count(part) >= 5 for part in parts)


def test_a_bug_counts_in_random_worlds_where_it_acts():
    """World 1 commits, and nothing stops it: the function of both bugs is called there, and one of them changes the run."""
    found = noticed_in(Trial(1, 2, ("every stop drains", "transactions are not recognised")))

    assert [Noticed("transactions are not recognised", True)] == found


def test_rates_are_a_table():
    bugs = [INJECTIONS[name] for name in ("nothing is deleted", "shared files stay")]
    rates = sums([[Noticed("nothing is deleted", True)], [Noticed("nothing is deleted", False)]])

    assert table(bugs, rates)[2:] == ["| files | nothing is deleted | 1/2 |", "| files | shared files stay | 0/0 |"]
    assert str(Rate()) == "0/0"
