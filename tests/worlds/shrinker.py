"""A world that failed becomes small: parts are taken away as long as the same kind of finding remains.

What may be taken away, the largest first: sections, events, vertices, edges, keys; then values become plain.
"""

import time
from copy import deepcopy
from itertools import islice

from sim.model.schema.job import upstream_of
from tests.worlds.draw import rescales

NEEDED = {("version",), ("job",), ("checkpoint",), ("run",), ("run", "duration"), ("run", "seed")}
TOLERANT = {("checkpoint", "tolerable-failed"): 10**6}


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
    """One change each; the most promising first."""
    for key in [name for name in document if (name,) not in NEEDED]:
        yield _without(document, (key,))
    for name in reversed(document["job"]):
        if (without := _without_vertex(document, name)) is not None:
            yield without
    yield from _without_edges(document)
    for place, value in list(_walk(document, ())):
        if len(place) > 1 and place[:2] != ("job", place[-1]) and place not in NEEDED and not _is_needed(place):
            yield _without(document, place)
        yield from _plainer(document, place, value)


def _is_needed(place):
    """Edges go one by one and never all; without the others the file is none."""
    edge = place[0] == "job" and len(place) in (3, 4) and place[2] in ("input", "source") and place[3:] != ("record",)
    named = place[0] == "job" and place[2:3] == ("input",) and place[-1] == "from"
    return edge or named or place[-1] in ("ship", "at", "mean", "cv", "count", "nodes", "size")


def _walk(value, place):
    """Every place below, the outer ones first."""
    pairs = (
        list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    )
    for key, below in pairs:
        yield (*place, key), below
    for key, below in pairs:
        yield from _walk(below, (*place, key))


def _without(document, place):
    changed = deepcopy(document)
    del _at(changed, place[:-1])[place[-1]]
    return changed


def _with(document, place, value):
    changed = deepcopy(document)
    _at(changed, place[:-1])[place[-1]] = value
    return changed


def _at(document, place):
    for step in place:
        document = document[step]
    return document


def _without_vertex(document, name):
    """Its readers read what it read."""
    changed = deepcopy(document)
    gone = changed["job"].pop(name)
    for vertex in changed["job"].values():
        inputs = vertex.get("input", {})
        edges = [key for key, given in inputs.items() if upstream_of(key, given) == name]
        details = [inputs.pop(key) for key in edges]
        if name in edges:
            for key, given in gone.get("input", {}).items():
                inputs.setdefault(upstream_of(key, given), details[edges.index(name)])
        if edges and not inputs:
            return None
    options = changed["checkpoint"]
    if "forced-aligned" in options:
        options["forced-aligned"] = [edge for edge in options["forced-aligned"] if name not in edge.split(" -> ")]
    targets = [(fault, str(fault.get("kill", fault.get("slow", ""))).split("[")) for fault in changed.get("faults", [])]
    changed["faults"] = [fault for fault, target in targets if name not in target]
    for row in rescales(changed):
        row["parallelism"].pop(name, None)
    return changed


def _without_edges(document):
    for name, vertex in document["job"].items():
        inputs = vertex.get("input", {})
        if len(inputs) > 1:
            yield from (_without(document, ("job", name, "input", upstream)) for upstream in inputs)


def _plainer(document, place, value):
    """The same key with a value that is easier to read."""
    key = place[-1]
    if isinstance(value, dict):
        if len(value) == 1 and (kind := next(iter(value))) in (
            "exponential",
            "uniform",
            "lognormal",
            "erlang",
            "shifted-exponential",
        ):
            law = value[kind]
            yield _with(document, place, law["mean"] if isinstance(law, dict) else law)
        elif set(value) == {"ship"}:
            yield _with(document, place, value["ship"])
        elif place[-1] == "commit" and value == {}:
            yield _with(document, place, "two-phase")
    elif isinstance(value, list) and key in ("rate", "rate-per-subtask"):
        yield _with(document, place, value[0]["rate"])
    elif isinstance(value, int) and not isinstance(value, bool):
        yield from _smaller_numbers(document, place, value)
    elif key == "ship" or (len(place) == 4 and place[2] == "input"):
        if value not in ("hash", "forward"):
            yield _with(document, place, "hash")


def _smaller_numbers(document, place, value):
    key = place[-1]
    if key in ("parallelism", "files", "count", "max-concurrent") or (len(place) > 1 and place[-2] == "parallelism"):
        yield from (_with(document, place, less) for less in range(1, min(value, 4)))
    elif key == "seed" and value > 3:
        yield _with(document, place, 1)
    elif key in ("records", "records-per-subtask", "holds-back", "capacity"):
        yield from (
            _with(document, place, less) for less in (value // 4, value // 2, value * 3 // 4) if 0 < less < value
        )
    elif place in TOLERANT and value != TOLERANT[place]:
        yield _with(document, place, TOLERANT[place])
