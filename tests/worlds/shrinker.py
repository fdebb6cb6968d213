"""A world that failed becomes small: parts are taken away as long as the same kind of finding remains.

What is no scenario without such a part does not hold, so the shrinker knows little about scenarios.
"""

import time
from copy import deepcopy
from itertools import islice

from sim.model.schema.job import upstream_of

NEEDED = {("version",), ("job",), ("checkpoint",), ("run",), ("run", "seed")}


def shrink(document, holds, *, most_tries=1000, most_cpu_s=20):
    """The smallest document found for which `holds` is true; it is true for `document`."""
    left, smaller, began = most_tries, True, time.process_time()
    while smaller:
        smaller, place = False, 0
        while (
            left > 0
            and time.process_time() - began < most_cpu_s
            and (candidate := next(islice(_candidates(document), place, None), None)) is not None
        ):
            left -= 1
            if holds(candidate):
                document, smaller = candidate, True  # what stands at this place now is another change
            else:
                place += 1
    return document


def _candidates(document):
    """One change each: places taken away, the outer ones first, then values made plainer."""
    places = sorted(_walk(document, ()), key=lambda row: len(row[0]))
    yield from (_with(document, place) for place, _ in places if place not in NEEDED)
    yield from (_without_vertex(document, name) for name in reversed(document["job"]))
    for place, value in places:
        yield from (_with(document, place, plainer) for plainer in _plainer(value))


def _walk(value, place):
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in list(pairs):
        yield (*place, key), below
        yield from _walk(below, (*place, key))


def _with(document, place, *value):
    """A copy with another value at a place; without one, the place is taken away."""
    changed = deepcopy(document)
    *above, key = place
    node = changed
    for step in above:
        node = node[step]
    if value:
        (node[key],) = value
    else:
        del node[key]
    return changed


def _without_vertex(document, name):
    """Its readers read what it read."""
    changed = deepcopy(document)
    gone = changed["job"].pop(name)
    for vertex in changed["job"].values():
        inputs = vertex.get("input", {})
        for key in [key for key, given in inputs.items() if upstream_of(key, given) == name]:
            details = inputs.pop(key)
            inputs |= {upstream_of(above, given): details for above, given in gone.get("input", {}).items()}
    return changed


def _plainer(value):
    """A law's mean or an edge's ship strategy for all of it, smaller numbers."""
    if isinstance(value, dict):
        yield from (inner for _, inner in _walk(value, ()) if not isinstance(inner, dict | list))
    elif isinstance(value, int) and not isinstance(value, bool) and value > 1:
        yield from (1, value // 2)
