"""The vertices of two jobs: which are the same under another name, and a job under the names of the other."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from sim.scenario.text.plain import Mapping as Plain


def renames(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, str]:
    """Name before -> name after, of vertices that read the same vertices and are the only ones to do so.

    A job is read from its sources on: a vertex behind a renamed one is found by the new name.
    """
    found: dict[str, str] = {}
    while pair := next(_pairs(before, after, found), None):
        found[pair[0]] = pair[1]
    return found


def _pairs(before: Mapping[str, Any], after: Mapping[str, Any], known: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    gone = [name for name in before if name not in after and name not in known]
    new = [name for name in after if name not in before and name not in known.values()]
    for name in gone:
        same = [other for other in new if _reads(before[name], known) == _reads(after[other], {})]
        rivals = [other for other in gone if _reads(before[other], known) == _reads(before[name], known)]
        if len(same) == 1 and len(rivals) == 1:
            yield name, same[0]


def _reads(vertex: Any, names: Mapping[str, str]) -> frozenset[str]:
    """The vertices that one reads; of a source nothing."""
    read = vertex.get("input") if isinstance(vertex, Mapping) else None
    given = [read] if isinstance(read, str) else list(read) if isinstance(read, (Mapping, list)) else []
    return frozenset(names.get(str(name), str(name)) for name in given)


def renamed(node: Any, names: Mapping[str, str]) -> Any:
    """A document with other names of vertices, as keys, as values, and before ``[subtask]``."""
    if isinstance(node, Mapping):
        return Plain({_renamed(key, names): renamed(value, names) for key, value in node.items()})
    if isinstance(node, list):
        return [renamed(item, names) for item in node]
    return _renamed(node, names) if isinstance(node, str) else node


def _renamed(text: Any, names: Mapping[str, str]) -> Any:
    name, rest = re.fullmatch(r"(.*?)((?:\[.*\])?)", str(text), re.DOTALL).groups()  # type: ignore[union-attr]  # it matches all
    return f"{names[name]}{rest}" if name in names else text
