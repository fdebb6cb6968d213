"""Bugs of keyed state, its backends, its changelog, its expiry, and of rescaling."""

from dataclasses import replace
from fractions import Fraction

from sim.protocol.barrier_modes import Requirement
from sim.protocol.task_checkpointing import SnapshotInProgress
from sim.runtime import redistribution
from sim.runtime.task.subtask_state import KeyedState, SubtaskState
from sim.runtime.task.windows import OperatorWindows
from sim.storage import state_backends
from sim.storage.state_backends import ChangelogBackend, Cohort, Expiry, RocksDb
from sim.storage.state_files import Hashmap, Increments
from tests.injections.injection import Injections
from tests.injections.least_worlds import KILL, chain, reader, sink, world

INJECTIONS = Injections("state")
add = INJECTIONS.add

SIZE = {"size": "60 kB", "value": "100 B", "update": "50 %"}
GROWING = SIZE | {"growth": "200 B"}
HEAP = chain(m=reader(state=GROWING | {"backend": "hashmap"}))
TABLES = chain(m=reader(state=GROWING | {"backend": "rocksdb", "lsm": {"memtable": "4 kB"}}))
LOG = {"materialize": "600 ms", "threshold": "1 kB", "batch-delay": "5 ms"}
LOGGED = chain(m=reader(state=GROWING | {"backend": "rocksdb", "changelog": LOG}))
EXPIRING = chain(m=reader(state=GROWING | {"backend": "hashmap", "ttl": "700 ms", "ttl-filter": "true"}))
WINDOWS = chain(m=reader(window={"tumbling": "400 ms", "time": "processing", "state-per-record": "100 B"}))
ON_HEAP, WITH_LOG, EXPIRES = (world(job, faults=(KILL,)) for job in (HEAP, LOGGED, EXPIRING))
ON_DISK = world(TABLES, checkpoint={"incremental": True}, faults=(KILL,))
SLOW_SINK = TABLES | {"k": sink(snapshot={"async": "250 ms", "probability": "30 %"})}
ABORTED_LATER = world(SLOW_SINK, checkpoint={"incremental": True, "timeout": "200 ms"})
SLOW_LOG = world(LOGGED, storage={"file-latency": "60 ms"}, faults=(KILL,))
SCALED_IN, SCALED_OUT = (world(HEAP, rescale={"at": "1 s", "parallelism": {"m": subtasks}}) for subtasks in (1, 3))
BEHIND = chain(m=reader(service="8 ms", state=SIZE))
SCALED_IN_BEHIND = world(BEHIND, checkpoint={"barriers": "unaligned"}, rescale={"at": "1 s", "parallelism": {"m": 1}})


@add(SnapshotInProgress, "begun", ON_HEAP)
def an_acknowledgement_does_not_wait_for_files(original):
    """A snapshot is acknowledged before its files are written."""
    return lambda cls, start, phases, waits_for, now: original(
        cls, start, phases, waits_for - {Requirement.ASYNC_WORK}, now
    )


@add(SubtaskState, "write", ON_HEAP)
def files_are_not_written(_):
    """A snapshot is acknowledged without its files."""

    def write(self, part, checkpoint):
        yield from ()

    return write


@add(Hashmap, "take", ON_HEAP)
def half_of_the_heap_is_written(original):
    """A snapshot of the heap holds half of its entries."""

    def take(self, number, type_, may_reuse):
        size_bytes, self.size_bytes = self.size_bytes, self.size_bytes // 2
        try:
            return original(self, number, type_, may_reuse)
        finally:
            self.size_bytes = size_bytes

    return take


@add(RocksDb, "take", ON_DISK)
def a_snapshot_lacks_a_stored_table(original):
    """An incremental snapshot leaves out a table that is stored already."""

    def take(self, number, type_, may_reuse):
        frozen = original(self, number, type_, may_reuse)
        return replace(frozen, reused=frozen.reused[1:])

    return take


@add(Increments, "store", ABORTED_LATER)
def the_base_need_not_be_complete(original):
    """An incremental snapshot builds on one that is not complete."""

    def store(self, number, files):
        original(self, number, files)
        self._base = number

    return store


@add(KeyedState, "restore", SCALED_IN)
def one_part_is_restored(original):
    """A subtask restores the state of the first of its former subtasks only."""
    return lambda self, checkpoint, parts, served: original(self, checkpoint, parts[:1], served)


@add(KeyedState, "restore", SCALED_OUT)
def foreign_key_groups_are_restored(original):
    """A subtask restores all key groups of its former subtask."""

    def restore(self, checkpoint, parts, served):
        unshared = [(snapshot, Fraction(1)) for snapshot, _ in parts]
        return original(self, checkpoint, unshared, served)

    return restore


@add(KeyedState, "restore", ON_HEAP)
def state_is_not_restored(original):
    """A restarted task begins with empty state."""
    return lambda self, checkpoint, parts, served: original(self, checkpoint, [], served)


@add(KeyedState, "count", ON_HEAP)
def some_updates_are_forgotten(original):
    """Every third look at the records served is left out of the state."""

    def count(self):
        slot = self.subtask.slot
        if slot.context.plane.position(slot.task).served % 3:
            original(self)

    return count


@add(SubtaskState, "restore", world(WINDOWS, faults=(KILL,)))
def records_in_windows_are_not_read(original):
    """The records in windows are not read at a restart."""

    def restore(self, checkpoint, parts, served, *union):
        bare = [(replace(snapshot, windows=[]), share) for snapshot, share in parts]
        return original(self, checkpoint, bare, served, *union)

    return restore


@add(OperatorWindows, "records", world(WINDOWS, faults=(KILL,)))
def windows_are_not_state(_):
    """Snapshots hold no record that waits in a window."""
    return lambda self: 0


@add(Expiry, "stand", EXPIRES)
def restored_keys_expire_at_once(original):
    """Restored keys expire at once."""

    def stand(self, ages, now_ns):
        original(
            self,
            tuple(Cohort(now_ns - self.ttl_ns - 2, now_ns - self.ttl_ns - 1, row.size_bytes) for row in ages),
            now_ns,
        )

    return stand


@add(Expiry, "stand", EXPIRES)
def restored_keys_are_young(original):
    """Restored keys are young again."""
    return lambda self, ages, now_ns: original(
        self, tuple(Cohort(now_ns, now_ns + 1, row.size_bytes) for row in ages), now_ns
    )


@add(Expiry, "stand", EXPIRES)
def restored_keys_live_longer(original):
    """Restored keys live as long again as they have lived."""

    def stand(self, ages, now_ns):
        later = self.ttl_ns // 2
        original(self, [Cohort(begin + later, end + later, size) for begin, end, size in ages], now_ns)

    return stand


@add(Expiry, "_expire", EXPIRES)
def no_key_expires(_):
    """Keys never expire."""
    return lambda self, now_ns: None


@add(ChangelogBackend, "take", WITH_LOG)
def the_oldest_log_file_is_left_out(original):
    """A snapshot does not refer to the oldest file of its changelog."""

    def take(self, number, type_, may_reuse):
        log, self._log = self._log, self._log[1:]
        try:
            return original(self, number, type_, may_reuse)
        finally:
            self._log = log

    return take


@add(ChangelogBackend, "materialised", SLOW_LOG)
def a_changelog_is_truncated_too_far(original):
    """A materialisation cuts what was logged while it was written."""

    def materialised(self, number, frozen, handles):
        self._begun = {number: self.end_bytes}
        original(self, number, frozen, handles)

    return materialised


@add(ChangelogBackend, "take", WITH_LOG)
def the_materialisation_is_left_out(original):
    """A snapshot does not refer to the materialisation of its changelog."""

    def take(self, number, type_, may_reuse):
        kept, self._materialised = self._materialised, ()
        try:
            return original(self, number, type_, may_reuse)
        finally:
            self._materialised = kept

    return take


@add(ChangelogBackend, "_stand", WITH_LOG)
def a_restored_log_is_forgotten(original):
    """After a restart snapshots do not refer to the changelog that was restored."""

    def stand(self, log, below):
        original(self, log, below)
        self._log = []

    return stand


@add(ChangelogBackend, "restore", WITH_LOG)
def the_log_is_not_read(original):
    """A restart does not read the changelog."""

    def restore(self, number, parts, now_ns):
        restoring = original(self, number, parts, now_ns)
        reads = tuple(row for row in restoring.reads if not row[0].name.startswith(state_backends._LOG))
        return restoring._replace(reads=reads, then=())

    return restore


@add(redistribution, "_split_evenly", SCALED_IN_BEHIND)
def remainders_are_lost_in_a_rescale(original):
    """Records in flight that do not divide evenly are lost where a job is rescaled."""
    return lambda total, parts: original(total - total % 4, parts)


@add(redistribution, "_read_bytes", SCALED_IN_BEHIND)
def in_flight_data_is_not_read_by_a_rescaled_task(_):
    """A rescaled task does not read the in-flight data of its former subtasks."""
    return lambda readers, writers: 0
