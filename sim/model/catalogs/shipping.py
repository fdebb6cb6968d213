"""The ways to ship records over an edge, Flink's ship strategies: one record each.

What the plane does is one of its routings; documents, recordings, recovery and envelope read the record.
"""

from __future__ import annotations

from dataclasses import dataclass

from sim.model.catalogs.catalog import Catalog


@dataclass(frozen=True, slots=True)
class Shipping:
    """A way to ship records over an edge."""

    name: str  # as a scenario writes it; capitals in Flink's plans
    routing: str  # of the plane: a name of its Ship
    pointwise: bool = False  # a writer reaches some of the readers only
    one_to_one: bool = False  # ... exactly one: between unequal parallelisms Flink takes rebalance instead
    keyed: bool = False  # the reader of a record is the owner of its key group
    copies: bool = False  # every reader gets every record
    to_one: bool = False  # the first reader gets every record
    overtaken: bool = True  # its channels can store in-flight data: unaligned barriers are supported
    answers_to: tuple[str, ...] = ()  # what programs call it, in small letters


SHIPPING: Catalog[Shipping] = Catalog(
    Shipping("forward", "FORWARD", pointwise=True, one_to_one=True, overtaken=False),
    Shipping("rescale", "RESCALE", pointwise=True, overtaken=False),
    Shipping("rebalance", "REBALANCE"),
    Shipping("hash", "HASH", keyed=True, answers_to=("keyby", "keyed")),
    Shipping("broadcast", "BROADCAST", copies=True, overtaken=False),
    Shipping("global", "GLOBAL", to_one=True),
)


def shipping_of(word: str) -> Shipping:
    """The way that a scenario or a program calls so.  StopIteration: there is none."""
    return next(way for way in SHIPPING.values() if word in (way.name, *way.answers_to))
