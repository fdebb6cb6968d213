"""A violation as a value: the law, when, where, the fact instead, and the shortest story that shows it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Violation:
    """A law that a run has broken."""

    law: str  # what must hold
    time_ns: int  # when it stopped holding
    where: str  # checkpoint, task, channel or file
    fact: str  # what holds instead
    story: tuple[str, ...] = ()  # what led to it, one line each

    def __str__(self) -> str:
        lines = [f"{at(self.time_ns)}  {self.where}: {self.fact}", f"  but: {self.law}"]
        return "\n".join([*lines, *(f"    {line}" for line in self.story)])


def at(time_ns: int) -> str:
    """A simulated time as stories show it: seconds, to the microsecond."""
    return f"{time_ns / 1e9:.6f} s"


def seconds(time_ns: int) -> str:
    """A simulated time in a fact: seconds, as many digits as it needs."""
    return f"{time_ns / 1e9:g} s"


def lasting(span_ns: int) -> str:
    """A span of simulated time: milliseconds."""
    return f"{span_ns / 1e6:g} ms"


def number_of(count: int, noun: str) -> str:
    """``1 record``, ``3 records``."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def count_is(count: int, noun: str) -> str:
    """``1 record is``, ``3 records are``."""
    return f"{number_of(count, noun)} {'is' if count == 1 else 'are'}"
