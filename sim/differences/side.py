"""One side of a difference: a scenario with one combination, as a document that can be changed key by key.

Flink's keys stand at the places that they mean, and files are named by absolute paths: a value may move to the other side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sim.comparison.comparison import label
from sim.differences.kept import KeptAnswer
from sim.explain.runs import kept_in
from sim.model.scenario import Scenario
from sim.runtime.run.manifest import code_version
from sim.scenario.flink.block import apply_flink
from sim.scenario.overrides import apply
from sim.scenario.study import ScenarioFile, loads
from sim.scenario.text.plain import Mapping as Plain
from sim.scenario.text.plain import compose
from sim.scenario.text.problems import DocumentPath, Reading, ScenarioError
from sim.scenario.text.writer import write

NOT_COMPARED = ("version", "expect", "flink", "flink-file")
"""Sections that say nothing about a job or its runs; keys of Flink were moved to where they belong."""
_HISTORY, _ENVIRONMENT = "history", "environment"


@dataclass(frozen=True, slots=True)
class Side:
    """A scenario to compare, and the place that it was read from."""

    name: str  # as the user gave it
    plain: Plain
    folder: Path  # in which the files that it names lie
    notes: tuple[str, ...] = ()

    def value_text(self, value: Any) -> str:
        """A value on one line, with paths as the scenario has them."""
        if value is None:
            return ""
        text = write({"value": value}, "").splitlines()[2:]
        flat = " ".join(line.strip() for line in text).removeprefix("value:").strip()
        return flat.replace(f"{self.folder}/", "")


def kept_side(place: Path, changes: Sequence[str], strategy: str | None) -> Side:
    """A folder that `run` kept.  FolderError, ScenarioError: it cannot be run again."""
    kept = kept_in(place)
    source = place / str(kept.summary.get("source", "scenario.yaml"))
    folder = source.parent if source.parent.is_dir() else place
    changes = [*(str(line) for line in kept.summary.get("overrides", ())), *changes]
    is_other = kept.versions != {code_version()}
    notes = (f"{place} was kept by another version of ckptsim: it runs again with this one",) if is_other else ()
    return side_of(str(place), kept.text, folder, changes, strategy, notes=notes)


def side_of_answer(answer: KeptAnswer) -> Side:
    """The job of a sweep or an advice.  ScenarioError: it lists several strategies, or cannot be read."""
    folder = (answer.folder / str(answer.job["file"])).parent
    return side_of(str(answer.folder), str(answer.job["text"]), folder, [str(line) for line in answer.job["changes"]])


def side_of(
    name: str, text: str, folder: Path, changes: Sequence[str] = (), strategy: str | None = None, *, notes: tuple[str, ...] = ()
) -> Side:
    """`strategy`: the label of a combination, where the scenario lists several.  ScenarioError: mistakes in it."""
    study = loads(text, name, overrides=changes, folder=folder, file=name)
    reading = Reading(name)
    plain = apply(compose(text, reading), changes, reading)
    apply_flink(plain, reading, folder)
    for path, value in _chosen(study, plain, name, strategy):
        put(plain, path, value)
    for key in NOT_COMPARED:
        plain.pop(key, None)
    return Side(name, _portable(plain, folder.resolve()), folder.resolve(), notes)


def scenario_of(plain: Mapping[str, Any]) -> Scenario:
    """The scenario that a changed document means.  ScenarioError: it means none."""
    return loads(write(plain, ""), "diff").scenarios[0]


def put(plain: Any, path: DocumentPath, value: Any) -> None:
    """Set a value, or remove it (None); mappings on the way are added."""
    for step in path[:-1]:
        plain = plain[int(step)] if isinstance(plain, list) else plain.setdefault(step, Plain())
    if value is None:
        plain.pop(path[-1], None)
    else:
        plain[path[-1]] = value


def _chosen(study: ScenarioFile, plain: Any, name: str, strategy: str | None) -> list[tuple[DocumentPath, Any]]:
    """The place and value of each axis in the chosen combination."""
    labels = [label(scenario) for scenario in study.scenarios]
    if len(labels) == 1:
        return []
    if strategy not in labels:
        what = f"has no strategy '{strategy}'" if strategy is not None else "has several strategies, and one is compared"
        raise ScenarioError.of(name, f"{what}: choose with --strategy one of {', '.join(labels)}")
    values = dict(study.scenarios[labels.index(strategy)].axes)
    found = []
    for axis in study.axes:
        node = plain
        for step in axis.path:
            node = node[step]
        found.append((axis.path, node[axis.values.index(values[axis.name])]))
    return found


def _portable(node: Any, folder: Path) -> Any:
    """The same with absolute paths of files, and without keys that have no value."""
    if isinstance(node, Mapping):
        found = Plain({key: _portable(value, folder) for key, value in node.items() if value is not None})
        for key in ("trace", _HISTORY, _ENVIRONMENT):
            if isinstance(file := found.get(key), str) and (folder / file).is_file():
                found[key] = str(folder / file)
        return found
    return [_portable(item, folder) for item in node] if isinstance(node, list) else node
