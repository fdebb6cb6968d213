"""A TaskManager: cores, staging room, uploads of changelogs, files of channel state."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

import simpy

from sim.model.randomness import slowdown
from sim.model.state import Changelog
from sim.model.units import SECOND
from sim.runtime.clock import TwoPlaneEnvironment
from sim.runtime.context import Context
from sim.runtime.host_loop import Speed
from sim.storage.filesystem import CheckpointStorage, FileStream
from sim.storage.ledger import DiskFull, FileId, Name, StorageFailed
from sim.storage.lsm import CompactionThread
from sim.storage.requests import Work, run_detached

# ---- Task threads that want more cores than their host has slow each other down.
#
# A mean-field law: what counts is how busy each thread has been lately, not which of them run at this moment.  So
# bursts that are shorter than the memory slow each other down by as much as the average of their host.

_FIRST_NS, _LATER_NS = 100_000_000, 1_000_000_000
"""From one look to the next; the first ones follow each other sooner, so that a run does not begin with idle cores."""
_MEMORY_NS = 5_000_000_000
"""Busy shares are averages over about so long: as long as a gauge of Flink needs to see a wait."""
_CHANGE = 0.01
"""A smaller change of the slowdown changes nothing."""


class Contention:
    """The tasks of one host; `start` it once the tasks run."""

    def __init__(self, context: Context, speed: Speed, tasks: Sequence[int], cores: int) -> None:
        self.context = context
        self.speed = speed
        self.tasks = list(tasks)
        self.cores = cores
        self.factor = 1.0
        self._shares = [0.0] * len(self.tasks)
        self._busy_ns, self._served = [0] * len(self.tasks), [0] * len(self.tasks)
        self._works_ns = [context.vertex(task).work_ns for task in self.tasks]
        self._known_ns = 0  # what the averages are over

    def start(self) -> None:
        """From now to the end of the job, if there are more threads than cores."""
        if len(self.tasks) > self.cores:
            self._busy_ns, self._served = self._read()
            self.context.env.call_in(_FIRST_NS, lambda: self._look(_FIRST_NS))

    def _read(self) -> tuple[list[int], list[int]]:
        """Read the busy time [ns] and the records served so far, by task."""
        rows = self.context.plane.tasks("busy_ns", "served")[self.tasks]
        return rows["busy_ns"].tolist(), rows["served"].tolist()

    def _look(self, since_ns: int) -> None:
        busy_ns, served = self._busy_ns, self._served
        self._busy_ns, self._served = self._read()
        self._known_ns = min(self._known_ns + since_ns, _MEMORY_NS)
        weight = since_ns / self._known_ns
        for i, work_ns in enumerate(self._works_ns):
            worked_ns = float(max(self._busy_ns[i] - busy_ns[i], 0))
            if work_ns is not None:
                worked_ns = min(worked_ns, max(self._served[i] - served[i], 0) * work_ns * self.factor)
            self._shares[i] += weight * (worked_ns / since_ns - self._shares[i])
        factor = slowdown(self._shares, self.cores)
        if not math.isclose(factor, self.factor, rel_tol=_CHANGE):
            self.factor = factor
            for task in self.tasks:
                self.speed.slow(task, "cores", Fraction(round(factor * 1024), 1024))
        after_ns = min(2 * since_ns, _LATER_NS)
        self.context.env.call_in(after_ns, lambda: self._look(after_ns))


# ---- The cores of a task manager: asynchronous work of snapshots shares them with the threads of its tasks.
#
# Every thread that can run gets the same share of the cores, and none more than one core (processor sharing, as an
# operating system does).  Task threads count by the share of time they have been busy.  Services of records were
# measured beside each other, so only threads of snapshots slow tasks down.

_WINDOW_NS = 1_000_000_000
"""Task threads are looked at again after so long: tasks that take a snapshot one after the other see the same load."""
_THOUSAND = 1000
_UNIT = 1 << 20
"""Work is counted in such parts of a nanosecond: whole numbers, however often the number of threads changes."""


WorkOnCore = Callable[[simpy.Environment, Work[object], int], Work[None]]
"""A process for a work, and one that takes so long on a core; over when both are."""


def on_own_core(env: simpy.Environment, work: Work[object], work_ns: int) -> Work[None]:
    """Process: no thread waits for a core."""
    began_ns = env.now
    yield from work
    if (rest_ns := began_ns + work_ns - env.now) > 0:
        yield env.timeout(rest_ns)


class Busy:
    """A gauge of the task threads that want a core.  `total_ns`: how long all of them have been busy since `begin_ns`."""

    def __init__(self, total_ns: Callable[[], int], begin_ns: int = 0) -> None:
        self._total_ns = total_ns
        self._at_ns = begin_ns
        self._busy_ns = 0
        self._threads: Fraction | None = None

    def threads(self, now_ns: int) -> Fraction:
        """The mean number of busy threads since the last reading, in thousandths."""
        since_ns = now_ns - self._at_ns
        if since_ns >= _WINDOW_NS or (since_ns and self._threads is None):
            busy_ns = self._total_ns()
            self._threads = Fraction(max(busy_ns - self._busy_ns, 0) * _THOUSAND // since_ns, _THOUSAND)
            self._at_ns, self._busy_ns = now_ns, busy_ns
        return self._threads or Fraction(0)


class _Share:
    """Work of one thread on the shared cores."""

    def __init__(self, work_ns: int, done: simpy.Event) -> None:
        self.left = work_ns * _UNIT  # on a core of its own
        self.done = done


class Processor:
    """The cores of a task manager.  `slow` is called with the factor by which threads of snapshots slow the tasks down."""

    def __init__(self, env: simpy.Environment, cores: int, busy: Busy, slow: Callable[[Fraction], None]) -> None:
        self.env = env
        self.cores = cores
        self._busy = busy
        self._slow = slow
        self._shares: list[_Share] = []
        self._load = Fraction(0)
        self._since_ns = 0
        self._plans = 0  # so many have been made; only the latest holds

    def share(self, work: Work[object], work_ns: int) -> Work[None]:
        """Process: a work, and one that takes so long on a core of its own; over when both are."""
        share = _Share(work_ns, self.env.event())
        self._change(lambda: self._shares.append(share))
        try:
            yield from work
            if not share.done.triggered:
                yield share.done
        except GeneratorExit:
            raise  # the run and its plane have ended
        except BaseException:
            self._change(lambda: self._leave(share))
            raise

    def work_on_core(self, _: simpy.Environment, work: Work[object], work_ns: int) -> Work[None]:
        return self.share(work, work_ns)

    def _leave(self, share: _Share) -> None:
        if share in self._shares:
            self._shares.remove(share)

    def _change(self, change: Callable[[], None]) -> None:
        """Account for the time until now, change who works, and plan when the first of them will be done."""
        self._account()
        if not self._shares:
            self._load = self._busy.threads(int(self.env.now))
        change()
        self._plan()

    def _account(self) -> None:
        elapsed_ns, self._since_ns = int(self.env.now) - self._since_ns, int(self.env.now)
        speed = self._speed
        for share in self._shares:
            share.left -= elapsed_ns * _UNIT * speed.numerator // speed.denominator

    @property
    def _speed(self) -> Fraction:
        """The share of a core that each thread gets."""
        threads = self._load + len(self._shares)
        return min(Fraction(1), self.cores / threads) if threads else Fraction(1)

    def _plan(self) -> None:
        self._plans += 1
        self._slow(self._factor())
        if not self._shares:
            return
        plan, left, speed = self._plans, max(min(share.left for share in self._shares), 0), self._speed
        after_ns = -(-left * speed.denominator // (_UNIT * speed.numerator))
        self.env.timeout(after_ns).callbacks.append(lambda _: self._end() if plan == self._plans else None)

    def _factor(self) -> Fraction:
        """How much longer a record takes than beside task threads alone."""
        alone = max(Fraction(1), self._load / self.cores)
        return max(Fraction(1), (self._load + len(self._shares)) / self.cores) / alone

    def _end(self) -> None:
        """A piece of work is done."""
        self._account()
        for share in [share for share in self._shares if share.left <= 0]:
            self._shares.remove(share)
            share.done.succeed()
        self._plan()


# ---- Local room of a task manager for files on their way to storage: what is flushed waits here until it is uploaded (FLINK-37375).
#
# A writer that finds no room waits for an upload to end, first come first served, or gives up, as configured.


class StagingSpace:
    """The local room of one task manager for files that wait for their upload."""

    def __init__(self, env: simpy.Environment, limit_bytes: int | None, *, waits: bool = True) -> None:
        self.env = env
        self.limit_bytes = limit_bytes  # None: there is always room
        self.waits = waits
        self.used_bytes = 0
        self.most_bytes = 0  # ever used
        self.when_short: list[Callable[[], None]] = []  # uploads that could begin
        self._waiting: list[tuple[int, simpy.Event]] = []

    def reserve(self, size_bytes: int) -> Work[None]:
        """Process: room for so much.  Raises DiskFull if it must not wait, or would wait for ever."""
        if not self._fits(size_bytes) or self._waiting:
            if not self.waits or (self.limit_bytes is not None and size_bytes > self.limit_bytes):
                raise DiskFull(f"{size_bytes} B to stage, {self.used_bytes} B of {self.limit_bytes} B in use")
            turn = self.env.event()
            self._waiting.append((size_bytes, turn))
            for upload in self.when_short:
                upload()
            yield from self._granted(size_bytes, turn)
        else:
            self._take(size_bytes)

    def release(self, size_bytes: int) -> None:
        self.used_bytes -= size_bytes
        while self._waiting and self._fits(self._waiting[0][0]):
            size, turn = self._waiting.pop(0)
            self._take(size)
            turn.succeed()

    def _granted(self, size_bytes: int, turn: simpy.Event) -> Work[None]:
        try:
            yield turn
        except BaseException:  # the waiting writer is gone: the next may go on
            if turn.triggered:
                self.release(size_bytes)
            else:
                self._waiting.remove((size_bytes, turn))
                self.release(0)
            raise

    def _fits(self, size_bytes: int) -> bool:
        return self.limit_bytes is None or self.used_bytes + size_bytes <= self.limit_bytes

    def _take(self, size_bytes: int) -> None:
        self.used_bytes += size_bytes
        self.most_bytes = max(self.most_bytes, self.used_bytes)


# ---- How the changelogs of one task manager get into storage: parts that subtasks hand in at about the same time become one file.
#
# Flink:  BatchingStateChangeUploadScheduler collects until the batch is old or large enough, a few threads upload, and
# RetryingExecutor begins another attempt beside one that takes too long; whichever ends first counts.  Which bytes, and
# who refers to them, is the caller's business.  Not modelled: blocking tasks when too much is in flight.

_PAUSE_NS = 500_000_000  # after an attempt that failed (state.changelog.dstl.dfs.upload.next-attempt-delay)


@dataclass(frozen=True, slots=True)
class LogPart:
    """A part of a log file, handed in by one subtask."""

    name: Name
    size_bytes: int
    done: Callable[[FileId | None], None]  # called with the file that holds the part; None: given up


class _Batch:
    """The parts that become one file."""

    def __init__(self, parts: list[LogPart]) -> None:
        self.parts = parts
        self.size_bytes = sum(part.size_bytes for part in parts)
        self.active = 1  # attempts begun or to be begun that have neither failed nor run out of time
        self.over = False

    def end(self, file: FileId | None) -> None:
        self.over = True
        for part in self.parts:
            part.done(file)


class LogUploads:
    """The uploads of one task manager.  Options may differ from part to part; each batch follows those of its last one."""

    def __init__(self, env: simpy.Environment, storage: CheckpointStorage, host: int, threads: int) -> None:
        self.env = env
        self.storage = storage
        self.host = host
        self._threads = simpy.Resource(env, threads)
        self._waiting: list[LogPart] = []
        self._batches = 0  # closed so far

    def hand_in(self, part: LogPart, options: Changelog) -> None:
        """Add a part to the next batch.  The batch is uploaded after the delay, or at once if it is large enough."""
        self._waiting.append(part)
        if not options.batch_delay_ns or sum(waiting.size_bytes for waiting in self._waiting) >= options.batch_bytes:
            self._close(options)
        elif len(self._waiting) == 1:
            number = self._batches
            timer = self.env.timeout(options.batch_delay_ns)
            timer.callbacks.append(lambda _: self._close(options) if number == self._batches else None)

    def _close(self, options: Changelog) -> None:
        self._batches += 1
        batch, self._waiting = _Batch(self._waiting), []
        self.env.process(self._attempt(batch, 1, options))

    def _attempt(self, batch: _Batch, number: int, options: Changelog, pause_ns: int = 0) -> Work[None]:
        """Process: one attempt; it keeps its thread to its end even if another one was faster."""
        if pause_ns:
            yield self.env.timeout(pause_ns)
        lost = False

        def give_up(pause_ns: int = 0) -> None:
            nonlocal lost
            if lost or batch.over:
                return
            lost = True
            if number < options.upload_attempts:
                batch.active += 1
                self.env.process(self._attempt(batch, number + 1, options, pause_ns))
            batch.active -= 1
            if not batch.active:
                batch.end(None)

        with self._threads.request() as turn:
            yield turn
            if batch.over:
                return
            if options.upload_timeout_ns is not None:
                self.env.timeout(options.upload_timeout_ns).callbacks.append(lambda _: give_up())
            name = batch.parts[0].name if number == 1 else (*batch.parts[0].name, number)
            try:
                file = yield from self.storage.write(batch.size_bytes, *name, host=self.host)
            except StorageFailed:
                give_up(_PAUSE_NS)
                return
            if not batch.over:
                lost = True  # it has ended: neither its time-out nor a failure counts any more
                batch.end(file)
                return
            try:
                yield from self.storage.delete([file], host=self.host)
            except StorageFailed:
                return  # best effort


# ---- Writing in-flight data: one writer thread and one file per group of subtasks of a task manager (FLINK-26803).
#
# Flink:  ChannelStateWriteRequestExecutor, ChannelStateCheckpointWriter.  Requests are first come, first served.  The
# file of a checkpoint is closed, and all subtasks of the group are released, when every subtask of the group has
# completed its data.  Without data there is no file.  As long as there is little of it, it stays in the writer's
# buffer, and in the end in the acknowledgements (FsCheckpointStreamFactory, data-inline-threshold;
# ChannelStateCheckpointWriter cuts it up by subtask).


@dataclass(slots=True)
class _File:
    """The channel state of one checkpoint and one group."""

    stream: FileStream
    incomplete: set[int]  # tasks that may still write
    waiting: list[tuple[Callable[[], None], Callable[[], None]]] = field(default_factory=list)  # (closed, failed)
    size_bytes: int = 0
    in_file_bytes: int = 0  # of these; the rest is in the buffer
    failed: bool = False  # storage gave up

    @property
    def inlined(self) -> bool:
        """Whether all of it is in the writer's buffer, and none in a file."""
        return not self.in_file_bytes


class _Request(NamedTuple):
    """A write of the writer thread, with what follows it."""

    checkpoint: int
    work: Callable[[], Work[None]]  # begun when its turn comes
    ended: Callable[[], None]


class ChannelStateWriter:
    """The thread that writes the channel state of one group.

    `members`: the tasks that share its files; `host`: their task manager.
    """

    _gone: frozenset[int] = frozenset()
    """Members that have finished.  Writers share the empty set: each of its own takes 216 B."""

    def __init__(self, env: TwoPlaneEnvironment, storage: CheckpointStorage, members: list[int], host: int = 0) -> None:
        self.env = env
        self.storage = storage
        self.members = members
        self.host = host
        # told of each file: checkpoint, tasks, id, bytes
        self.on_file: Callable[[int, Iterable[int], FileId, int], None] | None = None
        self.on_inlined: Callable[[int, Iterable[int]], None] | None = None  # told what needs none: checkpoint, tasks
        self._files: dict[int, _File] = {}
        self._requests: list[_Request] = []  # the first one is being served

    def register(self, checkpoint: int) -> None:
        """A member begins its snapshot."""
        if checkpoint not in self._files:
            stream = self.storage.open("channel-state", self.members[0], checkpoint, host=self.host)
            self._files[checkpoint] = _File(stream, incomplete=set(self.members) - self._gone)

    def join(self, task: int) -> None:
        """A member begins, perhaps after a restart."""
        if task in self._gone:
            self._gone -= {task}

    def leave(self, task: int) -> None:
        """A member has finished: the group no longer waits for its data (ChannelStateWriteRequestExecutor#releaseSubtask)."""
        self._gone |= {task}
        for checkpoint in list(self._files):
            self.complete(checkpoint, task)

    def write(self, checkpoint: int, size_bytes: int, then: Callable[[], None]) -> None:
        """Queue data; `then` is called when it is written (or skipped, its checkpoint being gone)."""

        def work() -> Work[None]:
            file = self._files.get(checkpoint)
            if file is not None and not file.failed:
                file.size_bytes += size_bytes
                if not (file.inlined and self.storage.is_inlined(file.size_bytes)):
                    buffered_bytes, file.in_file_bytes = file.size_bytes - file.in_file_bytes, file.size_bytes
                    rate = self.storage.options.in_flight_bytes_per_second
                    thread_ns = 0 if rate is None else buffered_bytes * SECOND // rate
                    yield from on_own_core(self.env, file.stream.write(buffered_bytes), thread_ns)

        self._queue(checkpoint, work, then)

    def complete(self, checkpoint: int, task: int) -> None:
        """No more data of this task for this checkpoint."""

        def work() -> Work[None]:
            file = self._files.get(checkpoint)
            if file is not None and not file.failed:
                file.incomplete.discard(task)
                if file.incomplete or not file.size_bytes:
                    return
                if file.inlined:
                    if self.on_inlined is not None:
                        self.on_inlined(checkpoint, self.members)
                else:
                    stored = yield from file.stream.close()
                    if self.on_file is not None:
                        self.on_file(checkpoint, self.members, stored, file.size_bytes)

        self._queue(checkpoint, work, lambda: self._close(checkpoint))

    def when_closed(self, checkpoint: int, then: Callable[[], None], failed: Callable[[], None] = lambda: None) -> None:
        """Call `then` when the file of the whole group is durable, `failed` if storage gives up (neither, if the checkpoint is gone)."""
        file = self._files.get(checkpoint)
        if file is not None and file.failed:
            failed()
        elif file is not None:
            file.waiting.append((then, failed))

    def abort(self, checkpoint: int) -> None:
        """Forget a checkpoint; what is queued for it is skipped."""
        if (file := self._files.pop(checkpoint, None)) is not None:
            file.stream.give_up()

    def _queue(self, checkpoint: int, work: Callable[[], Work[None]], ended: Callable[[], None]) -> None:
        self._requests.append(_Request(checkpoint, work, ended))
        if len(self._requests) == 1:
            turns = self._turns()
            if (awaited := next(turns, None)) is not None:
                run_detached(turns, awaited)

    def _turns(self) -> Work[None]:
        """Process: one request after the other.

        A loop: the requests of aborted checkpoints take no time, and a call for each within the call before would be
        too deep.
        """
        while self._requests:
            request = self._requests[0]
            try:
                yield from request.work()
            except StorageFailed:
                self._fail(request.checkpoint)
            request.ended()
            del self._requests[0]

    def _close(self, checkpoint: int) -> None:
        file = self._files.get(checkpoint)
        if file is not None and not file.incomplete and not file.failed:
            del self._files[checkpoint]
            for closed, _ in file.waiting:
                closed()

    def _fail(self, checkpoint: int) -> None:
        """Give up the file of the group (ChannelStateCheckpointWriter#fail)."""
        if (file := self._files.get(checkpoint)) is not None:
            file.failed = True
            waiting, file.waiting = file.waiting, []
            for _, failed in waiting:
                failed()


# ---- What the tasks of one task manager share: room for staged files, files of channel state, uploads of changelogs, the
# compaction of state, cores.


class TaskManager:
    """One task manager: the resources that its tasks share.

    `channel_state`: the writer of each task; groups of subtasks share one (max-subtasks-per-channel-state-file).
    """

    def __init__(self, context: Context, number: int, tasks: list[int]) -> None:
        options = context.scenario.checkpoint
        self.context = context
        self.number = number
        self.staging = StagingSpace(context.env, options.staging_bytes, waits=options.staging_full == "block")
        self.compaction = CompactionThread()
        self.work_on_core: WorkOnCore = on_own_core
        self.channel_state: dict[int, ChannelStateWriter] = {}
        for first in range(0, len(tasks), options.subtasks_per_channel_state_file):
            group = tasks[first : first + options.subtasks_per_channel_state_file]
            self.channel_state |= dict.fromkeys(group, ChannelStateWriter(context.env, context.storage, group, number))
        self._log_uploads: LogUploads | None = None

    def log_uploads(self, threads: int) -> LogUploads:
        """`threads`: as many as the subtask allows that asks first."""
        if self._log_uploads is None:
            self._log_uploads = LogUploads(self.context.env, self.context.storage, self.number, threads)
        return self._log_uploads
