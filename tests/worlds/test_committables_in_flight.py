"""Worlds in which barriers overtake committables: Flink's own committer keeps every promise, as it did before FLINK-36287."""

import json

import pytest

from sim.runtime.simulate import simulate
from tests.scenarios import read_scenario
from tests.worlds.generator import document
from tests.worlds.in_flight import in_flight_of


def overtaken(seed):
    """The world of a seed, with barriers that overtake and every transactional sink behind an exchange."""
    world = document(seed)
    for vertex in world["job"].values():
        if (commit := vertex.get("commit", "none")) != "none":
            options = {} if isinstance(commit, str) else {key: value for key, value in commit.items() if key != "emits"}
            vertex["commit"] = options | {"committer": "global", "exchange": "as-job"}
    world["checkpoint"]["barriers"] = {"aligned-timeout": "20 ms"} if seed % 2 else "unaligned"
    return read_scenario(f"# A world?\n{json.dumps(world)}\n")


@pytest.mark.parametrize("seed", [18, 91, 102, 138, 146, 166])
def test_nothing_is_lost_twice_or_too_early(seed):
    """Jobs that end, restart, rescale or begin from another one's snapshot while committables are on their way."""
    result, in_flight = in_flight_of(lambda watch: simulate(overtaken(seed), attach=watch))

    assert in_flight
    assert tuple(result.violations) == ()
