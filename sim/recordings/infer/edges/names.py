"""The names of a vertex's inputs in a scenario: several edges may lead from one vertex to it, and each needs a name of its own."""

from __future__ import annotations

from collections.abc import Collection, Sequence


def input_names(upstreams: Sequence[str], vertices: Collection[str]) -> list[str]:
    """The first edge from a vertex has its name; a further one the name with its number, unless a vertex is called so."""
    names: list[str] = []
    for upstream in upstreams:
        name, number = upstream, 1
        while name in names or (name != upstream and name in vertices):
            number += 1
            name = f"{upstream}-{number}"
        names.append(name)
    return names
