"""``key.path=value`` from the command line -> the document, before it is checked; values in YAML syntax."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from sim.scenario.text.plain import Mapping, compose
from sim.scenario.text.problems import DocumentPath, Mark, Reading, did_you_mean

_STEP = re.compile(r'"([^"]+)"|([^.="]+)')
_VERBATIM = ("flink", "expect")
"""Sections whose keys contain dots: what follows is one key."""


def key_of(path: DocumentPath) -> str:
    """``("job", "my.sink", "state")`` -> ``job."my.sink".state``: the key of an override."""
    return ".".join(f'"{step}"' if re.search(r'[."=\s]', str(step)) else str(step) for step in path)


def apply(plain: Any, overrides: Sequence[str], reading: Reading) -> Any:
    """The document with every override in its place."""
    for override in overrides:
        source = Reading(f"--set {override}")
        path, text = _split(override)
        source.marks[path] = Mark(source.file, 1, 1)
        if not path:
            source.wrong((), "expected key.path=value, e.g. --set checkpoint.interval='30 s'")
        elif isinstance(plain, Mapping):
            value = compose(text, source, path)
            if value is None and not source.problems:
                source.wrong(path, "has no value: write one after the =")
            if not source.problems:
                _put(plain, path, value, source)
        reading.problems.update(source.problems)
        reading.warnings.update(source.warnings)
        reading.marks.update({at: Mark(source.file, 1, mark.column) for at, mark in source.marks.items() if at})
    return plain


def path_of(key: str) -> DocumentPath:
    """The place that the key of an override names."""
    return _split(f"{key}=")[0]


def _split(override: str) -> tuple[DocumentPath, str]:
    """``a."b.c".d=text`` -> (("a", "b.c", "d"), "text")."""
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
    """Replace or add one value; mappings on the way are added, except vertices."""
    node: Any = plain
    for depth, step in enumerate(path[:-1]):
        here = path[: depth + 1]
        if isinstance(node, list) and str(step).isdigit() and int(step) < len(node):
            node = node[int(step)]
            continue
        if not isinstance(node, Mapping):
            source.wrong(path, f"there is no mapping at {'.'.join(map(str, here[:-1]))} to set '{step}' in")
            return
        if step not in node:
            if path[0] == "job" and depth == 1:
                source.wrong(path, f"there is no vertex '{step}'{did_you_mean(str(step), node)}")
                return
            node[str(step)] = Mapping().at(here)
        node = node[str(step)]
    if isinstance(node, list) and str(path[-1]).isdigit() and int(path[-1]) < len(node):
        node[int(path[-1])] = value
    elif isinstance(node, Mapping):
        _warn_of_dropped_keys(node.get(str(path[-1])), path, value, source)
        node[str(path[-1])] = value
    else:
        source.wrong(path, f"there is no mapping at {'.'.join(map(str, path[:-1]))} to set '{path[-1]}' in")


def _warn_of_dropped_keys(before: Any, path: DocumentPath, value: Any, source: Reading) -> None:
    """A mapping replaces the whole section of the file: warn of the keys that it had and the new one has not.  {} clears it on purpose."""
    if isinstance(before, Mapping) and isinstance(value, Mapping) and value and (dropped := [key for key in before if key not in value]):
        listed, one = ", ".join(f"{key}: {before[key]}" for key in dropped), key_of(path)
        source.warn(path, f"replaces the whole section and drops {{{listed}}}; to keep it, set single keys: --set {one}.KEY=VALUE")
