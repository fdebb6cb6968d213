"""How often bugs are noticed in random worlds, among those that call the broken function."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import NamedTuple

from tests.injections.catalogue import INJECTIONS
from tests.injections.injection import verdict
from tests.worlds.draw import Draw
from tests.worlds.generator import document

__all__ = ["Noticed", "Rate", "Trial", "noticed_in", "sums"]


class Trial(NamedTuple):
    """A random world, and how many of these bugs are tried in it."""

    seed: int
    most: int
    names: tuple[str, ...]


class Noticed(NamedTuple):
    """A bug in a random world that calls the broken function."""

    name: str
    noticed: bool


@dataclass(slots=True)
class Rate:
    tried: int = 0
    noticed: int = 0

    def __str__(self) -> str:
        return f"{self.noticed}/{self.tried}"


def noticed_in(trial: Trial) -> list[Noticed]:
    """The world runs once as it is: that says which functions it calls.  Then it runs with some of the bugs."""
    world = document(trial.seed)
    bugs = [INJECTIONS[name] for name in trial.names]
    with ExitStack() as stack:
        called = {bug.name: stack.enter_context(bug.applied(broken=False)) for bug in bugs if not bug.reference}
        if verdict(world).noticed:
            return []
    met = [bug for bug in bugs if bug.reference or called[bug.name].yes]
    chosen = Draw(trial.seed).sample(met, min(trial.most, len(met)))
    return [Noticed(bug.name, bug.verdict(world).noticed) for bug in chosen]


def sums(found: Iterable[list[Noticed]]) -> dict[str, Rate]:
    rates: dict[str, Rate] = {}
    for row in (row for rows in found for row in rows):
        rate = rates.setdefault(row.name, Rate())
        rate.tried += 1
        rate.noticed += row.noticed
    return rates
