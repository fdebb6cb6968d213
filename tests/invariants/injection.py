"""A break of the runtime as a value, and the list of all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.invariants.injected_worlds import WORLDS

__all__ = ["INJECTIONS", "Injection", "Patch", "around", "injection"]

Patch = pytest.MonkeyPatch


@dataclass(frozen=True, slots=True)
class Injection:
    name: str  # what goes wrong
    path: str  # of the restore
    apply: Callable[[Patch], None]
    own_world: str = ""  # if the path does not say it

    @property
    def world(self) -> str:
        """One in which it must be noticed."""
        own = {"rescale": "rescaled", "next job": "claimed", "local recovery": "aligned, local copies"}
        return self.own_world or own.get(self.path, self.path if self.path in WORLDS else "unaligned")


INJECTIONS: list[Injection] = []


def injection(path: str, name: str, world: str = "") -> Callable[[Callable[[Patch], None]], Callable[[Patch], None]]:
    def add(apply: Callable[[Patch], None]) -> Callable[[Patch], None]:
        INJECTIONS.append(Injection(name, path, apply, world))
        return apply

    return add


def around(patch: Patch, owner: Any, name: str, change: Callable[..., Any]) -> None:
    """`change` gets what the function returns, and its arguments."""
    original = getattr(owner, name)

    def changed(*args: Any, **kwargs: Any) -> Any:
        return change(original(*args, **kwargs), *args)

    patch.setattr(owner, name, changed)
