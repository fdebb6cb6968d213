"""What a checkpoint holds of each task: its position, its files, its transactions, and how long it is kept."""

from types import SimpleNamespace

import numpy as np
import pytest

from sim.plane.interface import Position
from sim.protocol.commit import Committable
from sim.runtime.context import Contents, Uncommitted


def position(captured=(0, 0), overtaken=(0,), read=(3, 4)):
    none = np.zeros(2, np.int64)
    columns = (none, read, captured, none[:1], none[:1], overtaken)
    return Position(7, *(np.array(column, np.int64) for column in columns))


def committable(writer, epoch=3):
    return Committable(writer, epoch, ((0, 5),), 0, 100)


class TestTransactions:
    NAMES = (("sink", 0), ("sink", 1))

    def test_writers_have_other_numbers_in_another_job(self):
        kept = Uncommitted(3, (committable(0),), [committable(1)])
        moved = kept.renumbered(self.NAMES, (("source", 0), *self.NAMES))
        assert [row.writer for row in moved.all] == [1, 2]
        assert len(moved.in_flight) == 1
        assert moved.checkpoint == 3

    def test_the_same_tasks_keep_their_numbers(self):
        """What is in flight goes on growing: it is the same list."""
        kept = Uncommitted(3, (), [])
        assert kept is kept.renumbered(self.NAMES, list(self.NAMES))


class TestKeeping:
    @pytest.fixture
    def contents(self):
        return Contents(SimpleNamespace(bare_position=lambda _: position(), position=lambda _: position((1, 2), (5,))))

    def test_a_part_of_an_earlier_checkpoint_stands_for_a_task(self, contents):
        part = contents.cut(3, 1)
        assert part is contents.keep(4, 1, 3) is contents.of(4, 1)
