"""``key.path=v1,v2`` of the command line -> a list in the scenario, which is an axis there."""

from __future__ import annotations

__all__ = ["override"]


def override(axis: str) -> str:
    """``checkpoint.interval=10 s,30 s`` -> ``checkpoint.interval=[10 s,30 s]``, which YAML divides at the right commas."""
    key, equals, text = axis.partition("=")
    return f"{key}{equals}[{text}]" if text.strip() else axis
