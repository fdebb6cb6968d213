"""Changes of a scenario as Python has them -> ``key=value``, as the command has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from sim.sweeps.file.design import override

Changes: TypeAlias = Mapping[str, Any] | Sequence[str]
"""``{"checkpoint.interval": "10 s"}``, or ``["checkpoint.interval=10 s"]`` as after ``--set``.  A list of values is an axis."""

_EXPECTED = """expected {"checkpoint.interval": "10 s"} or ["checkpoint.interval=10 s"]"""


def lines_of(changes: Changes | Any) -> list[str]:
    """TypeError: neither a mapping from keys to values nor a list of ``key=value``."""
    if isinstance(changes, Mapping):
        if wrong := [key for key in changes if not isinstance(key, str)]:
            raise TypeError(f"changes: {_EXPECTED}, and {wrong[0]!r} is no key")
        return [override(key, value) for key, value in changes.items()]
    if isinstance(changes, str) or not isinstance(changes, Sequence) or not all(isinstance(line, str) for line in changes):
        raise TypeError(f"changes: {_EXPECTED}, not {type(changes).__name__}")
    return list(changes)


def lists_of(axes: Mapping[str, Sequence[Any]] | Any) -> list[str]:
    """TypeError: the values of an axis are no list."""
    if not isinstance(axes, Mapping):
        raise TypeError(f'axes: expected {{"checkpoint.interval": ["10 s", "30 s"]}}, not {type(axes).__name__}')
    for key, values in axes.items():
        if isinstance(values, str) or not isinstance(values, Sequence) or not values:
            raise TypeError(f'axes: the values of {key} are no list: write {{"{key}": ["10 s", "30 s"]}}')
    return [override(key, list(values)) for key, values in axes.items()]
