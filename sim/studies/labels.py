"""Labels of strategies: the values of the axes in which the scenarios of a study differ."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sim.model.scenario import Scenario


def is_of_workload(axis: str) -> bool:
    """Return True if an axis belongs to the workload or the environment, and not to the strategy."""
    return axis.startswith(("job.", "storage.", "cluster.", "faults", "run.", "overheads."))


def label(scenario: Scenario, is_chosen: Callable[[str], bool] = lambda _: True) -> str:
    """Return the label of a strategy: name and value of each axis for which `is_chosen` is True; barrier modes have no name.

    Without axes, the label is the barrier mode, or ``no checkpoints``.
    """
    if not scenario.axes:
        return "no checkpoints" if scenario.checkpoint.interval_ns is None else str(scenario.checkpoint.barriers)
    axes = [(axis, value) for axis, value in scenario.axes if is_chosen(axis)]
    names = _short_names([axis for axis, _ in scenario.axes])
    return ", ".join(
        value if axis.endswith("barriers") or not axis else f"{names[axis]} {value}" for axis, value in axes
    )


def _short_names(axes: Sequence[str]) -> dict[str, str]:
    """Return the last part of the key of each axis, with the first part that differs from another axis of the same name."""
    names = {}
    for axis in axes:
        *parts, name = axis.split(".")
        others = [other.split(".")[:-1] for other in axes if other != axis and other.rpartition(".")[2] == name]
        differing = (part for part, *same in zip(parts, *others) if set(same) != {part})  # noqa: B905 - of any length
        names[axis] = f"{next(differing, '')} {name}".strip() if others else name
    return names
