"""The account of files: which checkpoints name each, made from what acknowledgements brought; compared with storage at the end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sim.checkers.files import broken_snapshots
from sim.checkers.garbage import OwnedFile, garbage, longest_deletion_ns
from sim.checkers.violation import Violation
from sim.metrics.stats import CheckpointStats
from sim.model.faults import JobManagerDown, StorageOutage
from sim.runtime.accounts.account import EndOfRun, RunAccount, WatchedRun
from sim.storage.ledger import StoredFile

_OF_TASKS = frozenset({"keyed", "windows", "operator", "union"})
_LOG = "changelog"
"""A file of a changelog is written for no checkpoint; once named, it goes with the last one that names it."""


class FileAccount(RunAccount):
    """Knows which checkpoint names each file last."""

    def __init__(self, watched: WatchedRun) -> None:
        super().__init__(watched)
        self._last: dict[int, int] = {}  # file -> the last completed checkpoint that names it

    def completed(self, checkpoint: int, retained: Sequence[int]) -> None:
        for part in self.contents.checkpoints.get(checkpoint, {}).values():
            for snapshot, _ in part.parts:
                for handle in snapshot.all_handles:
                    if handle.file is not None:
                        self._last[handle.file] = checkpoint

    def at_the_end(self, end: EndOfRun) -> Iterator[Violation]:
        yield from broken_snapshots(end.kept, self.now_ns)
        if self._all_can_go():
            rows = ((number, row) for number, row in self.context.stats.items() if not row.savepoint_format)
            completed = sorted((number, row.completed_ns) for number, row in rows if row.status == "COMPLETED")
            yield from garbage(self._there(), completed, end.coordinator.num_retained, self.now_ns, self.teller)

    def _all_can_go(self) -> bool:
        """Whether all that must go can go: storage fails no deletion, and this JobManager was there from the beginning."""
        scenario = self.context.scenario
        lost = any(isinstance(fault.what, StorageOutage | JobManagerDown) for fault in scenario.faults)
        return not (lost or scenario.rescale or self.context.origin is not None)

    def _there(self) -> Iterator[OwnedFile]:
        """Files of checkpoints that are over, and are there now; savepoints are the user's.

        A store that answers so many requests per second deletes late: uploads and deletions share the limit.
        So a file may wait in line as long as its line goes on.
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
            stats = self.context.stats.get(checkpoint)
            if stats is None or not _ended(stats):
                continue
            task = numbers[str(name[1]), int(name[2])] if name[0] in _OF_TASKS or name[0] == _LOG else -1
            yield OwnedFile(f"the file {'/'.join(map(str, name))}", checkpoint, task, max(checkpoint, last), stored.size_bytes)


def _ended(stats: CheckpointStats) -> bool:
    return stats.status != "IN_PROGRESS" and not stats.savepoint_format


def _checkpoint_of(stored: StoredFile) -> int:
    """The checkpoint that a file was written for; -1: none."""
    kind, name = stored.name[0], stored.name
    if kind in _OF_TASKS:
        return int(name[3])
    if kind == "channel-state":
        return int(name[2])
    return int(name[1]) if kind == "_metadata" else -1
