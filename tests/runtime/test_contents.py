"""What a checkpoint holds of each task: its position, its files, its transactions, and how long it is kept."""

import numpy as np

from sim.plane.interface import Position
from sim.runtime.context import Uncommitted


def position(captured=(0, 0), overtaken=(0,), read=(3, 4)):
    none = np.zeros(2, np.int64)
    columns = (none, read, captured, none[:1], none[:1], overtaken)
    return Position(7, *(np.array(column, np.int64) for column in columns))


class TestTransactions:
    NAMES = (("sink", 0), ("sink", 1))

    def test_the_same_tasks_keep_their_numbers(self):
        """What is in flight goes on growing: it is the same list."""
        kept = Uncommitted(3, (), [])
        assert kept is kept.renumbered(self.NAMES, list(self.NAMES))
