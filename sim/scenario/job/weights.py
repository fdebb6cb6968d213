"""`weights:` of an input -> shares of the reader's subtasks, as they were counted or said."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from sim.model.catalogs.shipping import SHIPPING
from sim.model.key_groups import Excess, dealt, default_max_parallelism, key_groups
from sim.scenario.job import document as doc
from sim.scenario.text.problems import DocumentPath, Reading
from sim.units import format_share

_MOST_SAID = 8
"""Shares that a warning lists."""


def build_weights(given: doc.Input, readers: int, groups: int, here: DocumentPath, reading: Reading) -> tuple[Fraction, ...]:
    """Shares that add up to 1; mistakes go to `reading`."""
    weights = given.weights
    if weights is None:
        return ()
    if not SHIPPING[given.ship].keyed:
        reading.wrong(here, f"only hash has weights, not {given.ship}")
        return ()
    if isinstance(weights, doc.Skew):
        return _skew(weights, excess_of(given), readers, max(groups, readers), here, reading)
    if len(weights) != readers:
        how_many = f"{len(weights)} weights for {readers} subtasks"
        reading.wrong(here, f"{how_many}: write one each, or {{counted: [...]}} if they were counted at a parallelism of {len(weights)}")
        return ()
    return _shares(weights, here, reading)


def excess_of(given: doc.Input) -> Excess:
    """Where the hot keys of its weights are."""
    return "key-groups" if isinstance(given.weights, doc.Skew) and given.weights.excess == "key-groups" else "one-key"


def groups_of(given: doc.Vertex) -> int:
    """The key groups of a vertex."""
    return given.max_parallelism or default_max_parallelism(given.parallelism or 1)


def _skew(skew: doc.Skew, excess: Excess, readers: int, groups: int, here: DocumentPath, reading: Reading) -> tuple[Fraction, ...]:
    if skew.hot is not None:
        if skew.excess is not None:
            reading.warn((*here, "excess"), "has no effect: hot is one key already")
        return _hot(skew.hot, readers, groups) if readers > 1 else ()
    shares = _shares(skew.counted or [], here, reading)
    counted = len(shares)
    if counted > groups:
        reading.wrong((*here, "counted"), f"{counted} weights, more than the {groups} key groups")
        return ()
    if shares and counted != readers:
        kinds: tuple[Excess, Excess] = ("one-key", "key-groups") if excess == "one-key" else ("key-groups", "one-key")
        found, others = (dealt(shares, readers, groups, kind) for kind in kinds)
        listed = ", ".join(format_share(Fraction(round(1000 * share), 1000)) for share in found[:_MOST_SAID])
        what = "is one key, and stays in its key group" if excess == "one-key" else "is spread over its key groups"
        most, other = (format_share(Fraction(round(1000 * max(dealt_out)), 1000)) for dealt_out in (found, others))
        reading.warn(here, (
            f"counted at a parallelism of {counted}, dealt out to {readers} subtasks: {listed}{', ...' if readers > _MOST_SAID else ''}."
            f" What a subtask reads beyond the least {what}: the fullest gets {most} of the records. With excess: {kinds[1]} it gets "
            f"{other}; no answer of Flink counts records per key group, so what it limits lies between"
        ))  # fmt: skip
    return shares


def _shares(weights: Sequence[Fraction], here: DocumentPath, reading: Reading) -> tuple[Fraction, ...]:
    if (total := sum(weights)) == 0:
        reading.wrong(here, "all weights are 0: no subtask would get a record")
        return ()
    return tuple(Fraction(weight) / total for weight in weights)


def _hot(hot: Fraction, readers: int, groups: int) -> tuple[Fraction, ...]:
    """The first reader's share, and those of the others by their key groups."""
    others = [len(key_groups(i, readers, groups)) for i in range(1, readers)]
    return (hot, *[(1 - hot) * own / sum(others) for own in others])
