"""Runtimes that are broken on purpose, in worlds that go where the break is: how many of them do the checkers notice?"""

from contextlib import contextmanager

import pytest

from tests.invariants.injections import INJECTIONS
from tests.worlds.events import movable

BROKEN = {f"{injection.path}: {injection.name}": injection for injection in INJECTIONS}
"""Each break by its name."""


@contextmanager
def broken(name):
    """The runtime is broken inside; with a name that is no break it is not."""
    with pytest.MonkeyPatch.context() as patch:
        if name in BROKEN:
            BROKEN[name].apply(patch)
        yield


def suit(name, world):
    """Make the world go through the broken path."""
    path, job = BROKEN[name].path, world["job"]
    if path == "rescale":
        names = [vertex for vertex in job if movable(job[vertex])]
        if "rescale" not in world and names:
            _drop(world, "instances", "actions")
            world["rescale"] = {
                "at": "700 ms",
                "parallelism": {names[0]: 1 if job[names[0]].get("parallelism", 1) > 1 else 2},
            }
            job[names[0]].pop("max-parallelism", None)
        return
    if path == "next job":
        _drop(world, "rescale", "actions")
        world["instances"] = {"count": 2, "claim": "claim"}
        world["run"]["duration"] = "2 s"
        return
    world["faults"] = [*world.get("faults", []), {"kill": "random-task", "at": "700 ms"}]
    if path == "local recovery":
        world["checkpoint"]["local-recovery"] = True
    if path == "changelog":
        for vertex in job.values():
            if "state" in vertex:
                vertex["state"].setdefault("changelog", "on")
        if "instances" in world:
            world["instances"]["claim"] = "claim"  # no-claim needs a full checkpoint, which a changelog never takes


def _drop(world, *keys):
    for key in keys:
        world.pop(key, None)
