"""Words put together: the beginning of a sentence, and a list in it."""

from __future__ import annotations

from collections.abc import Collection


def capitalised(text: str) -> str:
    """With a capital at its beginning; the rest stays as it is, unlike with `str.capitalize`."""
    return text[:1].upper() + text[1:]


def listed(names: Collection[str]) -> str:
    """``a, b and c``; empty: nothing."""
    *first, last = names or ("",)
    return f"{', '.join(first)} and {last}" if first else last
