"""Axes of a study (a list where a value is expected), and overrides of single keys."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, product
from math import prod
from typing import Any

from pydantic import BaseModel

from sim.model.schema.sections import AxisValues
from sim.model.schema.text import (
    DocumentPath,
    Mapping,
    Mark,
    Reading,
    cached_builder,
    compose,
    copy_node,
    dotted,
    value_at,
)
from sim.model.text import did_you_mean

# ---- Sweep axes: lists where one value is expected.  Axes are independent; their product is the study.

MAX_CELLS = 20_000
"""Maximum combinations of a study."""
MAX_RUNS = 200_000
"""Maximum runs of a study, over all combinations and replications."""


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis: a list in the document where one value is expected."""

    path: DocumentPath
    name: str  # the dotted path, e.g. ``checkpoint.barriers``
    values: tuple[str, ...]


def find_axes(document: BaseModel, plain: Any, reading: Reading) -> tuple[Axis, ...]:
    """Return the axes of a study in the order of the file.  Errors, e.g. too many combinations, are reported to `reading`.

    `document`: the parsed scenario.  `plain`: its plain values, from which the labels of the values are taken.
    """
    axes_found = []
    sections = ((key_of_field(document, name), value) for name, value in document.__dict__.items() if value is not None)
    for path, values in chain.from_iterable(_axes_of(value, (key,), reading) for key, value in sections):
        axes_found.append(Axis(path, dotted(path), tuple(_label(value) for value in value_at(plain, path))))
        for inner, _ in _lists_below(list(values), path):
            reading.wrong(
                inner, f"is a list within a value of the axis {dotted(path)}: write that value once for each of them"
            )
    axes_found.sort(key=lambda axis: _position(plain, axis.path))
    if (cells := prod(len(axis.values) for axis in axes_found)) > MAX_CELLS:
        axes = ", ".join(f"{axis.name} ({len(axis.values)})" for axis in axes_found)
        reading.wrong((), f"lists {cells} combinations, at most {MAX_CELLS} are allowed: {axes}")
    elif (runs := cells * (replications := _replications(document))) > MAX_RUNS:
        request = f"asks for {runs} runs (combinations: {cells}, replications: {replications}), at most {MAX_RUNS} are allowed"
        reading.wrong(
            ("run", "replications"), f"{request}; a hundred replications tell a mean to a tenth of the spread"
        )
    return tuple(axes_found)


@cached_builder
def _axes_of(section: Any, path: DocumentPath, reading: Reading) -> list[tuple[DocumentPath, AxisValues]]:
    """Return (path, values) of each axis in a section.  Cached for sections that did not change."""
    return list(_lists_below(section, path))


def key_of_field(section: BaseModel, name: str) -> str:
    """Return the key of a scenario for a field."""
    return type(section).model_fields[name].alias or name


def _replications(document: BaseModel) -> int:
    """Return the replications of each combination, 1 by default."""
    return getattr(getattr(document, "run", None), "replications", None) or 1


def variants(plain: Mapping, axes: tuple[Axis, ...]) -> Iterator[tuple[Mapping, tuple[tuple[str, str], ...]]]:
    """Yield (document without axes, chosen values) of each combination; the last axis varies fastest."""
    for chosen in product(*(range(len(axis.values)) for axis in axes)):
        concrete = copy_node(plain)
        for axis, index in zip(axes, chosen, strict=True):
            _put(concrete, axis.path, value_at(plain, axis.path)[index], Reading(""))
        yield concrete, tuple((axis.name, axis.values[index]) for axis, index in zip(axes, chosen, strict=True))


def _lists_below(node: Any, path: DocumentPath) -> Iterator[tuple[DocumentPath, AxisValues]]:
    """Yield (path, values) of each axis, without lists inside the values of another axis."""
    if isinstance(node, AxisValues):
        yield path, node
    elif isinstance(node, BaseModel):
        for name, value in node.__dict__.items():
            if value is not None:  # most keys are not set, and skipping them is fast
                yield from _lists_below(value, (*path, key_of_field(node, name)))
    elif isinstance(node, dict):
        for key, value in node.items():
            yield from _lists_below(value, (*path, key))
    elif isinstance(node, list):
        for i, value in enumerate(node):
            yield from _lists_below(value, (*path, i))


def _position(plain: Any, path: DocumentPath) -> tuple[int, ...]:
    """Return the position of a path in the file: indices among the keys of each mapping and in each list."""
    position: tuple[int, ...] = ()
    for step in path:
        position = (*position, step if isinstance(step, int) else list(plain).index(step))
        plain = plain[step]
    return position


def _label(value: Any) -> str:
    """Return a value as text: ``5 s``, ``aligned-timeout 5 s``, ``lognormal mean 1 ms, cv 2``."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {_label(item)}" for key, item in value.items())
    if isinstance(value, list):
        return "[" + ", ".join(map(_label, value)) + "]"
    return str(value).lower() if isinstance(value, bool) else str(value)


# ---- Overrides ``key.path=value`` from the command line, applied before validation; values in YAML syntax.

_STEP = re.compile(r'"([^"]+)"|([^.="]+)')
MAX_VALUES_KEPT = 256
"""Maximum cached copies of a section with another value, which the combinations of a sweep share."""
_VERBATIM = ("flink", "expect")
"""Sections whose keys contain dots: the rest of the path is one key."""


def key_of(path: DocumentPath) -> str:
    """Return a path as the key of an override: ``("job", "my.sink", "state")`` -> ``job."my.sink".state``."""
    return ".".join(f'"{step}"' if re.search(r'[."=\s]', str(step)) else str(step) for step in path)


def apply(plain: Any, overrides: Sequence[str], reading: Reading) -> Any:
    """Apply overrides such as ``checkpoint.interval=30 s`` to the top level of `plain`, and return it.

    Sections are copied before they are changed.  Errors, warnings and the positions of new values are added to `reading`.
    """
    for override in overrides:
        path, text = _split(override)
        section = plain.get(str(path[0])) if path and isinstance(plain, Mapping) else None
        parsed = section.read if isinstance(section, Mapping) else {}
        if override not in parsed:
            source = Reading(f"--set {override}")
            _apply(plain, path, text, source)
            if len(parsed) >= MAX_VALUES_KEPT:
                parsed.clear()
            parsed[override] = (
                source,
                plain[str(path[0])] if not source.problems and isinstance(plain, Mapping) else section,
            )
        source, section = parsed[override]
        if section is not None:
            plain[str(path[0])] = section
        reading.problems.update(source.problems)
        reading.warnings.update(source.warnings)
        reading.marks.update({at: Mark(source.file, 1, mark.column) for at, mark in source.marks.items() if at})
    return plain


def _apply(plain: Any, path: DocumentPath, text: str, source: Reading) -> None:
    """Apply one override.  Errors, warnings and positions are added to `source`."""
    source.marks[path] = Mark(source.file, 1, 1)
    if not path:
        source.wrong((), "expected key.path=value, e.g. --set checkpoint.interval='30 s'")
    elif isinstance(plain, Mapping):
        value = compose(text, source, path)
        if value is None and not source.problems:
            source.wrong(path, "has no value: write one after the =")
        if not source.problems:
            _put(plain, path, value, source)


def path_of(key: str) -> DocumentPath:
    """Return the path that the key of an override refers to."""
    return _split(f"{key}=")[0]


@lru_cache(1024)
def _split(override: str) -> tuple[DocumentPath, str]:
    """Split an override: ``a."b.c".d=text`` -> (("a", "b.c", "d"), "text").  Returns ((), "") if it is invalid."""
    path: list[str] = []
    at = 0
    while match := _STEP.match(override, at):
        path.append((match[1] or match[2]).strip())
        at = match.end()
        if path[0] in _VERBATIM and len(path) == 1 and override[at : at + 1] == ".":
            key, equals, text = override[at + 1 :].partition("=")
            return ((path[0], key.strip().strip('"')), text) if equals and key else ((), "")
        if override[at : at + 1] != ".":
            break
        at += 1
    return (tuple(path), override[at + 1 :]) if path and override[at : at + 1] == "=" else ((), "")


def _put(plain: Mapping, path: DocumentPath, value: Any, source: Reading) -> None:
    """Replace or add one value.  Sections on its path are copied first, and missing ones are added, except vertices.

    Errors and warnings are added to `source`.
    """
    node: Any = plain
    for depth, step in enumerate(path[:-1]):
        path_of_section = path[: depth + 1]
        if isinstance(node, list) and str(step).isdigit() and int(step) < len(node):
            node[int(step)] = node = copy_node(node[int(step)])
            continue
        if not isinstance(node, Mapping):
            source.wrong(path, f"there is no mapping at {'.'.join(map(str, path_of_section[:-1]))} to set '{step}' in")
            return
        if step not in node:
            if path[0] == "job" and depth == 1:
                source.wrong(path, f"there is no vertex '{step}'{did_you_mean(str(step), node)}")
                return
            node[str(step)] = Mapping().at(path_of_section)
        node[str(step)] = node = copy_node(node[str(step)])
    if isinstance(node, list) and str(path[-1]).isdigit() and int(path[-1]) < len(node):
        node[int(path[-1])] = value
    elif isinstance(node, Mapping):
        _warn_of_dropped_keys(node.get(str(path[-1])), path, value, source)
        node[str(path[-1])] = value
    else:
        source.wrong(path, f"there is no mapping at {'.'.join(map(str, path[:-1]))} to set '{path[-1]}' in")


def _warn_of_dropped_keys(before: Any, path: DocumentPath, value: Any, source: Reading) -> None:
    """Warn of keys that are dropped because a mapping replaces a section.

    An empty mapping clears the section on purpose and causes no warning.  `before`: the section that is replaced.
    """
    if (
        isinstance(before, Mapping)
        and isinstance(value, Mapping)
        and value
        and (dropped := [key for key in before if key not in value])
    ):
        listed, one = ", ".join(f"{key}: {before[key]}" for key in dropped), key_of(path)
        source.warn(
            path,
            f"replaces the whole section and drops {{{listed}}}; to keep it, set single keys: --set {one}.KEY=VALUE",
        )
