"""A TaskManager: the resources that its tasks share.

* `Contention` and `Processor`: CPU cores
* `StagingSpace`: local disk space for files that wait for their upload
* `LogUploads`: batched uploads of changelogs
* `ChannelStateWriter`: files of channel state
* `TaskManager`: all of these together
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import simpy

from sim.model.randomness import slowdown
from sim.model.state import Changelog
from sim.model.units import SECOND
from sim.plane.interface import ThreadState
from sim.runtime.clock import TwoPlaneEnvironment
from sim.runtime.context import Context
from sim.storage.filesystem import CheckpointStorage, FileStream
from sim.storage.ledger import DiskFull, FileId, Name, StorageFailed
from sim.storage.lsm import CompactionThread
from sim.storage.requests import Work, run_detached

# ---- Task threads of a host slow each other down if they need more cores than it has.
#
# With n runnable threads on c cores, n - c of them wait, so all work takes E[n] / E[min(n, c)] times as long as on idle
# cores.  How busy each thread has been gives that for threads that are busy at independent times.  But buffers that are
# flushed together make their readers runnable together.  So some seconds of the simulation are looked at closely: how many
# threads are runnable at the same time, and how much more they wait than independent ones (burstiness).
#
# Of a recorded job with twelve threads on two cores, work of 1.24 cores kept 2.45 threads busy; independent ones would have
# been 1.44.  Its simulation keeps 2.1 busy.
#
# The slowdown is an average over the last seconds.  A burst is not slowed down more than the time around it.

_FIRST_INTERVAL_NS, _MAX_INTERVAL_NS = 100_000_000, 1_000_000_000
"""Time between two updates of the slowdown [ns].  The first interval is short, and each later one twice as long, up to the second value.

Otherwise a run would begin with a second without contention."""
_AVERAGING_NS = 5_000_000_000
"""Averaging time of busy shares and of burstiness [ns], about that of Flink's gauges."""
_MIN_RELATIVE_CHANGE = 0.01
"""Smaller relative changes of the slowdown are not applied."""
_SAMPLE_NS = 27_100_003
"""Time between two looks at the runnable threads [ns].  It is not a multiple of flush timeouts, so no phase of them is preferred."""
_INTERVALS_SAMPLED_AT_FIRST, _INTERVALS_PER_SAMPLED_ONE = 30, 60
"""The first intervals are sampled, and later one in so many: samples of a whole day would take longer than the day's records."""
_MIN_WAITING = 0.01
"""Minimum slowdown - 1 of independent threads at which burstiness is measured.  With less, threads hardly ever wait."""
_IS_RUNNABLE = np.array([state in (ThreadState.BUSY, ThreadState.HELD) for state in ThreadState])


class _RunningAverage:
    """The average of values over the last `_AVERAGING_NS`, or over less while less is known."""

    def __init__(self, size: int) -> None:
        self.values = np.zeros(size)
        self._known_ns = 0  # time that the average covers so far

    def add(self, observed: np.ndarray[Any, Any], since_ns: int) -> None:
        """Add the values of the last `since_ns`."""
        self._known_ns = min(self._known_ns + since_ns, _AVERAGING_NS)
        self.values += since_ns / self._known_ns * (observed - self.values)


class Contention:
    """The contention of the tasks of one host for its cores.  Call `start` when the tasks run."""

    def __init__(self, context: Context, tasks: Sequence[int], cores: int) -> None:
        self.context = context
        self.tasks = list(tasks)
        self.cores = cores
        self.factor = 1.0
        self._works_ns = [context.vertex(task).work_ns for task in self.tasks]
        self._busy_ns, self._served = np.zeros(len(self.tasks)), np.zeros(len(self.tasks))
        self._shares = _RunningAverage(len(self.tasks))  # in which each thread works
        self._burstiness = _Burstiness(cores)
        self._intervals = 0
        self._slowed_ns, self._total_ns = 0.0, 0

    def start(self) -> None:
        """Measure from now to the end of the job.  Do nothing if there are at least as many cores as threads."""
        if len(self.tasks) > self.cores:
            self._busy_ns, self._served = self._read()
            self._measure(_FIRST_INTERVAL_NS)

    @property
    def mean_slowdown(self) -> float:
        """How many times as long work has taken so far as on idle cores."""
        return self._slowed_ns / self._total_ns if self._total_ns else 1.0

    def _read(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Return the busy time [ns] and the number of records served so far, by task."""
        rows = self.context.plane.tasks("busy_ns", "served")[self.tasks]
        return rows["busy_ns"].astype(float), rows["served"].astype(float)

    def _measure(self, interval_ns: int) -> None:
        """Update the slowdown after an interval, again and again.  Sample the runnable threads in some intervals."""
        begun_ns = int(self.context.env.now)
        is_sampled = self._intervals < _INTERVALS_SAMPLED_AT_FIRST or self._intervals % _INTERVALS_PER_SAMPLED_ONE == 0
        samples: list[np.ndarray[Any, Any]] = []

        def sample() -> None:
            samples.append(_IS_RUNNABLE[self.context.plane.tasks("state")["state"][self.tasks]])
            if self.context.env.now + _SAMPLE_NS < begun_ns + interval_ns:
                self.context.env.call_in(_SAMPLE_NS, sample)

        def update() -> None:
            self._update(interval_ns, samples)
            self._measure(min(2 * interval_ns, _MAX_INTERVAL_NS))

        if is_sampled:
            self.context.env.call_in(_SAMPLE_NS // 2, sample)
        self._intervals += 1
        self.context.env.call_in(interval_ns, update)

    def _update(self, since_ns: int, samples: Sequence[np.ndarray[Any, Any]]) -> None:
        """Update the averages and the slowdown of all tasks.  The last update was `since_ns` ago."""
        self._slowed_ns += self.factor * since_ns
        self._total_ns += since_ns
        busy, worked = self._shares_since(since_ns)
        self._shares.add(worked, since_ns)
        if samples:
            works = np.divide(worked, busy, out=np.ones(len(busy)), where=busy > 0)
            self._burstiness.observe(np.array(samples) @ works, worked, since_ns)
        factor = 1 + (slowdown(self._shares.values.tolist(), self.cores) - 1) * self._burstiness.factor
        if not math.isclose(factor, self.factor, rel_tol=_MIN_RELATIVE_CHANGE):
            self.factor = factor
            for task in self.tasks:
                self.context.speed.set_factor(task, "cores", Fraction(round(factor * 1024), 1024))

    def _shares_since(self, since_ns: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Return the shares of the last `since_ns` in which each thread was busy, and in which it worked.

        Flink counts a thread that waits for responses or in poll as busy.
        """
        before_ns, before = self._busy_ns, self._served
        self._busy_ns, self._served = self._read()
        busy, served = np.maximum(self._busy_ns - before_ns, 0) / since_ns, np.maximum(self._served - before, 0)
        work = [math.inf if work_ns is None else work_ns * self.factor / since_ns for work_ns in self._works_ns]
        with np.errstate(invalid="ignore"):  # 0 records of unlimited work
            return busy, np.fmin(busy, served * np.array(work))


class _Burstiness:
    """How many times as long threads wait for cores as threads that are busy at independent times."""

    def __init__(self, cores: int) -> None:
        self._cores = cores
        self._averages = _RunningAverage(3)  # runnable threads, running ones, slowdown of independent ones
        self.factor = 1.0

    def observe(self, runnable: np.ndarray[Any, Any], shares: np.ndarray[Any, Any], since_ns: int) -> None:
        """Take samples of the number of runnable threads, and the busy shares of the time in which they were taken."""
        independent = slowdown(shares.tolist(), self._cores)
        observed = np.array([runnable.mean(), np.minimum(runnable, self._cores).mean(), independent])
        self._averages.add(observed, since_ns)
        all_runnable, running, independent = self._averages.values.tolist()
        if running > 0 and independent > 1 + _MIN_WAITING:
            self.factor = (all_runnable / running - 1) / (independent - 1)


# ---- The cores of a TaskManager, which the asynchronous part of snapshots shares with the task threads.
#
# All runnable threads get equal shares of the cores, at most one core each (processor sharing, like the scheduler of an
# operating system).  A task thread counts with the share of time for which it has been busy.  Service times were
# measured while other tasks ran, so here only snapshot threads slow tasks down.

_MIN_MEASUREMENT_NS = 1_000_000_000
"""Minimum time between two measurements of the load [ns], so that snapshots taken one after the other see the same load."""
_PARTS_PER_THREAD = 1000
_WORK_UNITS_PER_NS = 1 << 20
"""Units of work per nanosecond.  Integers avoid rounding errors that would add up when the number of threads changes often."""


WorkOnCore = Callable[[Work[object], int], Work[None]]
"""A function (work, work_ns) that returns a process: it runs `work` and needs `work_ns` of CPU time at the same time."""


def on_own_core(env: simpy.Environment, work: Work[object], work_ns: int) -> Work[None]:
    """Process: run `work` on a core of its own.  It ends with `work`, but takes at least `work_ns`."""
    began_ns = env.now
    yield from work
    if (rest_ns := began_ns + work_ns - env.now) > 0:
        yield env.timeout(rest_ns)


class _Share:
    """The CPU work of one snapshot thread."""

    def __init__(self, work_ns: int, done: simpy.Event) -> None:
        self.left = work_ns * _WORK_UNITS_PER_NS  # remaining work, in units per ns on a core of its own
        self.done = done


class Processor:
    """The cores of a TaskManager, shared by task threads and snapshot threads.

    `busy_ns` returns the sum of the busy times of task threads since now.  `slow` is called with the factor by which
    snapshot threads slow the tasks down, whenever it may have changed.
    """

    def __init__(
        self, env: simpy.Environment, cores: int, busy_ns: Callable[[], int], slow: Callable[[Fraction], None]
    ) -> None:
        self.env = env
        self.cores = cores
        self._total_busy_ns = busy_ns
        self._slow = slow
        self._shares: list[_Share] = []
        self._load: Fraction | None = None  # mean number of busy task threads; None: not measured yet
        self._measured_ns, self._busy_ns = int(env.now), 0  # at the last measurement
        self._since_ns = 0
        self._plans = 0  # number of timers set; only the latest one is valid

    def share(self, work: Work[object], work_ns: int) -> Work[None]:
        """Process: run `work` and, at the same time, use the shared cores for `work_ns` of CPU time.  End when both have ended.

        If `work` fails, its thread leaves the cores.
        """
        share = _Share(work_ns, self.env.event())
        self._change(lambda: self._shares.append(share))
        try:
            yield from work
            if not share.done.triggered:
                yield share.done
        except GeneratorExit:
            raise  # the process is discarded after the run, when there is no data plane to slow down
        except BaseException:
            self._change(lambda: self._leave(share))
            raise

    def _leave(self, share: _Share) -> None:
        if share in self._shares:
            self._shares.remove(share)

    def _change(self, change: Callable[[], None]) -> None:
        """Account for the work done until now, apply `change` to the threads, and set the timer for the first one to end."""
        self._account()
        if not self._shares:
            self._measure()
        change()
        self._plan()

    def _measure(self) -> None:
        """Measure the load since the last measurement, rounded down to thousandths of a thread.

        A measurement is used again if it is less than `_MIN_MEASUREMENT_NS` old.
        """
        now_ns = int(self.env.now)
        since_ns = now_ns - self._measured_ns
        if since_ns >= _MIN_MEASUREMENT_NS or (since_ns and self._load is None):
            before_ns, self._busy_ns, self._measured_ns = self._busy_ns, self._total_busy_ns(), now_ns
            busy_ns = max(self._busy_ns - before_ns, 0)
            self._load = Fraction(busy_ns * _PARTS_PER_THREAD // since_ns, _PARTS_PER_THREAD)

    def _account(self) -> None:
        """Subtract the work done since the last call from the remaining work of each thread."""
        elapsed_ns, self._since_ns = int(self.env.now) - self._since_ns, int(self.env.now)
        speed = self._speed
        for share in self._shares:
            share.left -= elapsed_ns * _WORK_UNITS_PER_NS * speed.numerator // speed.denominator

    @property
    def _speed(self) -> Fraction:
        """The share of a core that each thread gets, at most 1."""
        threads = (self._load or Fraction(0)) + len(self._shares)
        return min(Fraction(1), self.cores / threads) if threads else Fraction(1)

    def _plan(self) -> None:
        """Report the slowdown of tasks, and set a timer for the first thread to end.  Earlier timers become invalid."""
        self._plans += 1
        self._slow(self._factor())
        if not self._shares:
            return
        plan, left, speed = self._plans, max(min(share.left for share in self._shares), 0), self._speed
        after_ns = -(-left * speed.denominator // (_WORK_UNITS_PER_NS * speed.numerator))
        self.env.timeout(after_ns).callbacks.append(lambda _: self._end() if plan == self._plans else None)

    def _factor(self) -> Fraction:
        """Return the factor by which snapshot threads make the service of a record longer than with task threads alone."""
        load = self._load or Fraction(0)
        return max(Fraction(1), (load + len(self._shares)) / self.cores) / max(Fraction(1), load / self.cores)

    def _end(self) -> None:
        """End the threads without remaining work."""
        self._account()
        for share in [share for share in self._shares if share.left <= 0]:
            self._shares.remove(share)
            share.done.succeed()
        self._plan()


# ---- Local disk space of a TaskManager for files that have been flushed and wait for their upload (FLINK-37375).
#
# A writer that finds too little space either waits until uploads have ended (first come, first served) or fails, as
# configured.


class StagingSpace:
    """The local disk space of one TaskManager for files that wait for their upload.

    `limit_bytes` is None if the space is unlimited.  With `waits`, writers wait for space; otherwise they fail.
    """

    def __init__(self, env: simpy.Environment, limit_bytes: int | None, *, waits: bool = True) -> None:
        self.env = env
        self.limit_bytes = limit_bytes  # None: unlimited
        self.waits = waits
        self.used_bytes = 0
        # called when a writer must wait; they start uploads that were delayed
        self.when_short: list[Callable[[], None]] = []
        self._waiting: list[tuple[int, simpy.Event]] = []

    def reserve(self, size_bytes: int) -> Work[None]:
        """Process: reserve space for a file, and wait for it if necessary.

        Raise DiskFull if writers do not wait, or if the file is larger than the whole space.
        """
        if not self._fits(size_bytes) or self._waiting:
            if not self.waits or (self.limit_bytes is not None and size_bytes > self.limit_bytes):
                raise DiskFull(f"{size_bytes} B to stage, {self.used_bytes} B of {self.limit_bytes} B in use")
            turn = self.env.event()
            self._waiting.append((size_bytes, turn))
            for upload in self.when_short:
                upload()
            try:
                yield turn
            except BaseException:  # the writer was interrupted: the next one may have its turn
                if turn.triggered:
                    self.release(size_bytes)
                else:
                    self._waiting.remove((size_bytes, turn))
                    self.release(0)
                raise
        else:
            self.used_bytes += size_bytes

    def release(self, size_bytes: int) -> None:
        """Release the space of a file that was uploaded, and grant it to waiting writers."""
        self.used_bytes -= size_bytes
        while self._waiting and self._fits(self._waiting[0][0]):
            size, turn = self._waiting.pop(0)
            self.used_bytes += size
            turn.succeed()

    def _fits(self, size_bytes: int) -> bool:
        return self.limit_bytes is None or self.used_bytes + size_bytes <= self.limit_bytes


# ---- Uploads of changelogs of one TaskManager: parts that subtasks hand in at about the same time become one file.
#
# As in Flink, BatchingStateChangeUploadScheduler collects parts until the batch is old or large enough, and a few threads
# upload batches.  RetryingExecutor starts another attempt while one that takes too long continues; the first one to
# succeed counts.  The caller decides which bytes are uploaded and keeps the references to them.  Not modelled: Flink
# blocks tasks when too many bytes are in flight.

_RETRY_PAUSE_NS = 500_000_000  # after an attempt that failed (state.changelog.dstl.dfs.upload.next-attempt-delay)


@dataclass(frozen=True, slots=True)
class LogPart:
    """A part of a log file, handed in by one subtask."""

    name: Name
    size_bytes: int
    done: Callable[[FileId | None], None]  # called with the file that contains the part, or None if all attempts failed


class _Batch:
    """The parts that are uploaded as one file, and the state of the attempts to do so."""

    def __init__(self, parts: list[LogPart]) -> None:
        self.parts = parts
        self.size_bytes = sum(part.size_bytes for part in parts)
        self.active = 1  # attempts started or scheduled that have neither failed nor timed out
        self.over = False

    def end(self, file: FileId | None) -> None:
        """Report the end of the upload to each part.  `file` is None if all attempts failed."""
        self.over = True
        for part in self.parts:
            part.done(file)


class LogUploads:
    """The changelog uploads of one TaskManager, with a pool of `threads` upload threads.

    Options may differ between parts.  A batch is uploaded with the options passed when it is closed.
    """

    def __init__(self, env: simpy.Environment, storage: CheckpointStorage, host: int, threads: int) -> None:
        self.env = env
        self.storage = storage
        self.host = host
        self._threads = simpy.Resource(env, threads)
        self._waiting: list[LogPart] = []
        self._batches = 0  # closed so far

    def submit_upload(self, part: LogPart, options: Changelog) -> None:
        """Add a part to the current batch, which is uploaded after the batch delay, or at once when it is large enough."""
        self._waiting.append(part)
        if not options.batch_delay_ns or sum(waiting.size_bytes for waiting in self._waiting) >= options.batch_bytes:
            self._close(options)
        elif len(self._waiting) == 1:
            number = self._batches
            timer = self.env.timeout(options.batch_delay_ns)
            timer.callbacks.append(lambda _: self._close(options) if number == self._batches else None)

    def _close(self, options: Changelog) -> None:
        """Close the current batch and start its upload."""
        self._batches += 1
        batch, self._waiting = _Batch(self._waiting), []
        self.env.process(self._attempt(batch, 1, options))

    def _attempt(self, batch: _Batch, number: int, options: Changelog, pause_ns: int = 0) -> Work[None]:
        """Process: one attempt to upload a batch, after a pause.  `number` counts attempts from 1.

        An attempt that timed out continues and occupies its thread until it ends.  If another one was faster, its file is
        deleted.
        """
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
                give_up(_RETRY_PAUSE_NS)
                return
            if not batch.over:
                lost = True  # so that its timeout is ignored
                batch.end(file)
                return
            try:
                yield from self.storage.delete([file], host=self.host)
            except StorageFailed:
                return  # deleting is best effort


# ---- Writing in-flight data: one writer thread and one file per group of subtasks of a task manager (FLINK-26803).
#
# In Flink: ChannelStateWriteRequestExecutor, ChannelStateCheckpointWriter.  Requests are served in order of arrival.  The
# file of a checkpoint is closed when every subtask of the group has completed its data; until then, all of them wait for
# it.  Without data there is no file.  Data below the threshold stays in the writer's buffer and is sent with the
# acknowledgements (FsCheckpointStreamFactory, data-inline-threshold; ChannelStateCheckpointWriter splits it by subtask).


@dataclass(slots=True)
class _File:
    """The channel state of one checkpoint and one group of tasks."""

    stream: FileStream
    incomplete: set[int]  # tasks that have not completed their data
    waiting: list[tuple[Callable[[], None], Callable[[], None]]] = field(default_factory=list)  # (closed, failed)
    size_bytes: int = 0
    in_file_bytes: int = 0  # of `size_bytes`; the rest is in the writer's buffer
    failed: bool = False  # a write failed after all its attempts

    @property
    def inlined(self) -> bool:
        """Whether all data is in the writer's buffer, and none in a file."""
        return not self.in_file_bytes


class _Request(NamedTuple):
    """A request to the writer thread."""

    checkpoint: int
    work: Callable[[], Work[None]]  # started when all earlier requests have been served
    ended: Callable[[], None]  # called when it has been served, successfully or not


class ChannelStateWriter:
    """The thread that writes the channel state of one group.

    `members` are the tasks that share its files, `host` is the number of their TaskManager.
    """

    _gone: frozenset[int] = frozenset()
    """Members that have finished.  All writers share the empty set at first, because a set takes 216 B."""

    def __init__(self, env: TwoPlaneEnvironment, storage: CheckpointStorage, members: list[int], host: int = 0) -> None:
        self.env = env
        self.storage = storage
        self.members = members
        self.host = host
        # called for each durable file with (checkpoint, tasks, file, bytes)
        self.on_file: Callable[[int, Iterable[int], FileId, int], None] | None = None
        # called with (checkpoint, tasks) for inlined data
        self.on_inlined: Callable[[int, Iterable[int]], None] | None = None
        self._files: dict[int, _File] = {}
        self._requests: list[_Request] = []  # the first one is being served

    def register(self, checkpoint: int) -> None:
        """Open the file of a checkpoint, when the first member begins its snapshot.  Later calls do nothing."""
        if checkpoint not in self._files:
            stream = self.storage.open("channel-state", self.members[0], checkpoint, host=self.host)
            self._files[checkpoint] = _File(stream, incomplete=set(self.members) - self._gone)

    def join(self, task: int) -> None:
        """Add a member that starts, possibly after a restart."""
        if task in self._gone:
            self._gone -= {task}

    def leave(self, task: int) -> None:
        """Remove a member that has finished.  The group no longer waits for its data (ChannelStateWriteRequestExecutor#releaseSubtask)."""
        self._gone |= {task}
        for checkpoint in list(self._files):
            self.complete(checkpoint, task)

    def write(self, checkpoint: int, size_bytes: int, then: Callable[[], None]) -> None:
        """Queue data to be written.  `then` is called after that, also if the write failed or the checkpoint has been aborted."""

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
        """Declare that the task has no more data for the checkpoint.  The last task of the group closes the file."""

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
        """Call `then` when the file of the whole group is durable, or `failed` when writing it has failed.

        Neither is called if the checkpoint is aborted.
        """
        file = self._files.get(checkpoint)
        if file is not None and file.failed:
            failed()
        elif file is not None:
            file.waiting.append((then, failed))

    def abort(self, checkpoint: int) -> None:
        """Discard the channel state of a checkpoint.  Its queued requests are skipped."""
        if (file := self._files.pop(checkpoint, None)) is not None:
            file.stream.give_up()

    def _queue(self, checkpoint: int, work: Callable[[], Work[None]], ended: Callable[[], None]) -> None:
        self._requests.append(_Request(checkpoint, work, ended))
        if len(self._requests) == 1:
            turns = self._turns()
            if (awaited := next(turns, None)) is not None:
                run_detached(turns, awaited)

    def _turns(self) -> Work[None]:
        """Process: serve all requests, one after the other.

        This is a loop, not a chain of callbacks: requests of aborted checkpoints take no time, so callbacks would nest
        too deeply.
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
        """Call those who wait for the file of a checkpoint, if all tasks have completed their data."""
        file = self._files.get(checkpoint)
        if file is not None and not file.incomplete and not file.failed:
            del self._files[checkpoint]
            for closed, _ in file.waiting:
                closed()

    def _fail(self, checkpoint: int) -> None:
        """Mark the file of the group as failed, and call those who wait for it (ChannelStateCheckpointWriter#fail)."""
        if (file := self._files.get(checkpoint)) is not None:
            file.failed = True
            waiting, file.waiting = file.waiting, []
            for _, failed in waiting:
                failed()


# ---- The TaskManager: staging space, channel state files, changelog uploads, the compaction thread, and cores.


class TaskManager:
    """One TaskManager: the resources that its tasks share.

    `channel_state` has the channel state writer of each task; groups of tasks share one
    (max-subtasks-per-channel-state-file).
    """

    def __init__(self, context: Context, number: int, tasks: list[int]) -> None:
        options = context.scenario.checkpoint
        self.context = context
        self.number = number
        self.staging = StagingSpace(context.env, options.staging_bytes, waits=options.staging_full == "block")
        self.compaction = CompactionThread()
        self.work_on_core: WorkOnCore = partial(on_own_core, context.env)
        self.channel_state: dict[int, ChannelStateWriter] = {}
        for first in range(0, len(tasks), options.subtasks_per_channel_state_file):
            group = tasks[first : first + options.subtasks_per_channel_state_file]
            self.channel_state |= dict.fromkeys(group, ChannelStateWriter(context.env, context.storage, group, number))
        self._log_uploads: LogUploads | None = None

    def log_uploads(self, threads: int) -> LogUploads:
        """Return the changelog uploads, which are created in the first call.  `threads` of later calls is ignored."""
        if self._log_uploads is None:
            self._log_uploads = LogUploads(self.context.env, self.context.storage, self.number, threads)
        return self._log_uploads
