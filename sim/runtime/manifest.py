"""The manifest of a run: effective scenario, seed and code version.

Runs with the same manifest have results that are identical to the byte, on any engine and machine.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Callable
from fractions import Fraction
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from sim.model.packed_records import PackedRecords
from sim.model.scenario import Scenario

SERIES_ITEMS = 32
"""Minimum items of a tuple that is hashed as a whole, because scenarios may share it (a rate series)."""
_SCALAR_TYPES = {str, int, float, bool, type(None)}
_PACKAGE = Path(__file__).parents[1]
_PARTS = tuple(
    field.name
    for field in dataclasses.fields(Scenario)
    if field.name not in {"question", "name", "axes", "expect", "run", "written_keys", "left_out"}
)
"""The fields of a scenario that its results depend on.  `run` is hashed separately, because it contains the seed."""


def manifest(scenario: Scenario) -> dict[str, Any]:
    """Return a description of a run that can be written as JSON.  It does not contain the engine, which has no effect on results."""
    return {"scenario": _plain(scenario), "seed": scenario.run.seed, "code_version": code_version()}


def identity(scenario: Scenario) -> str:
    """Return the hash of the manifest, which is used as a file name of results.

    With it a sweep can resume and never mixes results of different versions.  Name, question and expectations of a
    scenario do not change it, because they do not change the run.
    """
    return identity_of(content(scenario), scenario.run.seed)


def content(scenario: Scenario) -> bytes:
    """Return the hash of the manifest without its seed.  Parts that scenarios share are hashed once."""
    parts = [_digest(_Same(getattr(scenario, name))) for name in _PARTS]
    return hashlib.blake2b(_text([parts, _run(_Same(scenario.run)), code_version()]).encode(), digest_size=16).digest()


def identity_of(run: bytes, seed: int) -> str:
    """Return the identity of a run with this `content` and seed."""
    return hashlib.blake2b(run + b"%d" % seed, digest_size=10).hexdigest()


@cache
def code_version() -> str:
    """Return a hash of the package's source.  Every change of the code is a new version."""
    digest = hashlib.blake2b(digest_size=8)
    inside = len(str(_PACKAGE))
    for file in sorted(
        f"{folder}/{name}" for folder, _, names in os.walk(_PACKAGE) for name in names if name.endswith(".py")
    ):
        digest.update(file[inside:].encode() + b"\0" + Path(file).read_bytes() + b"\0")
    return digest.hexdigest()


def _plain(value: Any, short: Callable[[_Same], Any] | None = None) -> Any:
    """Return a value as JSON values.  `short` returns a replacement for a long tuple; by default all its items are included."""
    kind: Any = type(value)
    if kind in _SCALAR_TYPES:  # most values
        return value
    if kind is Fraction:
        return str(value)
    if isinstance(value, (list, tuple, PackedRecords)):
        if short is not None and len(value) >= SERIES_ITEMS and kind in {tuple, PackedRecords}:
            return short(_Same(value))
        return [_plain(item, short) for item in value]
    if names := _names(kind):
        return {name: _plain(getattr(value, name), short) for name in names}
    return value


class _Same:
    """A key for caches: it is compared by the identity of its value, not by content."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value


@lru_cache(maxsize=4096)
def _digest(part: _Same) -> str:
    """Return the hash of a long tuple or of a part of a scenario.  Cached, because the settings of a sweep share their rate series."""
    value = part.value
    plain = (
        [_plain(item, _digest) for item in value]
        if isinstance(value, (tuple, PackedRecords))
        else _plain(value, _digest)
    )
    return hashlib.blake2b(_text(plain).encode(), digest_size=16).hexdigest()


@lru_cache(maxsize=64)
def _run(run: _Same) -> dict[str, Any]:
    """Return the fields of `run` except for the seed."""
    return {name: value for name, value in _plain(run.value).items() if name != "seed"}


def _text(plain: Any) -> str:
    return json.dumps(plain, sort_keys=True, separators=(",", ":"))


@cache
def _names(kind: type) -> tuple[str, ...]:
    """Return the field names of a dataclass, or () for other types.  Cached, because a rate series has thousands of values."""
    return tuple(field.name for field in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else ()
