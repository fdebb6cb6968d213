"""An advice as a patch of the user's own file of Flink's configuration, in its spelling, and the patch that takes it back."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from difflib import unified_diff
from pathlib import Path

from sim.advice.answer.configuration import KeyChange
from sim.scenario.flink.file import FlinkFile, end_of, parse_flink_file

PATCH, PATCH_BACK = "flink.patch", "flink.rollback.patch"
_NOT_TEXT = re.compile(r"[-+.\d][-+.\deE_]*|true|false|yes|no|on|off|null|~", re.IGNORECASE)
"""What YAML reads as another type, where Kubernetes takes text only."""


def patches(found: Sequence[KeyChange], conf: FlinkFile) -> dict[str, str]:
    """Name -> unified diff, for ``patch FILE < NAME``; the way back restores the file to the byte.  Empty: it has keys in braces."""
    lines = conf.text.splitlines()
    if any(lines[mark.line - 1][: mark.column - 1].strip() for path, mark in conf.marks.items() if path[: len(conf.block)] == conf.block):
        return {}
    advised = conf
    for change in found:
        advised = parse_flink_file("".join(_with_change(change, advised)), conf.file, conf.resource)
    before, after, name = _lines(conf.text), _lines(advised.text), Path(conf.file).name
    there, back = unified_diff(before, after, name, name), unified_diff(after, before, name, name)
    return {PATCH: "".join(there), PATCH_BACK: "".join(back)}


def _lines(text: str) -> list[str]:
    """The lines with their ends; a last line without one gets one, as `patch` wants."""
    end = "\r\n" if "\r\n" in text else "\n"
    return [line if line.endswith("\n") else line + end for line in text.splitlines(keepends=True)]


def _with_change(change: KeyChange, conf: FlinkFile) -> list[str]:
    """The lines of the file with the new value of a key in place of the old one, or with a new key below its neighbours."""
    lines, path, above = _lines(conf.text), conf.place_of(change.key), conf.place_of(change.key)[:-1]
    if path not in conf.marks and change.advised is None:
        return lines
    while change.advised is None and len(above) > len(conf.block) and len(conf.children(above)) == 1:
        path, above = above, above[:-1]  # a section without keys goes with its last one
    text = "" if change.advised is None else f"{path[-1]}: {_value(change.advised, conf)}"
    if path in conf.marks:
        start, column = conf.marks[path].line - 1, conf.marks[path].column - 1
        stop = end_of(lines, start + 1, column + 1)
        comment = re.search(r"(?:\s+#.*)?$", lines[start].rstrip())
        lines[start:stop] = [f"{' ' * column}{text}{comment[0] if comment else ''}{lines[start][len(lines[start].rstrip()) :]}"] * bool(
            text
        )
        return lines
    section = "" if (siblings := conf.children(above)) else f"{above[-1]}:"
    first = (siblings or conf.children(above[:-1]))[0]
    place, indent = end_of(lines, first.line - 1, first.column - 1), " " * (first.column - 1)
    lines[place:place] = [f"{indent}{line}{lines[0][len(lines[0].rstrip()) :]}" for line in ([section, f"  {text}"] if section else [text])]
    return lines


def _value(text: str, conf: FlinkFile) -> str:
    """A value for YAML, in quotes where it would read something else."""
    is_odd = re.search(r"[#{}\[\],&*?|<>=!%@`]|: ", text) or (conf.kind and conf.kind != "ConfigMap" and _NOT_TEXT.fullmatch(text))
    return json.dumps(text) if is_odd else text
