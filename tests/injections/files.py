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


@add(SnapshotFiles, "_delete", world(TABLES), "Nothing is ever deleted.")
def nothing_is_deleted(_):
    return lambda self, ids, done=lambda: None, *, by_task=False: done()


@add(SharedStateRegistry, "released", ON_DISK, "Shared files go that the oldest retained checkpoint has named last.")
def shared_files_go_too_soon(original):
    return lambda self, lowest_retained: original(self, lowest_retained + 1)


@add(SharedStateRegistry, "released", world(LOGGED), "Shared files that no checkpoint names any more stay.")
def shared_files_stay(original):
    return lambda self, lowest_retained: original(self, -1)


@add(snapshot_store, "_private", world(HEAP), "The private files of a subsumed checkpoint stay.")
def private_files_stay(_):
    return lambda snapshot: ()


@add(SnapshotFiles, "abandon", ABORTED, "A task that gives its snapshot up leaves its files behind.")
def files_of_aborted_snapshots_stay(_):
    return lambda self, handles: None


@add(RocksDb, "take", SAVED, "A native savepoint refers to tables of checkpoints.")
def a_savepoint_shares_tables(original):
    return lambda self, number, type_, may_reuse: original(
        self, number, "checkpoint" if type_ == "native" else type_, may_reuse
    )


@add(SnapshotStore, "_complete_checkpoint", SAVED, "The files of a savepoint go when the next checkpoint is complete.")
def a_savepoint_is_deleted(original):
    def completed(self, event):
        after, commands = original(self, event)
        gone = tuple(
            snapshot_store.DeleteDirectory(row.checkpoint, snapshot_store._private(row)) for row in self.savepoints
        )
        return after, (*commands, *gone)

    return completed


@add(SnapshotStore, "restored", UNCLAIMED, "A job deletes the snapshot that it began from and did not claim.")
def an_unclaimed_snapshot_is_deleted(original):
    return lambda cls, instance, snapshot, claim: replace(
        original(cls, instance, snapshot, "claim"), full_required=True
    )


@add(SnapshotStore, "type_for", UNCLAIMED, "A job refers to files of the snapshot that it did not claim.")
def the_first_checkpoint_is_not_full(_):
    return lambda self, requested: requested


@add(FileStream, "close", world(HEAP), "A file counts as durable although its last part was never written.")
def a_file_is_cut_short(original):
    def close(self):
        file = yield from original(self)
        self.file.size_bytes //= 2
        return file

    return close


@add(FileLedger, "close", world(TABLES), "Tables count as never written in full.")
def tables_are_named_while_they_are_written(original):
    return lambda self, stored, now: None if stored.name[0] == "keyed" else original(self, stored, now)


@add(OperatorFiles, "upload", STAGED, "A checkpoint does not wait for the uploads of its operators.")
def uploads_are_not_waited_for(_):
    def upload(self, checkpoint):
        for flush in self._flushes:
            for file in flush.files:
                self._uploads.submit(file)
        yield from ()

    return upload


@add(SnapshotFiles, "metadata", world(HEAP), "The metadata of subsumed checkpoints stays.")
def metadata_stays(_):
    return lambda self, checkpoint, file: None


@add(FileSystem, "_delete", TURNED_AWAY, "The deletion of a table is never answered, and those behind it wait.")
def deletions_of_tables_never_end(original):
    def delete(self, file, host):
        if str(self.files[file].name[-1]).endswith(".sst"):
            yield self.attempts.pending()
        yield from original(self, file, host)

    return delete
