"""Where two engines part: the first instant at which they differ, found by bisection, printed to be read.

Engines have no common inside, so an instant is looked at from outside.  Both are driven from the start to `until`; then
their notices and tables are compared.  How a plane is driven is the caller's business.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest

import numpy as np

from sim.plane.interface import NoticeKind

"""Drives a fresh plane to a time and returns what was seen on the way."""

TABLES = ("tasks", "channels", "partitions", "gates")
PRINTED_LINES = 20  # lines of a story


@dataclass(frozen=True, slots=True)
class Difference:
    """Just before `time` [ns] the engines were equal, at `time` they are not."""

    time: int
    lines: tuple[str, ...]

    def __str__(self):
        unprinted = len(self.lines) - PRINTED_LINES
        rest = [f"... and {unprinted} more"] if unprinted > 0 else []
        return "\n".join([f"the engines part at {self.time} ns:", *self.lines[:PRINTED_LINES], *rest])


def run_freely(plane, until):
    """Without a control plane: the notices up to `until`."""
    seen = []
    while (notice := plane.advance(until)).kind != NoticeKind.REACHED_TIME:
        seen.append(notice)
    return seen


def first_difference(expected, actual, until, drive=run_freely):
    """The first instant up to `until` [ns] at which the two differ; None: they do not."""

    def at(time):
        left, right = expected(), actual()
        return list(differences(drive(left, time), drive(right, time), left, right))

    lines = at(until)
    if not lines:
        return None
    equal, different = 0, until
    while different - equal > 1:
        middle = (equal + different) // 2
        found = at(middle)
        if found:
            different, lines = middle, found
        else:
            equal = middle
    return Difference(different, tuple(lines))


def differences(expected_steps, actual_steps, expected, actual):
    """The first step that differs, then every differing cell of the tables."""
    for i, (left, right) in enumerate(zip_longest(expected_steps, actual_steps)):
        if left != right:
            yield f"  step {i}: expected {left}"
            yield f"  step {i}: actual   {right}"
            break
    for name in TABLES:
        left, right = getattr(expected, name)(), getattr(actual, name)()
        yield from table_differences(name, left, right)
    for task in range(len(expected.tasks())):
        left, right = ([part.tolist() for part in map(np.asarray, plane.counted(task))] for plane in (expected, actual))
        if left != right:
            yield f"  counted({task}): expected {left}, actual {right}"


def table_differences(name, expected, actual):
    if expected.dtype.names != actual.dtype.names:
        yield f"  {name}: columns {expected.dtype.names} and {actual.dtype.names}"
        return
    if len(expected) != len(actual):
        yield f"  {name}: {len(expected)} and {len(actual)} rows"
        return
    for column in expected.dtype.names:
        for row in (expected[column] != actual[column]).nonzero()[0].tolist():
            yield f"  {name}[{row}].{column}: expected {expected[column][row]}, actual {actual[column][row]}"
