"""Differences between the inputs of two scenarios."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import fields, replace
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

from sim.jobs.evidence.what_ifs import Kind, kinds_of
from sim.model.frozen import frozen
from sim.model.scenario import AUTO_WARM_UP, Run, Scenario
from sim.model.schema.flink_block import apply_flink
from sim.model.schema.history_file import HISTORY_SECTIONS, put_history
from sim.model.schema.reference import KeyReference, all_keys
from sim.model.schema.study import ScenarioFile, apply, key_of, loads
from sim.model.schema.text import DocumentPath, Problem, Reading, ScenarioError, compose, write
from sim.model.schema.text import Mapping as Plain
from sim.model.units import format_duration
from sim.runtime.result import content
from sim.studies.plan import label

# ---- Differing inputs, option by option. Different spellings of the same value are not differences: a change counts only if
# making it changes scenario A, or if undoing it changes scenario B.

_ATOMIC_KEYS = ("trace", "history", "backtest", "residuals")
"""Keys whose mappings are compared as single values."""


@frozen
class InputChange:
    """An option whose value differs.  A value is None if the option is not in that scenario."""

    path: DocumentPath
    before: Any
    after: Any
    before_text: str
    after_text: str
    flink: tuple[str, ...]  # corresponding Flink keys
    kind: Kind

    @property
    def key(self) -> str:
        return key_of(self.path)


@frozen
class InputDifferences:
    """Two scenarios, made comparable by common run options, and their differences."""

    before: Scenario
    after: Scenario
    changes: tuple[InputChange, ...]
    added: tuple[str, ...]  # vertices
    removed: tuple[str, ...]
    runs: str  # clauses on run options that differed, with the common value; "" if none did


def input_differences(a: Side, b: Side, replications: int) -> InputDifferences:
    """Return the differences.  Both scenarios get the longer duration and warm-up, the seed of A, and `replications`."""
    start, end = deepcopy(a.plain), deepcopy(b.plain)
    first, last = scenario_of(start), scenario_of(end)
    run = replace(
        first.run,
        duration_ns=max(first.run.duration_ns, last.run.duration_ns),
        warmup_ns=max(first.run.warmup_ns, last.run.warmup_ns),
        replications=replications,
    )
    runs = "; ".join(_run_notes(first.run, last.run, run))
    start["run"] = end["run"] = deepcopy(start["run"])  # both have the same run options
    before, after = replace(first, run=run), replace(last, run=run)
    effective = []
    for change in _document_changes(a, b, start, end):
        changed, undone = _with_value(start, change.path, change.after), _with_value(end, change.path, change.before)
        if _differs(changed, first) or _differs(undone, last):
            kinds = () if changed is None else kinds_of(before, changed)
            effective.append(replace(change, kind=kinds[0] if kinds else "other"))
    return InputDifferences(
        before,
        after,
        tuple(effective),
        added=tuple(name for name in end["job"] if name not in start["job"]),
        removed=tuple(name for name in start["job"] if name not in end["job"]),
        runs=runs,
    )


def _with_value(plain: Plain, path: DocumentPath, value: Any) -> Scenario | None:
    """Return the scenario with one value changed, or None if it is invalid."""
    changed = deepcopy(plain)
    try:
        put(changed, path, value)
        return scenario_of(changed)
    except ScenarioError:
        return None


def _differs(scenario: Scenario | None, other: Scenario) -> bool:
    return scenario is None or content(scenario) != content(other)


def _document_changes(a: Side, b: Side, before: Any, after: Any) -> Iterator[InputChange]:
    """Yield a change for each difference between two documents, whatever its effect.  Missing values are shown as their default."""
    for path, old, new in _differing_values(before, after, ()):
        reference = _reference(path)
        default = f"({'none' if reference is None else reference.default})"
        before_text, after_text = (
            default if value is None else f"of {side.name}" if path[0] in HISTORY_SECTIONS else side.value_text(value)
            for side, value in ((a, old), (b, new))
        )
        yield InputChange(
            path, old, new, before_text, after_text, () if reference is None else reference.flink, "other"
        )


def _differing_values(before: Any, after: Any, path: DocumentPath) -> Iterator[tuple[DocumentPath, Any, Any]]:
    """Yield (path, value before, value after) for each difference between two documents."""
    is_atomic = {*path} & {*_ATOMIC_KEYS} or any(
        isinstance(node, Mapping) and "trace" in node for node in (before, after)
    )
    if isinstance(before, Mapping) and isinstance(after, Mapping) and not is_atomic:
        for key in dict.fromkeys((*before, *after)):
            yield from _differing_values(before.get(key), after.get(key), (*path, key))
    elif before != after:
        yield path, before, after


def _run_notes(before: Run, after: Run, used: Run) -> Iterator[str]:
    """Yield, e.g., ``run.seed: 1 and 7, both run with 1`` for each run option that differs.

    Replications are left out, because the caller sets them for both scenarios.
    """
    for field in fields(Run):
        values = [getattr(run, field.name) for run in (before, after, used)]
        if values[0] != values[1] and field.name != "replications":
            is_time = field.name.endswith("_ns")
            a, b, both = (
                "auto" if is_time and value == AUTO_WARM_UP else format_duration(value) if is_time else value
                for value in values
            )
            yield f"run.{field.name.removesuffix('_ns').replace('_', '-')}: {a} and {b}, both run with {both}"


def _reference(path: DocumentPath) -> KeyReference | None:
    """Return the reference entry of a key, or None if it has none."""
    steps = [str(step) for step in path if not str(step).isdigit()]
    if steps[0] == "job" and len(steps) > 1:
        steps[1] = "VERTEX"
    return next((reference for reference in all_keys() if reference.key == ".".join(steps)), None)


# ---- A side: a scenario with one combination, as a document whose keys can be changed. Flink keys are converted to scenario
# keys and paths are absolute, so that values can be copied to the other side.

NOT_COMPARED = ("version", "expect", "flink", "flink-file")
"""Sections that do not affect runs, and sections of Flink keys, which have been converted."""


@frozen
class Side:
    """A scenario to compare."""

    name: str  # as the user gave it
    plain: Plain
    folder: Path  # paths in the scenario are relative to it
    warnings: tuple[Problem, ...] = ()  # of reading it

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
    return Side(name, _with_absolute_paths(plain, folder.resolve()), folder.resolve(), study.warnings)


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


def _with_absolute_paths(node: Any, folder: Path) -> Any:
    """Return the document with absolute paths of files, and without keys that have no value."""
    if isinstance(node, Mapping):
        portable = Plain({key: _with_absolute_paths(value, folder) for key, value in node.items() if value is not None})
        for key in ("trace", "history"):
            if isinstance(file := portable.get(key), str) and (folder / file).is_file():
                portable[key] = str(folder / file)
        return portable
    return [_with_absolute_paths(item, folder) for item in node] if isinstance(node, list) else node
