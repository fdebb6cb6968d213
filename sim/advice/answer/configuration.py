"""Flink's configuration as a difference against today, and as patches of a FlinkDeployment: one that sets it, one that takes it back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

from sim.advice.levers.lever import Change
from sim.model.scenario import Scenario
from sim.scenario.flink.file import FlinkFile
from sim.scenario.flink.text import flink_key, flink_lines
from sim.scenario.text.problems import DocumentPath

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


def difference(today: Scenario, advised: Scenario, changes: Sequence[Change] = (), conf: FlinkFile | None = None) -> list[KeyChange]:
    """The keys that differ, and those that its changes need beside them; one that has Flink's default today is not set there.

    `conf`: the file that is deployed, whose own texts are today's values.
    """
    now, then = flink_lines(today), flink_lines(advised)
    then |= {flink_key(key, advised): value for change in changes for key, value in change.lever.flink_keys.items()}
    keys = [key for key in dict.fromkeys((*then, *now)) if now.get(key) != then.get(key)]
    for key in keys:
        if conf is not None and (given := conf.keys.get(conf.written(key))) is not None:
            now[key] = str(given[0]).lower() if isinstance(given[0], bool) else str(given[0])
    return [KeyChange(key, now.get(key), then.get(key)) for key in keys]


def patch(
    found: list[KeyChange], *, back: bool, others: Mapping[str, Any], warnings: Sequence[str] = (), conf: FlinkFile | None = None
) -> str:
    """A merge patch of a FlinkDeployment of the Kubernetes operator.  `back`: it sets today's values again; null removes a key.

    `others`: what no key of Flink says, by what it is.  `warnings`: what to know first, as comments, for a patch is applied alone.
    `conf`: the file that is deployed; if it is such a manifest, the patch has its name and spells keys as it does.
    """
    name = "rollback.yaml" if back else "advised.yaml"
    manifest = conf if conf is not None and conf.block[:1] == ("spec",) else FlinkFile("", "", block=("spec", "flinkConfiguration"))
    return "".join(f"{line}\n" for line in _lines(found, name, manifest, back=back, others=others, warnings=warnings))


def _lines(
    found: list[KeyChange], name: str, manifest: FlinkFile, *, back: bool, others: Mapping[str, Any], warnings: Sequence[str]
) -> Iterator[str]:
    for warning in warnings:
        yield from (f"# {line}" for line in wrap(warning, WIDTH, break_long_words=False, break_on_hyphens=False))
    what = f"{manifest.kind.lower() or 'flinkdeployment'} {manifest.resource or 'NAME'}"
    yield f"# kubectl patch {what} --type merge --patch-file {name}"
    moves_state = any(item.key == BACKEND for item in found)
    if moves_state:
        yield "# State moves to another backend: only a canonical savepoint can be read by both, a checkpoint cannot."
    for what, value in others.items():
        yield f"# Not in this patch, {what}: {value}"
    tree: dict[Any, Any] = {}
    spec = manifest.block[:-1]
    mode = (*spec, "job", "upgradeMode")
    if moves_state or mode not in manifest.marks:
        _set(tree, mode, "savepoint" if moves_state else "last-state")
    if moves_state:
        _set(tree, manifest.place_of("kubernetes.operator.savepoint.format.type"), json.dumps("CANONICAL"))
    for item in found:
        value, path = item.today if back else item.advised, manifest.place_of(item.key)
        text = value if path[: len(spec) + 1] == mode[:-1] else json.dumps(value)  # a key is text; job.parallelism is a number
        _set(tree, path, "null" if value is None else str(text))
    yield from _yaml(tree, "")


def _set(tree: dict[Any, Any], path: DocumentPath, value: str) -> None:
    for step in path[:-1]:
        tree = tree.setdefault(step, {})
    tree[path[-1]] = value


def _yaml(tree: Mapping[Any, Any], indent: str) -> Iterator[str]:
    for key, value in tree.items():
        yield f"{indent}{key}:{'' if isinstance(value, dict) else f' {value}'}"
        yield from _yaml(value, f"{indent}  ") if isinstance(value, dict) else ()
