"""Names that people try on our objects, and what has it here: an unknown attribute says so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar


class Guessed:
    """An object that knows what is looked for under other names."""

    INSTEAD: ClassVar[Mapping[str, str]] = {}
    """Name -> what to write."""

    if not TYPE_CHECKING:  # a type checker shall know that they are not there

        def __getattr__(self, name: str) -> object:
            kind = type(self).__name__
            instead = type(self).INSTEAD.get(name)
            remedy = f": write {instead}" if instead else ""
            raise AttributeError(f"'{kind}' object has no attribute '{name}'{remedy}", name=name, obj=self)
