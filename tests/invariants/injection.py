"""A break of the runtime as a value, and the list of all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.invariants.injected_worlds import WORLDS

Patch = pytest.MonkeyPatch


@dataclass(frozen=True, slots=True)
class Injection:
    name: str  # what goes wrong
    path: str  # of the restore
    apply: Callable[[Patch], None]
    own_world: str = ""  # if the path does not say it

    @property
    def world(self):
        """One in which it must be noticed."""
        own = {"rescale": "rescaled", "next job": "claimed", "local recovery": "aligned, local copies"}
        return self.own_world or own.get(self.path, self.path if self.path in WORLDS else "unaligned")


INJECTIONS: list[Injection] = []


def injection(path, name, world=""):
    def add(apply):
        INJECTIONS.append(Injection(name, path, apply, world))
        return apply

    return add


def around(patch, owner, name, change):
    """`change` gets what the function returns, and its arguments."""
    original = getattr(owner, name)

    def changed(*args, **kwargs):
        return change(original(*args, **kwargs), *args)

    patch.setattr(owner, name, changed)
