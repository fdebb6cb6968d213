"""What a checkpoint holds of each task: its position, its files, its transactions, and how long it is kept."""

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from sim.plane.interface import Position
from sim.protocol.commit import Committable
from sim.runtime.context import Contents, StateSnapshot, TaskSnapshot, Uncommitted
from sim.storage.state_files import File, FrozenState, Handle, WriteStep


def position(captured=(0, 0), overtaken=(0,), read=(3, 4)):
    none = np.zeros(2, np.int64)
    columns = (none, read, captured, none[:1], none[:1], overtaken)
    return Position(7, *(np.array(column, np.int64) for column in columns))


def committable(writer, epoch=3):
    return Committable(writer, epoch, ((0, 5),), 0, 100)


def handle(name, file):
    return Handle(name, 10, "exclusive", file)


class TestStateSnapshots:
    def test_what_a_restore_reads_and_what_was_written(self):
        """Reused files are read again, and were not written for it."""
        keyed = FrozenState(steps=(WriteStep((File("a", 100, "shared"),)),), reused=(Handle("b", 40, "shared", 1),))
        snapshot = StateSnapshot("checkpoint", keyed, operator_bytes=5, window_bytes=2)
        assert (snapshot.full_bytes, snapshot.written_bytes) == (147, 107)

    def test_its_files_are_those_of_all_kinds(self):
        snapshot = StateSnapshot("checkpoint", FrozenState(), 0)
        snapshot.handles, snapshot.windows, snapshot.operator = [handle("k", 1)], [handle("w", 2)], [handle("o", 3)]
        assert [row.file for row in snapshot.all_handles] == [1, 2, 3]


class TestParts:
    def part(self, **fields):
        return TaskSnapshot(
            3, position(**{name: fields.pop(name) for name in ("captured", "overtaken") if name in fields}), **fields
        )

    def test_what_was_captured_is_in_flight(self):
        assert self.part(captured=(1, 2), overtaken=(5,)).in_flight_bytes == 1 + 2 + 5

    @pytest.mark.parametrize("read_bytes", [0, 90])
    def test_a_rescaled_part_says_what_is_read(self, read_bytes):
        assert read_bytes == self.part(captured=(1, 2), read_bytes=read_bytes).in_flight_bytes

    def test_a_writer_has_written_what_it_does_not_hold_back(self):
        assert self.part().written == (3, 4)
        assert self.part(held_back=(1, 3)).written == (2, 1)

    def test_its_files_include_that_of_its_channels(self):
        snapshot = StateSnapshot("checkpoint", FrozenState(), 0, operator=[handle("o", 3)])
        part = self.part(parts=((snapshot, Fraction(1)),))
        assert part.holds_state
        assert [row.file for row in part.handles] == [3]
        part.channel_file = 9
        assert [(row.file, row.name) for row in part.handles] == [(3, "o"), (9, "channel-state")]
        assert part.handles[-1].scope == "exclusive"

    def test_in_flight_data_is_no_state(self):
        assert not self.part(
            channel_file=9, parts=((StateSnapshot("checkpoint", FrozenState(), 5), Fraction(1)),)
        ).holds_state


class TestTransactions:
    NAMES = (("sink", 0), ("sink", 1))

    def test_both_kinds_are_held(self):
        rows = committable(0), committable(1)
        assert rows == Uncommitted(3, rows[:1], rows[1:]).all

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

    def test_a_cut_is_filled_and_heard_of(self, contents):
        heard = []
        contents.on_cut = lambda *facts: heard.append(facts)
        part = contents.cut(3, 1, lambda row: setattr(row, "state_bytes", 8), finished=True)
        assert (part.checkpoint, part.finished, part.state_bytes) == (3, True, 8)
        assert [(3, 1, part)] == heard
        assert part is contents.of(3, 1)

    def test_without_a_part_there_is_nothing(self, contents):
        contents.cut(3, 1)
        assert contents.of(3, 2) is None
        assert contents.of(4, 1) is None

    def test_a_part_of_an_earlier_checkpoint_stands_for_a_task(self, contents):
        part = contents.cut(3, 1)
        assert part is contents.keep(4, 1, 3) is contents.of(4, 1)

    @pytest.mark.parametrize(
        ("sides", "captured", "overtaken"),
        [((True, True), 3, 5), ((True, False), 3, 0), ((False, True), 0, 5), ((False, False), 0, 0)],
        ids=["both", "input", "output", "none"],
    )
    def test_channel_state_is_final_when_all_barriers_are_here(self, contents, sides, captured, overtaken):
        part = contents.cut(3, 1)
        contents.in_flight_final(3, 1, captured=sides[0], overtaken=sides[1])
        contents.in_flight_final(4, 1, captured=True, overtaken=True)
        assert (captured, overtaken) == (part.position.captured.sum(), part.position.overtaken.sum())

    def test_channel_state_lies_in_a_file_or_in_acknowledgements(self, contents):
        parts = [contents.cut(3, task) for task in (1, 2, 3)]
        contents.in_flight_final(3, 2, captured=True, overtaken=True)
        contents.in_flight_stored(3, [1, 7], 9)
        contents.in_flight_inlined(3, [2, 7])
        assert [part.channel_file for part in parts] == [9, None, None]
        assert [part.inlined_bytes for part in parts] == [0, 8, 0]

    def test_durable_state_is_all_of_the_task(self, contents):
        heard, files = [], StateSnapshot("checkpoint", FrozenState(), 0)
        contents.on_stored = lambda *facts: heard.append(facts)
        part = contents.cut(3, 1)
        contents.stored(3, 1, 70, files)
        contents.stored(4, 1, 70, files)
        assert (70, ((files, Fraction(1)),)) == (part.state_bytes, part.parts)
        assert [(3, 1, files)] == heard

    def test_older_checkpoints_go_unless_they_are_needed(self, contents):
        for checkpoint in (1, 2, 3, 4):
            contents.cut(checkpoint, 0)
        contents.completed(3, {1})
        assert list(contents.checkpoints) == [1, 3, 4]
        contents.forget(3)
        contents.forget(3)
        assert list(contents.checkpoints) == [1, 4]

    def test_another_job_takes_a_part_over(self, contents):
        part = TaskSnapshot(3, position(), committables=Uncommitted(3, (committable(0),)))
        contents.take_over(3, 1, part, [("sink", 0)], [("source", 0), ("sink", 0)])
        contents.take_over(3, 0, TaskSnapshot(3, position()), [("sink", 0)], [("source", 0), ("sink", 0)])
        assert [row.writer for row in contents.of(3, 1).committables.all] == [1]
        assert contents.of(3, 0).committables is None
