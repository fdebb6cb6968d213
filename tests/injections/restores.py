"""Bugs of restores: what a checkpoint holds of records, state and transactions, and how tasks, jobs and rescales go on from it."""

from dataclasses import replace
from functools import partial

import numpy as np

from sim.plane.kernel import KernelPlane
from sim.runtime import simulate
from sim.runtime.context import Contents
from sim.runtime.jobmanager.restore import Restore
from sim.runtime.jobmanager.snapshot_files import SnapshotFiles
from sim.runtime.task.subtask_state import SubtaskState
from tests.injections.injection import Injections
from tests.injections.restoring_worlds import WORLDS

INJECTIONS = Injections("restores")
add = INJECTIONS.add

UNALIGNED, RESCALED, CLAIMED = WORLDS["unaligned"], WORLDS["rescaled"], WORLDS["claimed"]


def moved(start, **columns):
    return replace(start, position=start.position._replace(**columns))


def skipping(start, records):
    """A source goes on so many records further, or back."""
    return start if len(start.position.consumed) else moved(start, served=max(0, start.position.served + records))


def without_input(start):
    return moved(start, captured=np.zeros_like(start.position.captured))


def without_transactions(start):
    return replace(start, committables=None)


def of_task(change, original):
    """A change of what a restored task is given."""

    def part(self, task):
        return change(original(self, task)) if self.checkpoint else original(self, task)

    return part


def of_all_tasks(change, original):
    """A change of what the tasks of the next job, or of the rescaled one, begin with."""
    return lambda *args: {task: change(start) for task, start in original(*args).items()}


OF_A_TASK = {
    "a source skips five records": lambda start: skipping(start, 5),
    "a source repeats five records": lambda start: skipping(start, -5),
    "a reader skips a record": lambda start: moved(
        start, served=start.position.served + (len(start.position.consumed) > 0)
    ),
    "a channel counts a record too many": lambda start: moved(
        start, records_written=start.position.records_written + 1
    ),
    "requests under way are forgotten": lambda start: moved(start, late=0),
    "captured input is not read again": without_input,
    "overtaken output is not sent again": lambda start: moved(start, overtaken=np.zeros_like(start.position.overtaken)),
    "list state is not restored": lambda start: replace(
        start, parts=tuple((replace(snapshot, operator=[]), share) for snapshot, share in start.parts)
    ),
    "transactions in a checkpoint are forgotten": without_transactions,
}
OF_THE_NEXT_JOB = {
    "sources of the next job skip records": lambda start: skipping(start, 7),
    "the next job begins without state": lambda start: replace(start, parts=()),
    "the next job begins without transactions": without_transactions,
    "the next job begins without captured input": without_input,
}
OF_A_RESCALED_JOB = {
    "sources of a rescaled job skip records": lambda start: skipping(start, 7),
    "a rescale forgets requests": lambda start: moved(start, late=0),
    "a rescale forgets transactions": without_transactions,
    "a rescale forgets what writers hold back": lambda start: replace(start, held_back=()),
}
for changes, change_of, *place in (
    (OF_A_TASK, of_task, Restore, "_part", UNALIGNED),
    (OF_THE_NEXT_JOB, of_all_tasks, SnapshotFiles, "parts", CLAIMED),
    (OF_A_RESCALED_JOB, of_all_tasks, simulate, "redistribute", RESCALED),
):
    for bug, change in changes.items():
        INJECTIONS.record(bug, *place, partial(change_of, change))


# ---------------------------------------------------------------------------------------------- positions


@add(KernelPlane, "bare_position", UNALIGNED)
def snapshots_hold_an_old_offset(original):
    """Snapshots hold the offset that a source had five records ago."""
    return lambda self, task: (
        original(self, task)
        if self.layout.task_gates[task]
        else original(self, task)._replace(served=max(0, original(self, task).served - 5))
    )


@add(KernelPlane, "position", UNALIGNED)
def snapshots_count_a_record_too_many(original):
    """Snapshots hold one record too many as read."""

    def position(self, task):
        here = original(self, task)
        return here._replace(records_read=here.records_read + 1)

    return position


@add(Restore, "__init__", UNALIGNED)
def a_restart_goes_back_to_the_beginning(original):
    """A restart goes back to the beginning."""

    def init(self, *args):
        original(self, *args)
        self.checkpoint = 0

    return init


# ---------------------------------------------------------------------------------------------- records in flight


@add(Contents, "in_flight_final", UNALIGNED)
def the_capture_ends_early(original):
    """The capture of each channel ends 100 bytes early."""

    def final(self, checkpoint, task, **sides):
        original(self, checkpoint, task, **sides)
        if (start := self.of(checkpoint, task)) is not None:
            start.position = start.position._replace(captured=np.maximum(start.position.captured - 100, 0))

    return final


# ---------------------------------------------------------------------------------------------- state


@add(Restore, "_part", UNALIGNED)
def a_subtask_gets_the_state_of_its_neighbour(original):
    """A subtask gets the state of its neighbour."""

    def part(self, task):
        vertex = self.context.layout.vertex
        same = [t for t, other in enumerate(vertex) if other == vertex[task]]
        neighbour = self.context.contents.of(self.checkpoint, same[same.index(task) - 1])
        return original(self, task) if neighbour is None else replace(original(self, task), parts=neighbour.parts)

    return part


@add(Contents, "stored", UNALIGNED)
def files_of_the_first_checkpoint_are_named(original):
    """Checkpoints keep naming the files of the first one."""
    first = {}

    def stored(self, checkpoint, task, state_bytes, files):
        original(self, checkpoint, task, state_bytes, first.setdefault((id(self), task), files))

    return stored


@add(SubtaskState, "restore", UNALIGNED)
def state_goes_on_too_early(original):
    """State goes on as after five records fewer."""

    def restore(self, checkpoint, parts, served, *union):
        return (yield from original(self, checkpoint, parts, max(0, served - 5), *union))

    return restore


@add(SubtaskState, "close", UNALIGNED)
def the_tail_of_the_log_is_left_out(original):
    """The tail of the changelog is not part of a snapshot."""

    def close(self, checkpoint):
        snapshot = original(self, checkpoint)
        return replace(snapshot, handles=snapshot.handles[:-1]) if snapshot.logged else snapshot

    return close
