"""Flink's configuration as a difference against today, and as patches of a FlinkDeployment: one that sets it, one that takes it back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

from sim.advice.levers.lever import Change
from sim.model.scenario import Scenario
from sim.scenario.flink.text import flink_key, flink_lines

BACKEND = "state.backend.type"
WIDTH = 100
"""The longest line of a comment in a patch."""


@dataclass(frozen=True, slots=True)
class KeyChange:
    """The change of one key of Flink.  None: the key is not set."""

    key: str
    today: str | None
    advised: str | None

    def lines(self) -> list[str]:
        """``- key: old`` and ``+ key: new``."""
        sides = (("-", self.today), ("+", self.advised))
        return [f"{sign} {self.key}: {value}" for sign, value in sides if value is not None]


def difference(today: Scenario, advised: Scenario, changes: Sequence[Change] = ()) -> list[KeyChange]:
    """The keys that differ, and those that its changes need beside them; one that has Flink's default today is not set there."""
    now, then = flink_lines(today), flink_lines(advised)
    then |= {flink_key(key, advised): value for change in changes for key, value in change.lever.flink_keys.items()}
    keys = [key for key in dict.fromkeys((*then, *now)) if now.get(key) != then.get(key)]
    return [KeyChange(key, now.get(key), then.get(key)) for key in keys]


def patch(found: list[KeyChange], *, back: bool, others: Mapping[str, Any], warnings: Sequence[str] = ()) -> str:
    """A merge patch of a FlinkDeployment of the Kubernetes operator.  `back`: it sets today's values again; null removes a key.

    `others`: what no key of Flink says, by what it is.  `warnings`: what to know first, as comments, for a patch is applied alone.
    """
    name = "rollback.yaml" if back else "advised.yaml"
    return "".join(f"{line}\n" for line in _lines(found, name, back=back, others=others, warnings=warnings))


def _lines(found: list[KeyChange], name: str, *, back: bool, others: Mapping[str, Any], warnings: Sequence[str]) -> Iterator[str]:
    for warning in warnings:
        yield from (f"# {line}" for line in wrap(warning, WIDTH, break_long_words=False, break_on_hyphens=False))
    yield f"# kubectl patch flinkdeployment NAME --type merge --patch-file {name}"
    moves_state = any(item.key == BACKEND for item in found)
    if moves_state:
        yield "# State moves to another backend: only a canonical savepoint can be read by both, a checkpoint cannot."
    for what, value in others.items():
        yield f"# Not in this patch, {what}: {value}"
    yield "spec:"
    yield "  job:"
    yield "    upgradeMode: savepoint" if moves_state else "    upgradeMode: last-state"
    yield "  flinkConfiguration:"
    if moves_state:
        yield '    kubernetes.operator.savepoint.format.type: "CANONICAL"'
    for item in found:
        value = item.today if back else item.advised
        yield f"    {item.key}: {'null' if value is None else json.dumps(value)}"
