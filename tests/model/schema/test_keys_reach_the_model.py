"""Each key that random worlds write becomes a value of the model, in its unit: of every option that is a single value."""

import re
from fractions import Fraction
from functools import cache

import pytest

from sim.model.job import Distribution
from sim.model.schema.flink_keys import document_options
from sim.model.schema.option_values import option_holders
from sim.model.schema.study import loads
from sim.model.schema.text import dotted, write
from tests.model.schema.test_axes_of_scenarios import found_places
from tests.worlds.generator import FOLDER, document

UNITS = {"us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9}
UNITS |= {"B": 1, "kB": 10**3, "KiB": 2**10, "MB": 10**6, "%": Fraction(1, 100), "/s": 1, "k": 1000}
WORDS = {"on": True, "off": False, "true": True, "false": False, "unlimited": None, "never": -1, "auto": -1}
OF_ANOTHER_FORM = {
    "cluster.services": "is a word for a boolean",
    "job.VERTEX.state.ttl-checks": "counts only with a ttl",
    "job.VERTEX.state.ttl-filter": "the same",
    "cluster.network.debloat.threshold": "a whole number of percent",
}
OPTIONS = {
    key.dotted: key
    for key in document_options()
    if key.record.leaf is not None and key.dotted in found_places() and key.dotted not in OF_ANOTHER_FORM
}


def in_the_model(written):
    if isinstance(written, str) and (match := re.fullmatch(r"([\d.]+) ?([a-zA-Z%]+|/s)(?:/s)?", written)):
        return Fraction(match[1]) * UNITS[match[2]]
    if isinstance(written, str | bool):
        return WORDS.get(written, written)
    return Fraction(str(written))


@cache
def world(seed):
    """All parts of the model, and the paths of keys that have no effect there."""
    study = loads(write(document(seed), "?"), folder=FOLDER)
    return list(option_holders(study.scenarios[0])), tuple(warning.path for warning in study.warnings)


def values(key, seed):
    found = {getattr(part, key.record.field) for part in world(seed)[0] if isinstance(part, key.model)}
    return {value.mean if isinstance(value, Distribution) else value for value in found}


def test_most_options_are_written_by_some_world():
    assert len(OPTIONS) > 190


@pytest.mark.parametrize("section", sorted({key.partition(".")[0] for key in OPTIONS}))
def test_what_is_written_is_in_the_model(section):
    """Of two worlds that write another value of an option, each has its own."""
    lost = []
    for name, key in OPTIONS.items():
        for seed, path, written in found_places()[name] if name.startswith(section) else ():
            if dotted(path).startswith(world(seed)[1]):
                continue
            expected = in_the_model(written)
            # 0 means never, or no limit
            if not {expected, None if expected == 0 else expected} & values(key, seed):
                lost.append(f"{name}: {written}")

    assert lost == []
