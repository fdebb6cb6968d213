"""A list where one value is expected is an axis that has a name, or a mistake: of every key that random worlds write."""

import copy
from functools import cache

import pytest

from sim.model.schema.axes import find_axes
from sim.model.schema.reference import all_keys
from sim.model.schema.text import Reading, compose
from sim.model.schema.validation import validate
from sim.model.schema.writer import write
from tests.worlds.generator import document

SEEDS = range(150)
LISTS = {"checkpoint.forced-aligned"}
"""Keys whose value is a list, and may be one word."""


def leaves(node, path=()):
    """(path, value) of all single values in a document."""
    if isinstance(node, dict):
        for key, value in node.items():
            yield from leaves(value, (*path, str(key)))
    elif isinstance(node, list):
        for i, value in enumerate(node):
            yield from leaves(value, (*path, i))
    else:
        yield path, node


@cache
def composed(seed):
    """The world as a reader of files has it, and where each value stands."""
    reading = Reading("s")
    return compose(write(document(seed), "?"), reading), reading.marks


def with_list(seed, path, value):
    """The world with a list of one value in the place of that value."""
    plain, marks = composed(seed)
    node = plain = copy.deepcopy(plain)
    for step in path[:-1]:
        node = node[step]
    node[path[-1]] = [value]
    reading = Reading("s")
    reading.marks.update(marks)
    return plain, reading


def key_of(path):
    """As the reference names it."""
    steps = [step for step in path if isinstance(step, str)]
    if steps[0] != "job":
        return ".".join(steps)
    named = steps[2:3] if steps[2] in ("input", "outputs", "service-factor") else []
    return ".".join(["job", "VERTEX", *named, *steps[2 + 2 * len(named) :]])


@cache
def found_places():
    """Up to two places in random worlds for each key that one of them writes, with different values."""
    places = {}
    for seed in SEEDS:
        for path, value in leaves(document(seed)):
            if path[0] not in ("flink", "version"):
                own = places.setdefault(key_of(path), [])
                if len(own) < 2 and value not in [other for _, _, other in own]:
                    own.append((seed, path, value))
    return places


def test_most_keys_of_a_scenario_have_such_a_place():
    keys = {
        reference.key for reference in all_keys() if not reference.keys and not reference.key.startswith("backtest.")
    }

    assert len(found_places()) > 250
    assert len(keys & found_places().keys()) > 0.8 * len(keys), sorted(keys - found_places().keys())


@pytest.mark.parametrize(
    "section", ["job", "checkpoint", "cluster", "storage", "run", "faults restart rescale actions", "overheads"]
)
def test_a_list_in_the_place_of_a_value_is_an_axis_or_a_mistake(section):
    own = {key: places[0] for key, places in found_places().items() if key.partition(".")[0] in section.split()}
    silent = []
    for key, (seed, path, value) in own.items():
        plain, reading = with_list(seed, path, value)
        checked = validate(plain, reading)
        if not reading.problems and [path] != [axis.path for axis in find_axes(checked, plain, reading)]:
            silent.append(key)

    assert len(own) > 2
    assert [key for key in silent if key not in LISTS] == []
