"""Breaks the runtime on purpose, once per way a law can be broken, and shows who notices: `python -m tests.invariants.injections`.

Each break is in the runtime or its planes, never in a checker.  Prints breaks by worlds caught, and the shortest story
of each.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from sim.runtime.simulate import simulate
from tests.invariants import injections_of_restores, injections_of_state  # noqa: F401  # each adds its breaks to the list
from tests.invariants.injected_worlds import WORLDS, scenario
from tests.invariants.injection import INJECTIONS, Injection

if TYPE_CHECKING:
    from sim.invariants.violation import Violation


def caught(injection, world):
    """What a broken runtime is found to break; None: the run itself stops with an error, which nobody can miss."""
    with pytest.MonkeyPatch.context() as patch:
        injection.apply(patch)
        try:
            return simulate(scenario(world)).violations
        except (ArithmeticError, AssertionError, LookupError, ValueError):
            return None


def main():
    write = sys.stdout.write
    for world in WORLDS:
        for violation in simulate(scenario(world)).violations:
            write(f"{world}, unbroken: {violation}\n")
    stories: dict[Injection, Violation] = {}
    write(f"| restore path | injected | {' | '.join(WORLDS)} | told as |\n|{'---|' * (3 + len(WORLDS))}\n")
    for injection in INJECTIONS:
        found = {world: caught(injection, world) for world in WORLDS}
        every = [violation for violations in found.values() for violation in violations or ()]
        if every:
            stories[injection] = min(every, key=lambda violation: len(violation.story) or 99)
        counts = " | ".join(
            "error" if violations is None else str(len(violations) or "") for violations in found.values()
        )
        write(
            f"| {injection.path} | {injection.name} | {counts} | {stories[injection].law if every else 'NOBODY NOTICES'} |\n"
        )
        sys.stdout.flush()
    for injection, violation in stories.items():
        write(f"\n{injection.path}: {injection.name}\n{violation}\n")
    return 0 if len(stories) == len(INJECTIONS) else 1


if __name__ == "__main__":
    sys.exit(main())
