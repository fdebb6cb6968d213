"""Bugs of files: what is deleted too soon, too late or never, and what savepoints and later jobs own."""

from dataclasses import replace

from sim.protocol import snapshot_store
from sim.protocol.snapshot_store import SharedStateRegistry, SnapshotStore
from sim.runtime.jobmanager.snapshot_files import SnapshotFiles
from sim.runtime.task.sink import OperatorFiles
from sim.storage.filesystem import FileStream, FileSystem
from sim.storage.ledger import FileLedger
from sim.storage.state_backends import RocksDb
from tests.injections.injection import Injections
from tests.injections.least_worlds import KILL, chain, reader, sink, world
from tests.injections.state import GROWING, HEAP, LOGGED, ON_DISK, TABLES

INJECTIONS = Injections("files")
add = INJECTIONS.add

SAVED = world(TABLES, checkpoint={"incremental": True}, actions=[{"savepoint": "native", "at": "700 ms"}])
UNCLAIMED = world(
    TABLES, checkpoint={"incremental": True}, run={"duration": "3 s"}, instances={"count": 2, "claim": "no-claim"}
)
LIMITED = {"object-store": {"latency": "2 ms", "requests": "300/s"}, "retry": {"attempts": 3, "backoff": "20 ms"}}
TURNED_AWAY = world(TABLES, checkpoint={"incremental": True}) | {"storage": {"inline-threshold": "0 B"} | LIMITED}
SLOW_NOW_AND_THEN = {"async": "250 ms", "probability": "30 %"}
ABORTED = world(chain(m=reader(state=GROWING, snapshot=SLOW_NOW_AND_THEN)), checkpoint={"timeout": "200 ms"})
STAGED = world(chain(k=sink(flush={"bytes": "40 kB", "files": 2})), checkpoint={"operator-io": "async"}, faults=(KILL,))


@add(SnapshotFiles, "_delete", world(TABLES))
def nothing_is_deleted(_):
    """Nothing is ever deleted."""
    return lambda self, ids, done=lambda: None, *, by_task=False: done()


@add(SharedStateRegistry, "released", ON_DISK)
def shared_files_go_too_soon(original):
    """Shared files go that the oldest retained checkpoint has named last."""
    return lambda self, lowest_retained: original(self, lowest_retained + 1)


@add(SharedStateRegistry, "released", world(LOGGED))
def shared_files_stay(original):
    """Shared files that no checkpoint names any more stay."""
    return lambda self, lowest_retained: original(self, -1)


@add(snapshot_store, "_private", world(HEAP))
def private_files_stay(_):
    """The private files of a subsumed checkpoint stay."""
    return lambda snapshot: ()


@add(SnapshotFiles, "abandon", ABORTED)
def files_of_aborted_snapshots_stay(_):
    """A task that gives its snapshot up leaves its files behind."""
    return lambda self, handles: None


@add(RocksDb, "take", SAVED)
def a_savepoint_shares_tables(original):
    """A native savepoint refers to tables of checkpoints."""
    return lambda self, number, type_, may_reuse: original(
        self, number, "checkpoint" if type_ == "native" else type_, may_reuse
    )


@add(SnapshotStore, "_complete_checkpoint", SAVED)
def a_savepoint_is_deleted(original):
    """The files of a savepoint go when the next checkpoint is complete."""

    def completed(self, event):
        after, commands = original(self, event)
        gone = tuple(
            snapshot_store.DeleteDirectory(row.checkpoint, snapshot_store._private(row)) for row in self.savepoints
        )
        return after, (*commands, *gone)

    return completed


@add(SnapshotStore, "restored", UNCLAIMED)
def an_unclaimed_snapshot_is_deleted(original):
    """A job deletes the snapshot that it began from and did not claim."""
    return lambda cls, instance, snapshot, claim: replace(
        original(cls, instance, snapshot, "claim"), full_required=True
    )


@add(SnapshotStore, "type_for", UNCLAIMED)
def the_first_checkpoint_is_not_full(_):
    """A job refers to files of the snapshot that it did not claim."""
    return lambda self, requested: requested


@add(FileStream, "close", world(HEAP))
def a_file_is_cut_short(original):
    """A file counts as durable although its last part was never written."""

    def close(self):
        file = yield from original(self)
        self.file.size_bytes //= 2
        return file

    return close


@add(FileLedger, "close", world(TABLES))
def tables_are_named_while_they_are_written(original):
    """Tables count as never written in full."""
    return lambda self, stored, now: None if stored.name[0] == "keyed" else original(self, stored, now)


@add(OperatorFiles, "upload", STAGED)
def uploads_are_not_waited_for(_):
    """A checkpoint does not wait for the uploads of its operators."""

    def upload(self, checkpoint):
        for file in self._all_files():
            self._submit(file)
        yield from ()

    return upload


@add(SnapshotFiles, "metadata", world(HEAP))
def metadata_stays(_):
    """The metadata of subsumed checkpoints stays."""
    return lambda self, checkpoint, file: None


@add(FileSystem, "_delete", TURNED_AWAY)
def deletions_of_tables_never_end(original):
    """The deletion of a table is never answered, and those behind it wait."""

    def delete(self, file, host):
        if str(self.files[file].name[-1]).endswith(".sst"):
            yield self.attempts.pending()
        yield from original(self, file, host)

    return delete
