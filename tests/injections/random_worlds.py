"""How often bugs are noticed in random worlds, among those where they act: the run is another one than without the bug."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import NamedTuple

from tests.injections.catalogue import INJECTIONS
from tests.injections.injection import ran
from tests.worlds.draw import Draw
from tests.worlds.generator import document
from tests.worlds.trial import differences

LEAST_CPU_S = 3
"""A broken run hangs that takes longer than this, and twenty times as long as without its bug."""


class Trial(NamedTuple):
    """A random world, and how many of these bugs are tried in it."""

    seed: int
    most: int
    names: tuple[str, ...]


class Noticed(NamedTuple):
    """A bug in a random world where it acts."""

    name: str
    noticed: bool


@dataclass(slots=True)
class Rate:
    tried: int = 0
    noticed: int = 0

    def __str__(self):
        return f"{self.noticed}/{self.tried}"


def noticed_in(trial):
    """The world runs once as it is: that says which functions it calls.  Then it runs with some of the bugs.

    A bug whose run comes out the same to the byte has not acted, and does not count.
    """
    world = document(trial.seed)
    bugs = [INJECTIONS[name] for name in trial.names]
    with ExitStack() as stack:
        began = time.process_time()
        called = {bug.name: stack.enter_context(bug.applied(broken=False)) for bug in bugs if not bug.reference}
        sound, result = ran(world)
        if sound.noticed or result is None:
            return []
        most_cpu_s = max(LEAST_CPU_S, 20 * (time.process_time() - began))
    met = [bug for bug in bugs if bug.reference or called[bug.name].yes]
    chosen = Draw(trial.seed).sample(met, min(trial.most, len(met)))
    found = []
    for bug in chosen:
        with bug.applied():
            broken, other = ran(world, reference=bug.reference, most_cpu_s=most_cpu_s)
        if broken.noticed or other is None or differences(result, other):
            found.append(Noticed(bug.name, broken.noticed))
    return found


def sums(found):
    rates = {}
    for row in (row for rows in found for row in rows):
        rate = rates.setdefault(row.name, Rate())
        rate.tried += 1
        rate.noticed += row.noticed
    return rates


def table(bugs, rates):
    """Markdown: a row for each bug."""
    rows = [f"| {bug.part} | {bug.name} | {rates.get(bug.name, Rate())} |" for bug in bugs]
    return ["| part | bug | noticed / worlds where it acts |", "|---|---|---|", *rows]
