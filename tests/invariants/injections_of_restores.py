"""Breaks of restores: what a checkpoint holds of records, state and transactions, and how tasks, jobs and rescales go on from it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from sim.plane.kernel import KernelPlane
from sim.protocol.options import Ending
from sim.protocol.task_finishing import DataEnded
from sim.runtime import lowering, redistribution, simulate
from sim.runtime.context import CommittedOutput, Contents, StateSnapshot
from sim.runtime.jobmanager.restore import Restore
from sim.runtime.jobmanager.snapshot_files import SnapshotFiles
from sim.runtime.task.end import TaskEnding
from sim.runtime.task.epochs import Epochs
from sim.runtime.task.sink import SinkCommitter, SinkWriter
from sim.runtime.task.subtask_state import SubtaskState
from tests.invariants.injection import around, injection


def on_restore(patch, change):
    """What a restored task is given."""
    around(
        patch,
        Restore,
        "_part",
        lambda start, restore, task: change(start, restore, task) if restore.checkpoint else start,
    )


def moved(start, **columns):
    return replace(start, position=start.position._replace(**columns))


def is_source(restore, task):
    return not restore.context.layout.task_gates[task]


# ---------------------------------------------------------------------------------------------- positions


@injection("source offset", "a source skips five records")
def _(patch):
    on_restore(
        patch,
        lambda start, restore, task: (
            moved(start, served=start.position.served + 5) if is_source(restore, task) else start
        ),
    )


@injection("source offset", "a source repeats five records")
def _(patch):
    def change(start, restore, task):
        return moved(start, served=max(0, start.position.served - 5)) if is_source(restore, task) else start

    on_restore(patch, change)


@injection("source offset", "snapshots hold the offset of five records ago")
def _(patch):
    def change(position, plane, task):
        return position if plane.layout.task_gates[task] else position._replace(served=max(0, position.served - 5))

    around(patch, KernelPlane, "bare_position", change)


@injection("middle position", "a task in the middle is restored one record too far")
def _(patch):
    on_restore(
        patch,
        lambda start, restore, task: (
            start if is_source(restore, task) else moved(start, served=start.position.served + 1)
        ),
    )


@injection("middle position", "a channel counts one record too many")
def _(patch):
    on_restore(
        patch,
        lambda start, *_: (
            moved(start, records_in=start.position.records_in + 1) if len(start.position.records_in) else start
        ),
    )


@injection("middle position", "snapshots hold the records read one too many")
def _(patch):
    around(patch, KernelPlane, "position", lambda position, *_: position._replace(records_out=position.records_out + 1))


@injection("async requests", "requests under way are forgotten")
def _(patch):
    on_restore(patch, lambda start, *_: moved(start, late=0))


@injection("checkpoint", "a restart goes back to the beginning")
def _(patch):
    around(patch, Restore, "__init__", lambda _, restore, *__: setattr(restore, "checkpoint", 0))


# ---------------------------------------------------------------------------------------------- the end of data


@injection("end of data", "a source ends five records early")
def _(patch):
    around(patch, lowering, "_source", lambda source, _: replace(source, total=source.total - 5))
    patch.setattr(TaskEnding, "exhausted", lambda ending: ending.dispatch(DataEnded(ending.slot.now, Ending.DRAIN)))


# ---------------------------------------------------------------------------------------------- records in flight


@injection("captured input", "captured input is not read again")
def _(patch):
    on_restore(patch, lambda start, *_: moved(start, captured=np.zeros_like(start.position.captured)))


@injection("captured input", "the capture ends 100 bytes early")
def _(patch):
    def change(_, contents, checkpoint, task):
        if (start := contents.of(checkpoint, task)) is not None:
            start.position = start.position._replace(captured=np.maximum(start.position.captured - 100, 0))

    around(patch, Contents, "in_flight_final", change)


@injection("captured output", "overtaken output is not sent again")
def _(patch):
    on_restore(patch, lambda start, *_: moved(start, overtaken=np.zeros_like(start.position.overtaken)))


# ---------------------------------------------------------------------------------------------- state


@injection("state", "state is not restored")
def _(patch):
    on_restore(patch, lambda start, *_: replace(start, parts=()))


def nothing_read(*_):
    """A process that ends at once."""
    return 0
    yield


@injection("state", "downloads end before they begin")
def _(patch):
    patch.setattr(SubtaskState, "restore", nothing_read)


@injection("state", "a subtask gets the state of its neighbour")
def _(patch):
    def change(start, restore, task):
        same = [
            t for t, vertex in enumerate(restore.context.layout.vertex) if vertex == restore.context.layout.vertex[task]
        ]
        other = restore.cluster.contents.of(restore.checkpoint, same[same.index(task) - 1])
        return start if other is None else replace(start, parts=other.parts)

    on_restore(patch, change)


@injection("state", "checkpoints keep naming the files of the first one")
def _(patch):
    first: dict[tuple[object, int], StateSnapshot] = {}
    original = Contents.stored

    def stored(contents, checkpoint, task, state_bytes, files):
        original(contents, checkpoint, task, state_bytes, first.setdefault((id(contents), task), files))

    patch.setattr(Contents, "stored", stored)


@injection("keyed state", "state goes on as after five records fewer")
def _(patch):
    original = SubtaskState.restore

    def restore(state, storage, checkpoint, parts, served, *union):
        return (yield from original(state, storage, checkpoint, parts, max(0, served - 5), *union))

    patch.setattr(SubtaskState, "restore", restore)


def parts_without(part):
    def apply(patch):
        def change(start, *_):
            return replace(
                start, parts=tuple((replace(snapshot, **{part: []}), share) for snapshot, share in start.parts)
            )

        on_restore(patch, change)

    return apply


injection("keyed state", "keyed state is not restored")(parts_without("handles"))
injection("operator state", "list state is not restored")(parts_without("operator"))


@injection("changelog", "the tail of the log is not part of the snapshot")
def _(patch):
    def change(snapshot, *_):
        return replace(snapshot, handles=snapshot.handles[:-1]) if snapshot.logged else snapshot

    around(patch, SubtaskState, "close", change)


@injection("changelog", "the log is not replayed")
def _(patch):
    def change(start, *_):
        parts = (
            (replace(s, handles=[file for file in s.handles if not file.name.startswith("log-")]), share)
            for s, share in start.parts
        )
        return replace(start, parts=tuple(parts))

    on_restore(patch, change)


@injection("local recovery", "the local copy is that of another subtask")
def _(patch):
    latest: dict[str, StateSnapshot] = {}

    def change(snapshot, state, *_):
        other = latest.get(f"{state.subtask.vertex.name} {1 - state.subtask.index}")
        latest[f"{state.subtask.vertex.name} {state.subtask.index}"] = snapshot
        return snapshot if other is None or other.local is None else replace(snapshot, local=other.local)

    around(patch, SubtaskState, "close", change)


# ---------------------------------------------------------------------------------------------- transactions


@injection("committables", "transactions in a checkpoint are forgotten")
def _(patch):
    on_restore(patch, lambda start, *_: replace(start, committables=None))


@injection("committables", "a restored committer commits nothing")
def _(patch):
    patch.setattr(SinkCommitter, "restored", lambda *_: None)


# a commit is behind the latest checkpoint
@injection("committables", "what is visible is committed again", "task manager lost")
def _(patch):
    patch.setattr(CommittedOutput, "has", lambda *_: False)


@injection("committables", "a restored writer goes on with its first record")
def _(patch):
    def change(_, epochs, *__):
        if isinstance(epochs.writer, SinkWriter):
            epochs.writer.machine = replace(epochs.writer.machine, read=tuple(0 for _ in epochs.writer.machine.read))

    around(patch, Epochs, "restored", change)


# ---------------------------------------------------------------------------------------------- the next job


def next_job(patch, change):
    """What the parts of a snapshot are for the job that begins from it; told whether the part is a source's."""

    def all_parts(parts, *_):
        return {task: change(start, not len(start.position.consumed)) for task, start in parts.items()}

    around(patch, SnapshotFiles, "parts", all_parts)


@injection("next job", "its sources skip seven records")
def _(patch):
    next_job(patch, lambda start, source: moved(start, served=start.position.served + 7) if source else start)


@injection("next job", "it begins without state")
def _(patch):
    next_job(patch, lambda start, _: replace(start, parts=()))


@injection("next job", "it begins without the transactions of the snapshot")
def _(patch):
    next_job(patch, lambda start, _: replace(start, committables=None))


@injection("next job", "it begins without captured input")
def _(patch):
    next_job(patch, lambda start, _: moved(start, captured=np.zeros_like(start.position.captured)))


# ---------------------------------------------------------------------------------------------- rescale


def dealt(patch, change):
    """What the new tasks begin with."""
    around(patch, simulate, "rescaled", lambda parts, *_: change(parts))


def of_every_task(
    change,
):
    return lambda parts: {task: change(start) for task, start in parts.items()}


@injection("rescale", "its sources skip seven records")
def _(patch):
    dealt(
        patch,
        of_every_task(
            lambda start: start if len(start.position.consumed) else moved(start, served=start.position.served + 7)
        ),
    )


@injection("rescale", "a record in flight is lost")
def _(patch):
    original = redistribution._even
    patch.setattr(redistribution, "_even", lambda total, parts: original(max(0, total - 1), parts))


@injection("rescale", "all in-flight data is lost")
def _(patch):
    patch.setattr(redistribution, "_sizes", lambda *_: [])
    patch.setattr(redistribution, "_even", lambda _total, parts: np.zeros(parts, np.int64))


@injection("rescale", "state is forgotten")
def _(patch):
    dealt(patch, of_every_task(lambda start: replace(start, parts=tuple(part for part in start.parts if part[1] == 1))))


@injection("rescale", "every subtask gets all of the state")
def _(patch):
    def everything(_own, _parallelism, before, _groups):
        return dict.fromkeys(range(before), Fraction(1))

    patch.setattr(redistribution, "overlap", everything)


@injection("rescale", "key groups are dealt by number of subtask")
def _(patch):
    def by_number(own, _parallelism, before, _groups):
        return {own: Fraction(1)} if own < before else {}

    patch.setattr(redistribution, "overlap", by_number)


@injection("rescale", "requests under way are forgotten")
def _(patch):
    dealt(patch, of_every_task(lambda start: moved(start, late=0)))


@injection("rescale", "transactions are forgotten")
def _(patch):
    dealt(patch, of_every_task(lambda start: replace(start, committables=None)))


@injection("rescale", "what writers hold back is forgotten")
def _(patch):
    dealt(patch, of_every_task(lambda start: replace(start, held_back=())))
