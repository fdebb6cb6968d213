"""Values whose fields the type checker makes read-only.  Nothing refuses an assignment while a simulation runs.

`dataclass(frozen=True)` would refuse it, but makes each value slower: it sets every field through a function.
A checkpoint makes forty such values per task.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value_class(kind: type[T]) -> type[T]:
    """A dataclass with slots and a hash of its fields.  mypy refuses assignments to them."""
    return dataclass(slots=True, unsafe_hash=True)(kind)
