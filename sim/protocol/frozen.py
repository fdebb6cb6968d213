"""Values that never change: the type checker refuses an assignment, and no run pays for it.

`dataclass(frozen=True)` sets each field through a function that would refuse it later.  A checkpoint makes forty such values per task.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(kind: type[T]) -> type[T]:
    """A dataclass with slots and a hash.  mypy holds that its fields are read-only."""
    return dataclass(slots=True, unsafe_hash=True)(kind)
