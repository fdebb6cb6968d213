"""The decorator of immutable classes, which are most classes of this package."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def frozen(kind: type[T]) -> type[T]:
    """Make a class a dataclass whose instances are immutable and have slots, as `attrs.frozen` does."""
    return dataclass(frozen=True, slots=True)(kind)
