"""Bugs of restores: what a checkpoint holds of records, state and transactions, and how tasks, jobs and rescales go on from it."""

from dataclasses import replace

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


def of_task(original, change):
    """A change of what a restored task is given."""

    def part(self, task):
        return change(original(self, task)) if self.checkpoint else original(self, task)

    return part


def of_all_tasks(original, change):
    """A change of what the tasks of the next job, or of the rescaled one, begin with."""
    return lambda *args: {task: change(start) for task, start in original(*args).items()}


# ---------------------------------------------------------------------------------------------- positions


@add(Restore, "_part", UNALIGNED)
def a_source_skips_five_records(original):
    """A restarted source skips five records."""
    return of_task(original, lambda start: skipping(start, 5))


@add(Restore, "_part", UNALIGNED)
def a_source_repeats_five_records(original):
    """A restarted source repeats five records."""
    return of_task(original, lambda start: skipping(start, -5))


@add(KernelPlane, "bare_position", UNALIGNED)
def snapshots_hold_an_old_offset(original):
    """Snapshots hold the offset that a source had five records ago."""
    return lambda self, task: (
        original(self, task)
        if self.layout.task_gates[task]
        else original(self, task)._replace(served=max(0, original(self, task).served - 5))
    )


@add(Restore, "_part", UNALIGNED)
def a_reader_skips_a_record(original):
    """A task in the middle is restored one record too far."""
    return of_task(
        original,
        lambda start: moved(start, served=start.position.served + 1) if len(start.position.consumed) else start,
    )


@add(Restore, "_part", UNALIGNED)
def a_channel_counts_a_record_too_many(original):
    """A restored channel counts one record too many."""
    return of_task(original, lambda start: moved(start, records_written=start.position.records_written + 1))


@add(KernelPlane, "position", UNALIGNED)
def snapshots_count_a_record_too_many(original):
    """Snapshots hold one record too many as read."""

    def position(self, task):
        here = original(self, task)
        return here._replace(records_read=here.records_read + 1)

    return position


@add(Restore, "_part", UNALIGNED)
def requests_under_way_are_forgotten(original):
    """The requests under way are not made again after a restart."""
    return of_task(original, lambda start: moved(start, late=0))


@add(Restore, "__init__", UNALIGNED)
def a_restart_goes_back_to_the_beginning(original):
    """A restart goes back to the beginning."""

    def init(self, *args):
        original(self, *args)
        self.checkpoint = 0

    return init


# ---------------------------------------------------------------------------------------------- records in flight


@add(Restore, "_part", UNALIGNED)
def captured_input_is_not_read_again(original):
    """Captured input is not read again."""
    return of_task(original, lambda start: moved(start, captured=np.zeros_like(start.position.captured)))


@add(Contents, "in_flight_final", UNALIGNED)
def the_capture_ends_early(original):
    """The capture of each channel ends 100 bytes early."""

    def final(self, checkpoint, task, **sides):
        original(self, checkpoint, task, **sides)
        if (start := self.of(checkpoint, task)) is not None:
            start.position = start.position._replace(captured=np.maximum(start.position.captured - 100, 0))

    return final


@add(Restore, "_part", UNALIGNED)
def overtaken_output_is_not_sent_again(original):
    """Overtaken output is not sent again."""
    return of_task(original, lambda start: moved(start, overtaken=np.zeros_like(start.position.overtaken)))


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


@add(Restore, "_part", UNALIGNED)
def list_state_is_not_restored(original):
    """The list state of operators is not restored."""

    def without(start):
        return replace(start, parts=tuple((replace(snapshot, operator=[]), share) for snapshot, share in start.parts))

    return of_task(original, without)


@add(SubtaskState, "close", UNALIGNED)
def the_tail_of_the_log_is_left_out(original):
    """The tail of the changelog is not part of a snapshot."""

    def close(self, checkpoint):
        snapshot = original(self, checkpoint)
        return replace(snapshot, handles=snapshot.handles[:-1]) if snapshot.logged else snapshot

    return close


# ---------------------------------------------------------------------------------------------- transactions, jobs, rescales


@add(Restore, "_part", UNALIGNED)
def transactions_in_a_checkpoint_are_forgotten(original):
    """The transactions in a checkpoint are forgotten."""
    return of_task(original, lambda start: replace(start, committables=None))


@add(SnapshotFiles, "parts", CLAIMED)
def sources_of_the_next_job_skip_records(original):
    """The sources of the next job skip seven records."""
    return of_all_tasks(original, lambda start: skipping(start, 7))


@add(SnapshotFiles, "parts", CLAIMED)
def the_next_job_begins_without_state(original):
    """The next job begins without state."""
    return of_all_tasks(original, lambda start: replace(start, parts=()))


@add(SnapshotFiles, "parts", CLAIMED)
def the_next_job_begins_without_transactions(original):
    """The next job begins without the transactions of the snapshot."""
    return of_all_tasks(original, lambda start: replace(start, committables=None))


@add(SnapshotFiles, "parts", CLAIMED)
def the_next_job_begins_without_captured_input(original):
    """The next job begins without captured input."""
    return of_all_tasks(original, lambda start: moved(start, captured=np.zeros_like(start.position.captured)))


@add(simulate, "redistribute", RESCALED)
def sources_of_a_rescaled_job_skip_records(original):
    """The sources of a rescaled job skip seven records."""
    return of_all_tasks(original, lambda start: skipping(start, 7))


@add(simulate, "redistribute", RESCALED)
def a_rescale_forgets_requests(original):
    """A rescale forgets the requests under way."""
    return of_all_tasks(original, lambda start: moved(start, late=0))


@add(simulate, "redistribute", RESCALED)
def a_rescale_forgets_transactions(original):
    """A rescale forgets transactions."""
    return of_all_tasks(original, lambda start: replace(start, committables=None))


@add(simulate, "redistribute", RESCALED)
def a_rescale_forgets_what_writers_hold_back(original):
    """A rescale forgets what writers hold back."""
    return of_all_tasks(original, lambda start: replace(start, held_back=()))
