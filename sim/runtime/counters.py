"""Totals of tasks over all their attempts: a restored task's `served` goes back, what it has done does not."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sim.plane.seam.interface import DataPlane


class Counters:
    """Totals of all tasks over their attempts."""

    def __init__(self, plane: DataPlane, tasks: int) -> None:
        self.plane = plane
        self.before = np.zeros(tasks, dtype=np.int64)
        """Served by earlier attempts, beyond where the present one began.  Another array after each restart."""

    def restart(self, positions: Mapping[int, int]) -> None:
        """These tasks will stand at these ordinals again; call it while they stand where they failed."""
        served, self.before = self.plane.served(), self.before.copy()
        for task, position in positions.items():
            self.before[task] += int(served[task]) - position

    def rows(self, *columns: str) -> np.ndarray:
        """The plane's rows of tasks, of these columns (`served` among them) or all.

        `served` is over all attempts: records served again count again.
        """
        rows = self.plane.tasks(*columns)
        rows["served"] += self.before
        return rows
