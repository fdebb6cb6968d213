"""What a run was: effective scenario, seed, code version.  Same manifest, same bytes, on any engine or machine."""

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
"""Items of a tuple that counts as a series."""
_SCALAR_TYPES = {str, int, float, bool, type(None)}
_PACKAGE = Path(__file__).parents[1]
_PARTS = tuple(
    field.name
    for field in dataclasses.fields(Scenario)
    if field.name not in {"question", "name", "axes", "expect", "run", "written_keys"}
)
"""The fields of a scenario that its runs depend on.  The run itself is read apart: each seed has its own."""


def manifest(scenario: Scenario) -> dict[str, Any]:
    """JSON-ready description of a run.  The engine is not part of it: all engines give the same bytes."""
    return {"scenario": _plain(scenario), "seed": scenario.run.seed, "code_version": code_version()}


def identity(scenario: Scenario) -> str:
    """Content hash of the manifest: names result files, so that a sweep can resume and never mixes versions.

    What a run is called, asked and expected to show is no part of it: another question about the same run needs no
    other run.
    """
    return identity_of(content(scenario), scenario.run.seed)


def content(scenario: Scenario) -> bytes:
    """The hash of what a run is, but for its seed.  Parts that scenarios share are read once."""
    parts = [_digest(_Same(getattr(scenario, name))) for name in _PARTS]
    return hashlib.blake2b(_text([parts, _run(_Same(scenario.run)), code_version()]).encode(), digest_size=16).digest()


def identity_of(run: bytes, seed: int) -> str:
    """The identity of a run with this `content` and seed."""
    return hashlib.blake2b(run + b"%d" % seed, digest_size=10).hexdigest()


@cache
def code_version() -> str:
    """Hash over the package's source: any change of the code is a new version."""
    digest = hashlib.blake2b(digest_size=8)
    inside = len(str(_PACKAGE))
    for file in sorted(
        f"{folder}/{name}" for folder, _, names in os.walk(_PACKAGE) for name in names if name.endswith(".py")
    ):
        digest.update(file[inside:].encode() + b"\0" + Path(file).read_bytes() + b"\0")
    return digest.hexdigest()


def _plain(value: Any, short: Callable[[_Same], Any] | None = None) -> Any:
    """Values of JSON.  `short`: what stands for a long tuple instead of its items."""
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
    """A value that is equal to itself only: compared by identity, not by content."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value


@lru_cache(maxsize=4096)
def _digest(part: _Same) -> str:
    """The hash of a long tuple, or of a part of a scenario.  Settings of a sweep share the series of a window: it is read once."""
    value = part.value
    plain = (
        [_plain(item, _digest) for item in value]
        if isinstance(value, (tuple, PackedRecords))
        else _plain(value, _digest)
    )
    return hashlib.blake2b(_text(plain).encode(), digest_size=16).hexdigest()


@lru_cache(maxsize=64)
def _run(run: _Same) -> dict[str, Any]:
    """How long a run is and what it leaves out, without its seed."""
    return {name: value for name, value in _plain(run.value).items() if name != "seed"}


def _text(plain: Any) -> str:
    return json.dumps(plain, sort_keys=True, separators=(",", ":"))


@cache
def _names(kind: type) -> tuple[str, ...]:
    """The fields of a dataclass; a rate series has thousands of values of one."""
    return tuple(field.name for field in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else ()
