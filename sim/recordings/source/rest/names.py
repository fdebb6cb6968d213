"""Short names for the vertices of a real job: Flink's name lists all chained operators, at any length.

``Source: orders -> Map -> (Sink: Writer, Filter)`` becomes ``orders+map+writer+filter``: short to write, unique, and fit for a key.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

LONGEST = 40  # characters of a name, without the number that makes it unique
_OPEN, _CLOSE = "([{", ")]}"


def operators(vertex: str) -> list[str]:
    """The operators of a chain, in order; branches follow one another.  Arrows and commas inside an operator's brackets belong to it."""
    parts, depth, branches, start, i = [], 0, 0, 0, 0
    while i < len(vertex):
        step = 1
        if depth == 0 and vertex.startswith(" -> ", i):
            step = 4
            if vertex.startswith("(", i + 4):
                branches, step = branches + 1, 5
        elif depth == 0 and branches and vertex.startswith(", ", i):
            step = 2
        elif depth == 0 and branches and vertex[i] == ")":
            branches -= 1
        else:
            depth += (vertex[i] in _OPEN) - (vertex[i] in _CLOSE and depth > 0)
            i += 1
            continue
        parts.append(vertex[start:i])
        start = i = i + step
    parts.append(vertex[start:])
    return [part.strip() for part in parts if part.strip()]


def short_names(vertices: Sequence[str]) -> list[str]:
    """A name per vertex, all different."""
    names: list[str] = []
    numbers: dict[str, int] = {}  # how often a name occurred
    used: set[str] = set()
    for vertex in vertices:
        labels = [label for operator in operators(vertex) if (label := _label(operator))] or ["vertex"]
        name = "+".join(labels)
        if len(name) > LONGEST:
            name = labels[0][:LONGEST].rstrip("-") + (f"+{len(labels) - 1}" if len(labels) > 1 else "")
        first = numbers.get(name, 1)
        number = next(n for n in range(first, first + len(names) + 1) if (name if n == 1 else f"{name}-{n}") not in used)
        numbers[name] = number + 1
        names.append(name if number == 1 else f"{name}-{number}")
        used.add(names[-1])
    return names


def _label(operator: str) -> str:
    """A label for an operator: ``Source: Kafka Source`` -> ``kafka-source``; ``Calc[2](select=[a])`` -> ``calc-2``."""
    head = re.sub(r"^(?:Source|Sink|SinkWriter|SinkCommitter): *", "", re.sub(r"<[^>]*>", "", operator))
    head = re.sub(r"\[(\d+)\]", r" \1", head)
    head = re.split(r"[(\[{]", head)[0] or head
    return "-".join(re.findall(r"[a-z0-9_]+", head.lower()))
