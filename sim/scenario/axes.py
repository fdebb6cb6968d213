"""Sweep axes: lists where one value is expected.  Axes are independent; their product is the study."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

from pydantic import BaseModel

from sim.scenario.grammar.fields import AxisValues
from sim.scenario.text.plain import Mapping, value_at
from sim.scenario.text.problems import DocumentPath, Reading, dotted

MAX_CELLS = 20_000
"""Combinations of one study."""
MAX_RUNS = 200_000
"""Runs of all replications of all combinations: they are planned as a whole."""


@dataclass(frozen=True, slots=True)
class Axis:
    """A list in the document: its place, and its values as they are written."""

    path: DocumentPath
    name: str  # the dotted path, e.g. ``checkpoint.barriers``
    values: tuple[str, ...]


def find_axes(document: BaseModel, plain: Any, reading: Reading) -> tuple[Axis, ...]:
    """The axes in the order of the file."""
    found = []
    for path, values in _lists_below(document, ()):
        found.append(Axis(path, dotted(path), tuple(_label(value) for value in value_at(plain, path))))
        for inner, _ in _lists_below(list(values), path):
            reading.wrong(inner, f"is a list within a value of the axis {dotted(path)}: write that value once for each of them")
    found.sort(key=lambda axis: _position(plain, axis.path))
    if (cells := prod(len(axis.values) for axis in found)) > MAX_CELLS:
        axes = ", ".join(f"{axis.name} ({len(axis.values)})" for axis in found)
        reading.wrong((), f"lists {cells} combinations, at most {MAX_CELLS} are allowed: {axes}")
    elif (runs := cells * (replications := _replications(document))) > MAX_RUNS:
        what = f"asks for {runs} runs (combinations: {cells}, replications: {replications}), at most {MAX_RUNS} are allowed"
        reading.wrong(("run", "replications"), f"{what}; a hundred replications tell a mean to a tenth of the spread")
    return tuple(found)


def _replications(document: BaseModel) -> int:
    return getattr(getattr(document, "run", None), "replications", None) or 1


def variants(plain: Mapping, axes: tuple[Axis, ...]) -> Iterator[tuple[Mapping, tuple[tuple[str, str], ...]]]:
    """(document without axes, chosen values) of every combination; the last axis varies fastest."""
    for chosen in product(*(range(len(axis.values)) for axis in axes)):
        concrete = plain
        for axis, index in zip(axes, chosen, strict=True):
            concrete = _replace(concrete, axis.path, value_at(plain, axis.path)[index])
        yield concrete, tuple((axis.name, axis.values[index]) for axis, index in zip(axes, chosen, strict=True))


def _lists_below(node: Any, path: DocumentPath) -> Iterator[tuple[DocumentPath, AxisValues]]:
    """(path, values) of each list that stands for one value.  Lists inside the values of another list are left out."""
    if isinstance(node, AxisValues):
        yield path, node
    elif isinstance(node, BaseModel):
        fields = type(node).model_fields
        for name, value in node.__dict__.items():
            if value is not None:  # most keys are not written
                yield from _lists_below(value, (*path, fields[name].alias or name))
    elif isinstance(node, dict):
        for key, value in node.items():
            yield from _lists_below(value, (*path, key))
    elif isinstance(node, list):
        for i, value in enumerate(node):
            yield from _lists_below(value, (*path, i))


def _replace(plain: Any, path: DocumentPath, value: Any) -> Any:
    """A copy with one value replaced; what is not on the path is shared."""
    if not path:
        return value
    if isinstance(plain, list):
        return [_replace(item, path[1:], value) if i == path[0] else item for i, item in enumerate(plain)]
    copy = Mapping(plain).at(plain.path)
    copy[str(path[0])] = _replace(plain[path[0]], path[1:], value)
    return copy


def _position(plain: Any, path: DocumentPath) -> tuple[int, ...]:
    """Where the path stands in the file, as positions among the keys of each mapping and in each list."""
    position: tuple[int, ...] = ()
    for step in path:
        position = (*position, step if isinstance(step, int) else list(plain).index(step))
        plain = plain[step]
    return position


def _label(value: Any) -> str:
    """A value as it is written: ``5 s``, ``aligned-timeout 5 s``, ``lognormal mean 1 ms, cv 2``."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {_label(item)}" for key, item in value.items())
    if isinstance(value, list):
        return "[" + ", ".join(map(_label, value)) + "]"
    return str(value).lower() if isinstance(value, bool) else str(value)
