"""``key.path=v1,v2`` of the command line -> a list in the scenario, which is an axis there."""

from __future__ import annotations

__all__ = ["override"]

_OPEN, _CLOSE = "[{(", "]})"


def override(axis: str) -> str:
    """``checkpoint.interval=10 s,30 s`` -> ``checkpoint.interval=[10 s, 30 s]``; commas inside brackets or quotes divide nothing."""
    key, equals, text = axis.partition("=")
    return f"{key}{equals}[{', '.join(_split(text))}]" if text.strip() else axis


def _split(text: str) -> list[str]:
    values, depth, quote = [""], 0, ""
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        depth += (not quote) * ((letter in _OPEN) - (letter in _CLOSE))
        if letter == "," and depth == 0 and not quote:
            values.append("")
        else:
            values[-1] += letter
    return [value.strip() for value in values]
