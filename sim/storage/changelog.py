"""The changelog of state, and state that expires."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

from sim.model.state import Changelog, State
from sim.model.storage import SnapshotType
from sim.model.units import SECOND
from sim.storage.lsm import distinct
from sim.storage.state_files import Backend, CannotFreeze, File, FrozenState, Handle, KeyedPart, Restoring, WriteStep

# ---- State whose changes are logged and uploaded as they happen, beside any other backend (FLIP-158, ChangelogKeyedStateBackend).
#
# A checkpoint refers to the last materialisation of the backend below and to the log since then.  So it writes little
# more than the log's tail, however much the backend below compacts.  The state a run begins with has been written by
# then: it opens the log.
#
# In memory nothing is uploaded.  A checkpoint copies all changes since the last materialisation on the task thread, and
# the acknowledgement carries them (InMemoryStateChangelogWriter#collectChanges).

_LOG = "log-"


class _Image(NamedTuple):
    """The image of a changelog backend in a snapshot."""

    below: Hashable  # of the backend below, at its last materialisation


class ChangelogBackend:
    """A backend with a changelog in front of it.

    Positions are bytes since the log began.  The writer of its files asks for them by `cut` and reports by `logged`.
    """

    def __init__(
        self, inner: Backend, state: State, options: Changelog, size_bytes: int, load_bytes_per_second: int | None
    ) -> None:
        self.inner = inner
        self.state = state
        self.options = options
        self.load_bytes_per_second = load_bytes_per_second
        self.end_bytes = size_bytes
        # by the backend below; None: a snapshot was restored, its size is not known yet
        self._held_bytes: int | None = size_bytes
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
        steps = tuple(
            step._replace(files=tuple(file._replace(scope="shared") for file in step.files)) for step in frozen.steps
        )
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
        # FsStateChangelogWriter#ensureCanPersist; a materialisation gets over it
        if self._failed_bytes > self._from_bytes:
            raise CannotFreeze("an upload of the changelog has failed before")
        tail = self.cut()
        ahead_bytes = self._unreported_bytes + (0 if tail is None else tail.size_bytes)
        self._unreported_bytes = 0
        return FrozenState(
            reused=(*self._materialised, *(handle for _, handle in self._log)),
            awaited=tuple(file for end_bytes, file in self._writing.values() if end_bytes > self._from_bytes),
            ahead_bytes=ahead_bytes,
            image=_Image(self._image),
        )

    def _copied(self) -> FrozenState:
        """Every change since the last materialisation, or since the state was restored."""
        tail_bytes = self.pending_bytes
        changes = tail_bytes // self.state.value_bytes
        tail = (_carried(self.end_bytes, tail_bytes),) if tail_bytes else ()
        ahead_bytes, self._unreported_bytes = self._unreported_bytes + tail_bytes, 0
        return FrozenState(
            changes * self.options.copy_ns,
            (WriteStep((), work_ns=changes * self.options.ship_ns),) if changes else (),
            reused=(*self._materialised, *(handle for _, handle in self._log), *tail),
            ahead_bytes=ahead_bytes,
            image=_Image(self._image),
        )

    def stored(self, number: int, type_: SnapshotType, files: Sequence[Handle]) -> None:
        """Savepoints are those of the backend below.  What a checkpoint refers to was reported before it was taken."""
        if type_ in ("canonical", "native"):
            self.inner.stored(number, type_, files)

    def notify_complete(self, number: int) -> None:
        """The materialisation it refers to is what the next one of the backend below builds upon."""
        materialisation = self._of_snapshot.get(number, 0)
        self._of_snapshot = {
            checkpoint: latest for checkpoint, latest in self._of_snapshot.items() if checkpoint > number
        }
        if materialisation:
            self._settled = max(self._settled, materialisation)
            self.inner.notify_complete(materialisation)

    def stop(self) -> None:
        self.inner.stop()

    def restore(self, number: int, parts: Sequence[KeyedPart], now_ns: int) -> Restoring:
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


# ---- Keys that expire some time after they were last written (StateTtlConfig: processing time, UpdateType.OnCreateAndWrite).
#
# Each age has its expected number of bytes.  Rewrites meet all live keys alike, and what they meet is young again.
# Integers throughout: the same on every machine.

_STEPS_PER_TTL = 32
"""Steps within a time to live.  New keys and rewrites are evenly spread over a step."""
_MAX_STEPS = 256
"""A call has at most so many.  After a longer time the steps are longer."""


class Cohort(NamedTuple):
    """The keys that were last written within one interval, evenly spread over it."""

    begin_ns: int
    end_ns: int
    size_bytes: int


Ages = tuple[Cohort, ...]
"""The live keys of a subtask, the oldest first."""


class ExpiryTurnover(NamedTuple):
    """The change of the live keys since the last call."""

    live_bytes: int
    expired_bytes: int


def together(parts: Iterable[tuple[Ages, Fraction]]) -> Ages:
    """The keys of several subtasks, of each the share of its key groups."""
    return tuple(
        sorted(cohort._replace(size_bytes=int(cohort.size_bytes * share)) for ages, share in parts for cohort in ages)
    )


class Expiry:
    """The live keys of one subtask, by age.  Those that a run begins with were written evenly over the time to live before it."""

    def __init__(self, ttl_ns: int, size_bytes: int, entry_bytes: int) -> None:
        self.ttl_ns = ttl_ns
        self.entry_bytes = entry_bytes
        self.ages: Ages = (Cohort(-ttl_ns, 0, size_bytes),) if size_bytes else ()
        self._now_ns = 0

    @property
    def live_bytes(self) -> int:
        return sum(cohort.size_bytes for cohort in self.ages)

    def stand(self, ages: Ages, now_ns: int) -> None:
        """Take over the keys of a snapshot, with the times of their last writes."""
        self.ages, self._now_ns = ages, now_ns

    def advance(self, added_bytes: int, rewritten: int, now_ns: int) -> ExpiryTurnover:
        """Let time pass: keys of `added_bytes` came and `rewritten` entries were written anew, evenly since the last call."""
        begin_ns, before_bytes = self._now_ns, self.live_bytes + added_bytes
        steps = max(1, min(-(-(now_ns - begin_ns) * _STEPS_PER_TTL // self.ttl_ns), _MAX_STEPS))
        for step in range(steps):
            first_ns, last_ns = (begin_ns + (now_ns - begin_ns) * at // steps for at in (step, step + 1))
            added, writes = (
                amount * (step + 1) // steps - amount * step // steps for amount in (added_bytes, rewritten)
            )
            self._write(added, writes, first_ns, last_ns)
            self._expire(last_ns)
        self._now_ns = now_ns
        return ExpiryTurnover(self.live_bytes, before_bytes - self.live_bytes)

    def _write(self, added_bytes: int, writes: int, first_ns: int, last_ns: int) -> None:
        """New keys and those that are rewritten form the youngest cohort."""
        young_bytes = added_bytes
        if writes and (keys := self.live_bytes // self.entry_bytes):
            met = distinct(writes, keys)
            kept = tuple(
                cohort._replace(size_bytes=cohort.size_bytes - cohort.size_bytes * met // keys) for cohort in self.ages
            )
            young_bytes += self.live_bytes - sum(cohort.size_bytes for cohort in kept)
            self.ages = kept
        if not young_bytes:
            return
        # snapshots come often: one step has one cohort
        if self.ages and last_ns - self.ages[-1].begin_ns <= self.ttl_ns // _STEPS_PER_TTL:
            first_ns, young_bytes = self.ages[-1].begin_ns, young_bytes + self.ages[-1].size_bytes
            self.ages = self.ages[:-1]
        self.ages += (Cohort(first_ns, last_ns, young_bytes),)

    def _expire(self, now_ns: int) -> None:
        horizon_ns = now_ns - self.ttl_ns
        self.ages = tuple(left for cohort in self.ages if (left := _younger(cohort, horizon_ns)).size_bytes)


def _younger(cohort: Cohort, horizon_ns: int) -> Cohort:
    """The keys of a cohort that were written after that time.

    Whole bytes go, and the cohort begins behind them: the answer does not depend on how often it is asked for.
    """
    if horizon_ns <= cohort.begin_ns:
        return cohort
    if horizon_ns >= cohort.end_ns or not cohort.size_bytes:  # small shares and rewrites leave nothing of some
        return cohort._replace(size_bytes=0)
    span_ns = cohort.end_ns - cohort.begin_ns
    gone_bytes = cohort.size_bytes * (horizon_ns - cohort.begin_ns) // span_ns
    return Cohort(
        cohort.begin_ns + gone_bytes * span_ns // cohort.size_bytes, cohort.end_ns, cohort.size_bytes - gone_bytes
    )
