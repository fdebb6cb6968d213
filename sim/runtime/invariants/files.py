"""Invariants of files: what is stored, referenced, deleted."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import NamedTuple, Self

from sim.model.faults import JobManagerDown, StorageOutage
from sim.model.storage import ObjectStore, SlowPlaces, Storage
from sim.model.units import SECOND
from sim.plane.interface import bytes_in_flight
from sim.results.journal import EventType
from sim.results.violations import number_of, time_text
from sim.runtime.context import Context, RestoredState, StateSnapshot, TaskSnapshot
from sim.runtime.invariants.invariant import Invariant
from sim.storage.ledger import FileId, StoredFile
from sim.storage.state_files import Handle

# ---- When files were being deleted: Flink triggers no checkpoint while it cleans up too many.

_MAX_REQUESTS_PER_DELETION = 2
"""Maximum requests of one deletion.

The Presto client checks whether the file exists, and the last merged file deletes its physical file, too.
"""
_MAX_LATENCY_FACTOR = 20
"""Upper bound of a random latency, as a multiple of its mean."""


def longest_deletion_ns(storage: Storage, files: int) -> int:
    """Return the maximum duration of a deletion [ns], or 0 if storage neither limits requests nor has slow parts.

    It includes the retries of the client.  On a distributed file system one request per file, each of up to twice the mean
    service time, may be in the queue before it.  `files`: number of files created in the run.
    """
    store, retry = storage.object_store or storage.dfs, storage.retry
    # data nodes of a distributed file system take no part in a deletion
    slow = store.slow if isinstance(store, ObjectStore) else None
    if store is None or (store.requests_per_second is None and slow is None):
        return 0
    attempt_ns = store.latency.mean * (1 if store.latency.kind == "constant" else _MAX_LATENCY_FACTOR)
    if isinstance(store, ObjectStore):
        attempt_ns *= 1 if slow is None else _most_slow(slow)
    elif store.requests_per_second is not None:
        attempt_ns += 2 * files * SECOND // store.requests_per_second
    backoffs_ns = sum(min(retry.backoff_ns << number, retry.max_backoff_ns) for number in range(retry.attempts - 1))
    return _MAX_REQUESTS_PER_DELETION * (retry.attempts * attempt_ns + backoffs_ns)


def _most_slow(slow: SlowPlaces) -> int:
    """Return the largest factor by which a part of storage is slow."""
    if slow.trace is None:
        return slow.factor
    return max((ceil(factor) for series in slow.trace.machines for _, factor in series), default=1)


def deletions(context: Context) -> list[tuple[int, int]]:
    """Return the (start, end) of each deletion of a file [ns], by start.

    A deletion in progress counts as ending now, or is left out if it started longer ago than a client would retry.
    """
    files, now_ns = context.storage.files, int(context.env.now)
    since_ns = now_ns - longest_deletion_ns(context.scenario.storage, len(files))
    times = ((row.deleted_ns, row.removed_ns) for row in files if row.deleted_ns is not None)
    return sorted(
        (begin_ns, now_ns if end_ns is None else end_ns)
        for begin_ns, end_ns in times
        if end_ns is not None or begin_ns > since_ns
    )


def end_of_deletions_ns(since_ns: int, deletions: Iterable[tuple[int, int]]) -> int:
    """Return the time at which the deletions in progress at `since_ns`, and those that follow without a gap, have ended.

    Flink triggers no checkpoint while too many checkpoints are being cleaned up
    (CheckpointRequestDecider#chooseQueuedRequest).  `deletions`: (begin, end) [ns], sorted by begin.
    """
    for begin_ns, end_ns in deletions:
        if begin_ns <= since_ns:
            since_ns = max(since_ns, end_ns)
    return since_ns


# ---- Retained snapshots refer to complete files, and files that no snapshot refers to are deleted soon (invariant 91).
#
# References of completed checkpoints to files are compared with the content of storage at the end of the run.  A file is
# unreferenced when the oldest retained checkpoint is newer than all checkpoints that refer to the file.

RETAINED_FILES = "all files that retained checkpoints and savepoints refer to are complete"
GOES = "a file is named by a snapshot that is kept or under way, or it is deleted soon"

_MIN_LATER_CHECKPOINTS = 3
"""Minimum checkpoints that completed since a file became unreferenced, before it is reported.

Checkpoints are not triggered while too many deletions are in progress, so the deletion should have ended by then.
"""
_MAX_UNREFERENCED_NS = 500_000_000
"""Maximum time from when a file becomes unreferenced until it is deleted [ns]."""
_ENDS_OF_TASKS = frozenset(
    {EventType.TASK_FAILED, EventType.TASK_MANAGER_LOST, EventType.JOB_MANAGER_LOST, EventType.JOB_RESTARTING}
)
_OF_TASKS = frozenset({"keyed", "windows", "operator", "union"})
_LOG = "changelog"
"""Kind of changelog files.  They are not written for a checkpoint, and are deleted with the last checkpoint that refers to them."""


class OwnedFile(NamedTuple):
    """A file of a checkpoint that exists at the end of a run."""

    stored: StoredFile
    checkpoint: int  # checkpoint for which it was written
    task: int  # task whose acknowledgement refers to it; -1 if the JobManager wrote it
    last: int  # last checkpoint that refers to it


class FileLifetimes(Invariant):
    """Checks at the end of the run that retained snapshots are complete, and that other files are deleted."""

    def start(self) -> None:
        self._last: dict[int, int] = {}  # file -> the last completed checkpoint that refers to it

    def completed(self, checkpoint: int, retained: Sequence[int]) -> None:
        """Record which files a completed checkpoint refers to."""
        for part in self.contents.checkpoints.get(checkpoint, {}).values():
            for handle in _handles(part):
                if handle.file is not None:
                    self._last[handle.file] = checkpoint

    def at_the_end(self) -> None:
        for snapshot in self.run.kept:
            if snapshot.missing:
                fact = f"{len(snapshot.missing)} of its {snapshot.files} files are gone"
                notes = [f"missing: {path}" for path in snapshot.missing[:3]]
                notes += ["..."] if len(snapshot.missing) > 3 else []
                self.report(RETAINED_FILES, fact, where=snapshot.what, notes=notes)
        # obsolete files can be deleted only without a storage outage, and by the same JobManager for the whole job
        scenario = self.context.scenario
        lost = any(isinstance(fault.what, StorageOutage | JobManagerDown) for fault in scenario.faults)
        if not (lost or scenario.rescale or self.context.origin is not None):
            self._check_unreferenced()

    def _check_unreferenced(self) -> None:
        """Check that no unreferenced files are left.  Report the one that has been unreferenced for longest."""
        stats, num_retained, journal = self.stats, self.run.coordinator.num_retained, self.context.journal
        completed = sorted(
            (number, row.completed_ns)
            for number, row in stats.items()
            if row.status == "COMPLETED" and not row.savepoint_format
        )
        free: list[tuple[int, OwnedFile]] = []  # with the time since when they are unreferenced
        for file in self._owned_files():
            first = bisect_right(completed, file.last, key=lambda row: row[0])
            if len(completed) - first >= num_retained + _MIN_LATER_CHECKPOINTS:
                free_ns = completed[first + num_retained - 1][1]
                if self.now_ns - free_ns > _MAX_UNREFERENCED_NS:
                    free.append((free_ns, file))
        if not free:
            return
        # Flink's registry throws an exception for such an acknowledgement before the coordinator handles it.  Its files have
        # no owner, in Flink either.
        unknown = {(row.checkpoint, row.task) for row in journal.only({EventType.STATE_UNKNOWN})}
        free = [row for row in free if (row[1].checkpoint, row[1].task) not in unknown]
        if any(row.event_type in _ENDS_OF_TASKS for row in self.run.events):
            # files of a task that failed before its acknowledgement was received have no owner, in Flink either
            owned = {(row.checkpoint, row.task) for row in journal.only({EventType.ACKNOWLEDGED})}
            free = [row for row in free if row[1].task < 0 or (row[1].checkpoint, row[1].task) in owned]
        if free:
            free_ns, file = min(free, key=lambda row: row[0])
            others = number_of(len(free) - 1, "other file")
            size = number_of(sum(row.stored.size_bytes for _, row in free), "byte")
            self.report(
                GOES,
                f"it is still there, no snapshot needs it since {time_text(free_ns)}; so are {others}, {size} in all",
                where=f"the file {'/'.join(map(str, file.stored.name))}",
                time_ns=free_ns,
                checkpoints=range(file.last, file.last + num_retained + 2),
            )

    def _owned_files(self) -> Iterator[OwnedFile]:
        """Yield the existing files of checkpoints that have ended, except those of savepoints, which the user owns.

        A store with a limit of requests per second deletes late, because uploads and deletions share the limit.  So files
        that wait for their deletion are left out as long as the queue makes progress.
        """
        ledger = self.context.storage.files
        moved_ns = self.now_ns - longest_deletion_ns(self.context.scenario.storage, len(ledger))
        waiting = {file for file, line in ledger.to_delete.items() if line.moved_ns > moved_ns}
        numbers = {name: task for task, name in enumerate(self.context.names)}
        for stored in ledger:
            if stored.disk or not stored.complete or stored.deleted_ns is not None or stored.id in waiting:
                continue
            name, last = stored.name, self._last.get(int(stored.id), -1)
            checkpoint = last if name[0] == _LOG else _checkpoint_of(stored)
            stats = self.stats.get(checkpoint)
            if stats is not None and stats.status != "IN_PROGRESS" and not stats.savepoint_format:
                task = numbers[str(name[1]), int(name[2])] if name[0] in _OF_TASKS or name[0] == _LOG else -1
                yield OwnedFile(stored, checkpoint, task, max(checkpoint, last))


def _checkpoint_of(stored: StoredFile) -> int:
    """Return the checkpoint that a file was written for, or -1 if it was not written for a checkpoint."""
    kind, name = stored.name[0], stored.name
    if kind in _OF_TASKS:
        return int(name[3])
    if kind == "channel-state":
        return int(name[2])
    return int(name[1]) if kind == "_metadata" else -1


# ---- Stored snapshots: a completed checkpoint has stored its metadata, all bytes of its files, and its in-flight data
# (invariants 107 to 112, and 125).  A restart reads as many bytes as were written.

METADATA_FIRST = "a checkpoint is complete when its metadata is durable"
IN_FULL = "a file has all the bytes that a completed checkpoint names in it"
IN_FLIGHT = "a completed checkpoint has stored all of its in-flight data"
COMPLETE_BASE = "an increment builds upon files of completed checkpoints"
UNCLAIMED = "a job that does not claim a snapshot neither deletes its files nor builds upon them"
SELF_CONTAINED = "a savepoint has files of its own: it shares none with a checkpoint"
READ_BACK = "a restart reads what its checkpoint has stored: state, and in-flight data"

_RESTORE = "restore"
"""First element of the name under which a restore reads in-flight data."""


@dataclass(slots=True)
class _Reading:
    """Tasks that were deployed together and are being restored."""

    checkpoint: int
    left: set[int]  # tasks that are not restored yet
    in_flight_bytes: int  # in-flight data in files, which they must read
    before_bytes: int  # in-flight data that the run had read when they were deployed


class StoredSnapshots(Invariant):
    """Checks that completed checkpoints are durable, that restores read everything, and that unclaimed files are left alone."""

    def start(self) -> None:
        self._first_own = 0  # id of the first file of this job instance; lower ids are of earlier instances
        self._not_claimed: tuple[FileId, ...] = ()  # files of the restored snapshot, if the job did not claim it
        # when tasks are notified of the first checkpoint that this instance completed; 0 before
        self._notified_ns = 0
        self._readings: list[_Reading] = []
        # vertex -> bytes of in-flight data in files of the snapshot that this job instance starts from
        self._redistributed_bytes: Mapping[int, int] = {}

    def continue_from(self, before: Self, checkpoint: int) -> None:
        self._first_own = len(self.context.storage.files)
        self._redistributed_bytes = before.redistributed_from(checkpoint)
        if self.context.scenario.instances.claim == "no-claim":
            self._not_claimed = tuple({file for part in self._parts(checkpoint) for file in part.files})

    def redistributed_from(self, checkpoint: int) -> Mapping[int, int]:
        """Return vertex -> bytes of in-flight data in files of a checkpoint, as the tasks stored it.

        It is empty if downstream tasks recover the captured output of upstream tasks.
        """
        parts = self.contents.checkpoints.get(checkpoint, {})
        if any(part.read_bytes is not None for part in parts.values()):  # redistributed before, and redistributed again
            return self._redistributed_bytes
        in_flight_bytes = Counter[int]()
        if not self.context.scenario.checkpoint.recover_output_on_downstream:
            for task, part in parts.items():
                in_flight_bytes[self.context.layout.vertex[task]] += bytes_in_flight(part.position) - part.inlined_bytes
        return in_flight_bytes

    def state_taken(self, checkpoint: int, task: int, snapshot: StateSnapshot) -> None:
        """Check that savepoints share no files, and that incremental snapshots build on completed checkpoints.

        Tasks with a changelog are not checked: the numbers of materialisations are not those of checkpoints.
        """
        if self._has_changelog(task):
            return
        files, stats = self.context.storage.files, self.stats
        who = self.formatter.task(task)
        if stats[checkpoint].savepoint_format and (common := _common_files(snapshot)):
            self._report(
                SELF_CONTAINED, checkpoint, f"{who} has {number_of(common, 'file')} in it that checkpoints share"
            )
        for handle in snapshot.keyed.reused:
            if handle.file is None or handle.file < self._first_own:
                continue
            name = files[FileId(handle.file)].name
            base = int(name[3]) if name[0] == "keyed" else -1
            if base in stats and stats[base].status != "COMPLETED":
                status = stats[base].status.lower().replace("_", " ")
                fact = f"{who} refers to {handle.name} of checkpoint {base}, which is {status}"
                self._report(COMPLETE_BASE, checkpoint, fact)
                return

    def completed(self, checkpoint: int, retained: Sequence[int]) -> None:
        """Check that the files of a completed checkpoint are durable and complete, and that it refers to no unclaimed file."""
        parts = [
            (task, part)
            for task, part in self.contents.checkpoints.get(checkpoint, {}).items()
            if part.checkpoint == checkpoint
        ]
        if not self._has_metadata(checkpoint):
            self._report(METADATA_FIRST, checkpoint, "it is complete, and its metadata is no file yet")
        if (fact := self._truncated_file(part for _, part in parts)) is not None:
            self._report(IN_FULL, checkpoint, fact)
        if (fact := self._missing_in_flight(parts)) is not None:
            self._report(IN_FLIGHT, checkpoint, fact)
        if (
            self._not_claimed
            and not self.stats[checkpoint].savepoint_format
            and not self._may_be_built_upon(checkpoint)
        ):
            named = {file for task, part in parts if not self._has_changelog(task) for file in part.files} & set(
                self._not_claimed
            )
            if named:
                self._report(UNCLAIMED, checkpoint, _not_claimed(len(named), "named"))
        if not self._notified_ns and not self.stats[checkpoint].savepoint_format:
            self._notified_ns = self.now_ns + self.context.scenario.overheads.notify_ns

    def restarted(self, checkpoint: int, tasks: Iterable[int]) -> None:
        """Start to observe what the restarted tasks read."""
        left = set(tasks)
        self._readings = [row for row in self._readings if not row.left & left]
        if checkpoint:
            parts = {task: part for task in left if (part := self.contents.of(checkpoint, task)) is not None}
            self._readings.append(_Reading(checkpoint, left, self._in_files(parts), self._read_bytes))

    def restored(
        self, checkpoint: int, task: int, restored_parts: Sequence[RestoredState], restored_record_count: int
    ) -> None:
        """Check that a task has read all of its state, and tasks deployed together all of their in-flight data.

        State that is restored from a local copy, or is redistributed, is not checked.
        """
        downloaded = [piece for piece in restored_parts if piece.share == 1 and piece.copied_from is None]
        if downloaded and len(downloaded) == len(restored_parts):
            row = self.context.journal.last(EventType.TASK_RESTORED)
            size_bytes = sum(piece.size_bytes for piece in downloaded)
            if row.number < size_bytes:
                fact = _too_few_read(row.number, f"the state of {self.formatter.task(task)}", size_bytes)
                self._report(READ_BACK, checkpoint, fact)
        for reading in self._readings:
            reading.left.discard(task)
            if not reading.left and (read_bytes := self._read_bytes - reading.before_bytes) < reading.in_flight_bytes:
                fact = _too_few_read(read_bytes, "in-flight data", reading.in_flight_bytes)
                self._report(READ_BACK, reading.checkpoint, fact)
        self._readings = [reading for reading in self._readings if reading.left]

    def at_the_end(self) -> None:
        files = self.context.storage.files
        if gone := [file for file in self._not_claimed if files[file].deleted_ns is not None]:
            self._report(UNCLAIMED, self.context.begun_from, _not_claimed(len(gone), "deleted"))

    def _report(self, invariant: str, checkpoint: int, fact: str) -> None:
        """Report a violation by a checkpoint, once per invariant."""
        self.report(invariant, fact, checkpoint=checkpoint, once=True)

    def _in_files(self, parts: Mapping[int, TaskSnapshot]) -> int:
        """Return the in-flight data in files that these tasks must read [bytes].

        If all tasks of a rescaled vertex are among them, they read what its former tasks stored.
        """
        plan, vertices = self.context.layout, self.context.scenario.job.vertices
        rescaled = Counter(plan.vertex[task] for task, part in parts.items() if part.read_bytes is not None)
        complete = {
            vertex
            for vertex, tasks in rescaled.items()
            if tasks == vertices[vertex].parallelism and vertex in self._redistributed_bytes
        }
        others = [part for task, part in parts.items() if plan.vertex[task] not in complete]
        in_files = sum(bytes_in_flight(part.position) - part.inlined_bytes for part in others)
        in_files -= self._cut_bytes([part for part in others if part.read_bytes is not None])
        return in_files + sum(self._redistributed_bytes[vertex] for vertex in complete)

    def _cut_bytes(self, parts: Iterable[TaskSnapshot]) -> int:
        """Return an upper limit of the bytes by which redistribution increases in-flight data: it completes partial records."""
        largest_bytes = max((max(edge.record_bytes) for edge in self.context.spec.edges), default=0)
        sides = (side for part in parts for side in (part.position.captured, part.position.overtaken))
        return largest_bytes * sum(int((side > 0).sum()) for side in sides)

    @property
    def _read_bytes(self) -> int:
        """In-flight data read by restores so far [bytes]."""
        return self.context.storage.files.bytes_read[_RESTORE]

    def _parts(self, checkpoint: int) -> Iterable[TaskSnapshot]:
        return self.contents.checkpoints.get(checkpoint, {}).values()

    def _may_be_built_upon(self, checkpoint: int) -> bool:
        """Return whether a checkpoint may refer to files of the restored snapshot although the job has not claimed it.

        An incremental snapshot builds on the latest checkpoint whose completion the task was notified of, otherwise on the
        restored one (RocksIncrementalSnapshotStrategy).  The notification of the first checkpoint, which is a full one, may
        arrive after the next one is triggered, or be lost.
        """
        begun_before = self.stats[checkpoint].trigger_ns < self._notified_ns
        return begun_before or self.context.scenario.checkpoint.lost_notifications > 0

    def _has_changelog(self, task: int) -> bool:
        """Return whether a task has a changelog, which Flink does not support in no-claim mode."""
        state = self.context.vertex(task).state
        return state is not None and state.changelog is not None

    def _has_metadata(self, checkpoint: int) -> bool:
        """Return whether the metadata file of a checkpoint is complete.  It is among the latest files, as it is written last."""
        files, since_ns = self.context.storage.files, self.stats[checkpoint].latest_ack_ns
        for number in range(len(files) - 1, -1, -1):
            file = files[FileId(number)]
            if file.name[:2] == ("_metadata", checkpoint):
                return file.complete
            if file.created_ns < since_ns:
                return False
        return False

    def _truncated_file(self, parts: Iterable[TaskSnapshot]) -> str | None:
        """Return what is wrong with the first file that is shorter than its handle says."""
        for part in parts:
            for handle in _handles(part):
                if handle.file is not None:
                    there = self.context.storage.files[FileId(handle.file)]
                    if there.size_bytes < handle.size_bytes:
                        what = f"{number_of(handle.size_bytes, 'byte')} in the file {'/'.join(map(str, there.name))}"
                        return f"it names {what}, which has {there.size_bytes}"
        return None

    def _missing_in_flight(self, parts: Iterable[tuple[int, TaskSnapshot]]) -> str | None:
        """Return what is wrong if in-flight data is neither in files nor in acknowledgements.  Tasks may share a file."""
        in_file = Counter[FileId]()
        for task, part in parts:
            left_bytes = bytes_in_flight(part.position) - part.inlined_bytes
            if part.channel_file is not None:
                in_file[part.channel_file] += left_bytes
            elif left_bytes > 0:
                return f"{number_of(left_bytes, 'byte')} in flight to {self.formatter.task(task)} are in no file"
        for file, size_bytes in in_file.items():
            if (file_bytes := self.context.storage.files[file].size_bytes) < size_bytes:
                return f"{number_of(size_bytes, 'byte')} were in flight, their file has {file_bytes}"
        return None


def _not_claimed(files: int, doing: str) -> str:
    snapshot = "of the snapshot that the job began with, and did not claim,"
    return f"{number_of(files, 'file')} {snapshot} {'is' if files == 1 else 'are'} {doing}"


def _too_few_read(read_bytes: int, what: str, stored_bytes: int) -> str:
    return f"{number_of(read_bytes, 'byte')} of {what} {'is' if read_bytes == 1 else 'are'} read, {stored_bytes} were stored"


def _handles(part: TaskSnapshot) -> Iterator[Handle]:
    """Return the handles of a part, without those of in-flight data."""
    return (handle for snapshot, _ in part.parts for handle in snapshot.all_handles)


def _common_files(snapshot: StateSnapshot) -> int:
    """Return the number of files of a snapshot that other snapshots refer to, or may refer to."""
    return len(snapshot.keyed.reused) + sum(
        file.scope == "shared" for step in snapshot.keyed.steps for file in step.files
    )
