"""Runtimes that are broken on purpose, in worlds that go where the break is: how many of them do the checkers notice?"""

from contextlib import nullcontext

from tests.injections.restores import INJECTIONS
from tests.worlds.events import movable

BROKEN = {injection.name: injection for injection in INJECTIONS}
"""Each break by its name."""


def broken(name):
    """The runtime is broken inside; with a name that is no break it is not."""
    return BROKEN[name].applied() if name in BROKEN else nullcontext()


def suit(name, world):
    """Make the world go through the broken path."""
    least, job = BROKEN[name].world, world["job"]
    if "rescale" in least:
        names = [vertex for vertex in job if movable(job[vertex])]
        if "rescale" not in world and names:
            _drop(world, "instances", "actions")
            world["rescale"] = {
                "at": "700 ms",
                "parallelism": {names[0]: 1 if job[names[0]].get("parallelism", 1) > 1 else 2},
            }
            job[names[0]].pop("max-parallelism", None)
    elif "instances" in least:
        _drop(world, "rescale", "actions")
        world["instances"] = {"count": 2, "claim": "claim"}
        world["run"]["duration"] = "2 s"
    else:
        world["faults"] = [*world.get("faults", []), {"kill": "random-task", "at": "700 ms"}]


def _drop(world, *keys):
    for key in keys:
        world.pop(key, None)
