"""What a run was: effective scenario, seed, code version.  Same manifest, same bytes, on any engine or machine."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

from sim.model.scenario import Scenario

__all__ = ["code_version", "identity", "manifest"]

_PACKAGE = Path(__file__).parents[2]


def manifest(scenario: Scenario) -> dict[str, Any]:
    """JSON-ready description of a run.  The engine is not part of it: all engines give the same bytes."""
    return {"scenario": _plain(scenario), "seed": scenario.run.seed, "code_version": code_version()}


def identity(scenario: Scenario) -> str:
    """Content hash of the manifest: names result files, so that a sweep can resume and never mixes versions.

    What a run is called, asked and expected to show is no part of it: another question about the same run needs no other run.
    """
    text = json.dumps(manifest(replace(scenario, question="", name="", axes=(), expect=())), sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=10).hexdigest()


@cache
def code_version() -> str:
    """Hash over the package's source: any change of the code is a new version."""
    digest = hashlib.blake2b(digest_size=8)
    for path in sorted(_PACKAGE.rglob("*.py")):
        digest.update(path.relative_to(_PACKAGE).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _plain(value: Any) -> Any:
    kind: Any = type(value)
    if kind is Fraction:
        return str(value)
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if names := _names(kind):
        return {name: _plain(getattr(value, name)) for name in names}
    return value


@cache
def _names(kind: type) -> tuple[str, ...]:
    """The fields of a dataclass; a rate series has thousands of values of one."""
    return tuple(field.name for field in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else ()
