"""The rows of a world added up by vertex and by edge: they stand in that order, and no row is copied to be added."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sim.plane.kernel.rows import World
from sim.plane.kernel.tables import TOTALS, Column, column, summed, table, task_column
from sim.plane.seam.layout import Layout
from sim.plane.seam.spec import PlaneSpec

__all__ = ["Sums"]


class Sums:
    """Where the rows of each vertex and edge begin, to be found once."""

    def __init__(self, spec: PlaneSpec, layout: Layout) -> None:
        self._first_task = np.array(layout.first_task, np.int64)
        self._first_channel = np.array(layout.first_channel, np.int64)
        self._vertex = {  # by edge, at each of its ends
            "writer": np.array([edge.upstream for edge in spec.edges], np.int64),
            "reader": np.array([edge.downstream for edge in spec.edges], np.int64),
        }

    def vertices(self, world: World, now: int, columns: Sequence[str]) -> np.ndarray[Any, Any]:
        return table({name: self._of_tasks(world, now, name) for name in columns})

    def edges(self, world: World, columns: Sequence[str]) -> np.ndarray[Any, Any]:
        return table({name: self._of_channels(world, name) for name in columns})

    def _of_tasks(self, world: World, now: int, name: str) -> Column:
        if name == "served":
            return _added(_field(world.tasks, name), self._first_task)
        if name not in TOTALS:
            return _added(task_column(world, now, name), self._first_task)
        earlier, end, of_channel = TOTALS[name]
        of_attempt = summed(len(self._first_task), self._vertex[end], self._of_channels(world, of_channel))
        return _added(_field(world.tasks, earlier), self._first_task) + of_attempt

    def _of_channels(self, world: World, name: str) -> Column:
        channels = world.channels
        if name == "at_hand":
            at_hand = np.where(_field(channels, "local"), _field(channels, "queued"), _field(channels, "received"))
            return _added(at_hand, self._first_channel)
        return _added(_field(channels, name), self._first_channel)


def _field(rows: Any, name: str) -> Column:
    """One field of all rows, to be read at once: where rows are arrays it is no copy."""
    if isinstance(rows, list):
        return column(rows, name)
    values: Column = rows[name]
    return values


def _added(values: Column, first: Column) -> Column:
    """Values added up from each of these places to the next."""
    added: Column = np.add.reduceat(values, first, dtype=np.int64)
    return added
