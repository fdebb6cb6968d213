"""State whose changes are logged and uploaded as they happen, beside any other backend (FLIP-158, ChangelogKeyedStateBackend).

A checkpoint refers to the last materialisation of the backend below and to the log since then.  So it writes little more than the log's
tail, however much the backend below compacts.  The state a run begins with has been written by then: it opens the log.

In memory nothing is uploaded.  A checkpoint copies all changes since the last materialisation on the task thread, and the acknowledgement
carries them (InMemoryStateChangelogWriter#collectChanges).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import NamedTuple

from sim.model.state import Changelog, State
from sim.model.stored import SnapshotType
from sim.state.backend import Backend, CannotFreeze
from sim.state.files import File, FrozenState, Handle, KeyedPart, Restoring, WriteStep
from sim.units import SECOND

_LOG = "log-"


class _Image(NamedTuple):
    """The image of a changelog backend in a snapshot."""

    below: Hashable  # of the backend below, at its last materialisation


class ChangelogBackend:
    """A backend with a changelog in front of it.

    Positions are bytes since the log began.  The writer of its files asks for them by `cut` and reports by `logged`.
    """

    def __init__(self, inner: Backend, state: State, options: Changelog, size_bytes: int, load_bytes_per_second: int | None) -> None:
        self.inner = inner
        self.state = state
        self.options = options
        self.load_bytes_per_second = load_bytes_per_second
        self.end_bytes = size_bytes
        self._held_bytes: int | None = size_bytes  # by the backend below; None: a snapshot was restored, its size is not known yet
        self._cut_bytes = 0  # everything before was given to be written
        self._from_bytes = 0  # ... and before this is in the materialisation
        self._writing: dict[str, tuple[int, File]] = {}  # by name: (where it ends, file)
        self._failed_bytes = 0  # where the last file ends that could not be written
        self._log: list[tuple[int, Handle]] = []  # written: (where it ends, file)
        self._materialised: tuple[Handle, ...] = ()
        self._image: Hashable = None  # of the backend below, at that time
        self._number = 0  # of that materialisation
        self._latest = 0  # materialisation that was begun
        self._settled = 0  # ... that was confirmed by a checkpoint, or failed
        self._unreported_bytes = 0  # written for it, not yet in any snapshot
        self._of_snapshot: dict[int, int] = {}  # snapshot -> materialisation it refers to
        self._begun: dict[int, int] = {}  # materialisation -> position it holds everything before
        if options.in_memory and size_bytes:
            self._log.append((size_bytes, _carried(size_bytes, size_bytes)))
            self._cut_bytes = size_bytes

    # ------------------------------------------------------------------------------------------ the log

    @property
    def pending_bytes(self) -> int:
        """Logged, not yet given to be written, and in no materialisation (FsStateChangelogWriter#persistInternal: its `from`)."""
        return self.end_bytes - max(self._cut_bytes, self._from_bytes)

    @property
    def active_bytes(self) -> int:
        """Logged since the log was last given to be written, or a materialisation began (FsStateChangelogWriter#rollover)."""
        return self.end_bytes - max(self._cut_bytes, *self._begun.values(), self._from_bytes)

    def cut(self) -> File | None:
        """The next file of the log: everything pending.  None: nothing is."""
        if not self.pending_bytes:
            return None
        file = File(f"{_LOG}{self.end_bytes}", self.pending_bytes, "shared")
        self._cut_bytes = self.end_bytes
        self._writing[file.name] = self.end_bytes, file
        return file

    def logged(self, handle: Handle) -> None:
        """A file of the log is durable."""
        end_bytes, _ = self._writing.pop(handle.name)
        if end_bytes > self._from_bytes:
            self._log.append((end_bytes, handle))

    def given_up(self, file: File) -> None:
        """A file of the log could not be written, and is not tried again (FsStateChangelogWriter#handleUploadFailure)."""
        end_bytes, _ = self._writing.pop(file.name)
        self._failed_bytes = max(self._failed_bytes, end_bytes)

    # ------------------------------------------------------------------------------------------ materialisation

    @property
    def may_materialise(self) -> bool:
        """Whether the materialisation before was confirmed by a checkpoint, or failed (ChangelogKeyedStateBackend#initMaterialization).

        Another one would build on files that go with the checkpoint that names them.
        """
        return self._settled == self._latest

    def materialisation_failed(self, number: int) -> None:
        """It was not written."""
        self._settled = max(self._settled, number)

    def materialise(self, number: int) -> FrozenState:
        """Freeze the backend below; what is logged from now on follows it.  No checkpoint owns its files: all are shared."""
        self._begun[number], self._latest = self.end_bytes, number
        frozen = self.inner.take(number, "checkpoint", lambda _: True)
        steps = tuple(step._replace(files=tuple(file._replace(scope="shared") for file in step.files)) for step in frozen.steps)
        return replace(frozen, steps=steps)

    def materialised(self, number: int, frozen: FrozenState, handles: Sequence[Handle]) -> None:
        """A materialisation is durable: the log before it is not needed any more."""
        self.inner.stored(number, "checkpoint", handles)
        self._from_bytes, self._begun = self._begun[number], {}
        self._log = [(end_bytes, handle) for end_bytes, handle in self._log if end_bytes > self._from_bytes]
        self._number, self._image, self._materialised = number, frozen.image, tuple(handles)
        self._unreported_bytes = frozen.written_bytes if self.options.reports_materialized else 0

    # ------------------------------------------------------------------------------------------ as any backend

    def update(self, writes: int, now_ns: int) -> None:
        self.end_bytes += writes * self.state.value_bytes
        self.inner.update(writes, now_ns)

    def resize(self, size_bytes: int, expired_bytes: int = 0, records: int = 0) -> None:
        """What is new is logged; what was restored is not, nor is what expires."""
        self.end_bytes += 0 if self._held_bytes is None else size_bytes + expired_bytes - self._held_bytes
        self._held_bytes = size_bytes
        self.inner.resize(size_bytes, expired_bytes, records)

    def take(self, number: int, type_: SnapshotType, may_reuse: Callable[[int], bool]) -> FrozenState:
        if type_ in ("canonical", "native"):
            return self.inner.take(number, type_, may_reuse)
        self._of_snapshot[number] = self._number
        if self.options.in_memory:
            return self._copied()
        if self._failed_bytes > self._from_bytes:  # FsStateChangelogWriter#ensureCanPersist; a materialisation gets over it
            raise CannotFreeze("an upload of the changelog has failed before")
        tail = self.cut()
        ahead_bytes = self._unreported_bytes + (0 if tail is None else tail.size_bytes)
        self._unreported_bytes = 0
        return FrozenState(
            reused=(*self._materialised, *(handle for _, handle in self._log)),
            awaited=tuple(file for end_bytes, file in self._writing.values() if end_bytes > self._from_bytes),
            ahead_bytes=ahead_bytes, image=_Image(self._image),
        )  # fmt: skip

    def _copied(self) -> FrozenState:
        """Every change since the last materialisation, or since the state was restored."""
        tail_bytes = self.pending_bytes
        changes = tail_bytes // self.state.value_bytes
        tail = (_carried(self.end_bytes, tail_bytes),) if tail_bytes else ()
        ahead_bytes, self._unreported_bytes = self._unreported_bytes + tail_bytes, 0
        return FrozenState(
            changes * self.options.copy_ns, (WriteStep((), work_ns=changes * self.options.ship_ns),) if changes else (),
            reused=(*self._materialised, *(handle for _, handle in self._log), *tail), ahead_bytes=ahead_bytes, image=_Image(self._image),
        )  # fmt: skip

    def stored(self, number: int, type_: SnapshotType, files: Sequence[Handle]) -> None:
        """Savepoints are those of the backend below.  What a checkpoint refers to was reported before it was taken."""
        if type_ in ("canonical", "native"):
            self.inner.stored(number, type_, files)

    def notify_complete(self, number: int) -> None:
        """The materialisation it refers to is what the next one of the backend below builds upon."""
        materialisation = self._of_snapshot.get(number, 0)
        self._of_snapshot = {checkpoint: latest for checkpoint, latest in self._of_snapshot.items() if checkpoint > number}
        if materialisation:
            self._settled = max(self._settled, materialisation)
            self.inner.notify_complete(materialisation)

    def stop(self) -> None:
        self.inner.stop()

    def restore(self, number: int, parts: Sequence[KeyedPart], now_ns: int) -> Restoring:  # noqa: ARG002
        """The materialisation, then the log is read and replayed."""
        below, log, replayed_bytes = [], [], 0
        for part in parts:
            own = [handle for handle in part.handles if handle.name.startswith(_LOG)]
            if rest := tuple(handle for handle in part.handles if handle not in own):
                image = part.image.below if isinstance(part.image, _Image) else part.image
                below.append(part._replace(image=image, handles=rest))
            replayed_bytes += int(sum(handle.size_bytes for handle in own) * part.share)
            log += own
        restoring = self.inner.restore(0, below, now_ns) if below or not log else Restoring()
        replay_ns = 0 if self.load_bytes_per_second is None else replayed_bytes * SECOND // self.load_bytes_per_second
        self._stand(log, below)
        reads = (*restoring.reads, *((handle, handle.size_bytes) for handle in log))
        return restoring._replace(reads=reads, after_ns=restoring.after_ns + replay_ns)

    def _stand(self, log: Sequence[Handle], below: Sequence[KeyedPart]) -> None:
        """The files restored from go on being referred to, until the next materialisation."""
        self._materialised = tuple(handle for part in below for handle in part.handles)
        self._image = below[0].image if len(below) == 1 else None
        self._writing, self._failed_bytes, self._log = {}, 0, []
        self._from_bytes = self.end_bytes = 0
        for handle in log:
            self.end_bytes += handle.size_bytes
            self._log.append((self.end_bytes, handle))
        self._cut_bytes = self.end_bytes
        self._unreported_bytes = 0
        self._held_bytes = None
        self._of_snapshot, self._begun = {}, {}
        self._number = self._latest = self._settled = 0


def _carried(end_bytes: int, size_bytes: int) -> Handle:
    """A piece of the log that lies in no file: acknowledgements and metadata hold it."""
    return Handle(f"{_LOG}{end_bytes}", size_bytes, "exclusive", None)
