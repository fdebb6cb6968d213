"""An advice as a patch of the user's own file of Flink's configuration, and the patch that takes it back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import unified_diff
from typing import Any

from sim.advice.answer.configuration import KeyChange
from sim.advice.conf_file import ConfFile

PATCH, PATCH_BACK = "flink-conf.patch", "flink-conf.rollback.patch"


def patches(found: Sequence[KeyChange], conf: ConfFile) -> dict[str, str]:
    """Name -> unified diff, for ``patch FILE < NAME``.  The way back restores the file to the byte."""
    before = _lines(conf.text)
    after = list(before)
    for change in found:
        _put(after, change)
    return {PATCH: _diff(before, after, conf.name), PATCH_BACK: _diff(after, before, conf.name)}


def _lines(text: str) -> list[str]:
    """The lines with their ends; a last line without one gets one, as `patch` wants."""
    lines = text.splitlines(keepends=True)
    return [*lines[:-1], lines[-1] if lines[-1].endswith("\n") else f"{lines[-1]}\n"] if lines else []


def _put(lines: list[str], change: KeyChange) -> None:
    """The line of the key with its new value, in place of all that it had; a new key comes last."""
    places = [i for i, line in enumerate(lines) if re.match(rf'\s*"?{re.escape(change.key)}"?\s*:', line)]
    written = [] if change.advised is None else [f"{change.key}: {_value(change.advised)}\n"]
    for place in reversed(places[1:]):
        del lines[place]
    if places:
        lines[places[0] : places[0] + 1] = written
    else:
        lines += written


def _value(value: Any) -> str:
    """A value for YAML, in quotes where it would read something else."""
    text = str(value)
    return f'"{text}"' if re.search(r"[#{}\[\],&*?|<>=!%@`]|: ", text) else text


def _diff(before: list[str], after: list[str], name: str) -> str:
    return "".join(unified_diff(before, after, name, name))
