"""The sides of a `diff`: scenarios."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

from sim.model.scenario import Scenario
from sim.model.schema.flink_block import apply_flink
from sim.model.schema.history_file import put_history
from sim.model.schema.study import ScenarioFile, apply, loads
from sim.model.schema.text import DocumentPath, Reading, ScenarioError, compose, write
from sim.model.schema.text import Mapping as Plain
from sim.studies.labels import label

# ---- A side: a scenario with one combination, as a document whose keys can be changed. Flink keys are converted to scenario
# keys and paths are absolute, so that values can be copied to the other side.

NOT_COMPARED = ("version", "expect", "flink", "flink-file")
"""Sections that do not affect runs, and sections of Flink keys, which have been converted."""


@dataclass(frozen=True, slots=True)
class Side:
    """A scenario to compare."""

    name: str  # as the user gave it
    plain: Plain
    folder: Path  # paths in the scenario are relative to it

    def value_text(self, value: Any) -> str:
        """Return a value as a line of text, with paths as written in the scenario."""
        if value is None:
            return ""
        text = write({"value": value}, "").splitlines()[2:]
        flat = " ".join(line.strip() for line in text).removeprefix("value:").strip()
        return flat.replace(f"{self.folder}/", "")


def side_of(
    name: str,
    text: str,
    folder: Path,
    changes: Sequence[str] = (),
    strategy: str | None = None,
) -> Side:
    """Return the side of a scenario text.  `strategy`: label of the combination, if there are several.  ScenarioError: mistakes."""
    study = loads(text, name, overrides=changes, folder=folder, file=name)
    reading = Reading(name)
    plain = apply(compose(text, reading), changes, reading)
    put_history(plain, reading, folder)  # its residuals are of vertices, which may have another name on the other side
    plain.pop("history", None)
    apply_flink(plain, reading, folder)
    for path, value in _values_of_strategy(study, plain, name, strategy):
        put(plain, path, value)
    for key in NOT_COMPARED:
        plain.pop(key, None)
    return Side(name, _portable(plain, folder.resolve()), folder.resolve())


def scenario_of(plain: Mapping[str, Any]) -> Scenario:
    """Return the scenario of a changed document.  ScenarioError: it is invalid."""
    return loads(write(plain, ""), "diff").scenarios[0]


def put(plain: Any, path: DocumentPath, value: Any) -> None:
    """Set a value, or remove it if it is None; missing mappings on the path are added."""
    for step in path[:-1]:
        plain = plain[int(step)] if isinstance(plain, list) else plain.setdefault(step, Plain())
    if value is None:
        plain.pop(path[-1], None)
    else:
        plain[path[-1]] = value


def _values_of_strategy(
    study: ScenarioFile, plain: Any, name: str, strategy: str | None
) -> list[tuple[DocumentPath, Any]]:
    """Return (path, value) of each axis in the chosen combination."""
    labels = [label(scenario) for scenario in study.scenarios]
    if len(labels) == 1:
        return []
    if strategy not in labels:
        problem = (
            f"has no strategy '{strategy}'" if strategy is not None else "has several strategies, and one is compared"
        )
        raise ScenarioError.of(name, f"{problem}: choose with --strategy one of {', '.join(labels)}")
    values = dict(study.scenarios[labels.index(strategy)].axes)
    chosen = []
    for axis in study.axes:
        node = reduce(getitem, axis.path, plain)
        chosen.append((axis.path, node[axis.values.index(values[axis.name])]))
    return chosen


def _portable(node: Any, folder: Path) -> Any:
    """Return the document with absolute paths of files, and without keys that have no value."""
    if isinstance(node, Mapping):
        portable = Plain({key: _portable(value, folder) for key, value in node.items() if value is not None})
        for key in ("trace", "history"):
            if isinstance(file := portable.get(key), str) and (folder / file).is_file():
                portable[key] = str(folder / file)
        return portable
    return [_portable(item, folder) for item in node] if isinstance(node, list) else node
