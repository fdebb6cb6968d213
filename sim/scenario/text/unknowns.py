"""Where a scenario file says that a value is assumed: the comments that ``ckptsim import`` marks UNKNOWN, until they are answered."""

from __future__ import annotations

import re

_MARKED = re.compile(r"(?:^|\s)#\s*UNKNOWN:")
LISTED_LINES = 6  # lines named in one sentence


def assumed(text: str) -> str:
    """``3 values are assumed, see UNKNOWN in lines 4, 9, 17``; empty if there are none."""
    lines = [str(number) for number, line in enumerate(text.splitlines(), 1) if _MARKED.search(line)]
    if not lines:
        return ""
    places = ", ".join(lines[:LISTED_LINES]) + (" ..." if len(lines) > LISTED_LINES else "")
    plural = len(lines) > 1
    return f"{len(lines)} value{'s are' if plural else ' is'} assumed, see UNKNOWN in line{'s' if plural else ''} {places}"
