"""Sets of what must come together: how often they are drawn, and that their bugs act."""

import pytest

from sim.model.schema.study import loads
from tests.injections.random_worlds import Trial, noticed_in
from tests.worlds import generator, together
from tests.worlds.draw import Draw
from tests.worlds.generator import FOLDER, document, text

SEEDS = range(12)
BUGS = {
    "an idle source beside an active one": "an idle channel counts",
    "slices behind a restart": "slices are not kept",
    "a new JobManager with few attempts": "a new job manager remembers failures",
    "few attempts": "attempts are not counted",
    "regions": "other regions restart too",
    "ends in turn": "a task restored as finished goes on",
    "a long backlog": "the interval of the backlog is ignored",
    "a rescale with in-flight data": "in flight data is not read by a rescaled task",
    "savepoints of shared tables": "a savepoint shares tables",
    "local copies on a machine that is lost": "a lost disk is read",
}
"""What is drawn together -> a bug that needs it."""


@pytest.fixture
def only(monkeypatch):
    """Every world gets this set."""

    def give(name):
        monkeypatch.setattr(generator, "draw_together", lambda seed, world: together.TOGETHER[name](Draw(seed), world))

    return give


def test_one_world_in_four_has_a_set(monkeypatch):
    """All others are what they are without sets."""
    mixed = [document(seed) for seed in range(400)]
    monkeypatch.setattr(together, "SHARE", 0)
    changed = sum(world != document(seed) for seed, world in enumerate(mixed))

    assert 70 <= changed <= 120


@pytest.mark.parametrize("name", together.TOGETHER)
def test_worlds_with_a_set_can_be_read(name, only):
    only(name)

    assert all(len(loads(text(seed), folder=FOLDER).scenarios) == 1 for seed in SEEDS)


@pytest.mark.parametrize("name", together.TOGETHER)
def test_a_set_lets_its_bug_be_noticed(name, only):
    """In one of a few worlds; alone it would take hundreds."""
    only(name)

    assert any(found.noticed for seed in SEEDS for found in noticed_in(Trial(seed, 1, (BUGS[name],))))
