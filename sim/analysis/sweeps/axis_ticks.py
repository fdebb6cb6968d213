"""Ticks of an axis of values: round numbers of one unit, which every tick carries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.analysis.sweeps.measure import unit_of_ticks

if TYPE_CHECKING:
    from matplotlib.axis import Axis


def set_ticks(axis: Axis, column: str, most: int = 6) -> None:
    """Set at most `most` + 1 ticks, to be called when everything is drawn.

    Values are kept in the unit of `column`, where round numbers are odd ones for a reader: 150 s are 2.5 min.
    Rounded texts would repeat themselves where values lie close together.
    """
    from matplotlib.ticker import MaxNLocator

    low, high = sorted(axis.get_view_interval())
    ending, size = unit_of_ticks(column, max(abs(low), abs(high)))
    places = [place for place in MaxNLocator(most, steps=[1, 2, 5, 10]).tick_values(low / size, high / size) if low <= place * size <= high]
    axis.set_ticks([place * size for place in places], [f"{place:.6g}{ending}" for place in places])
