"""Measurements of a run that are taken from outside the tasks.

* the latency of records from the sources to the ends of the job graph
* the critical path of each checkpoint
* the usual backlog, and when a restarted job has caught up with it
* the table `series`, with a sample of each vertex per second
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from sim.model.job import Job
from sim.model.units import MS, SECOND
from sim.plane.interface import EDGE_COLUMNS, START_COLUMN, VERTEX_COLUMNS, SourceSpec, channels_in
from sim.results.columns import SERIES, frame, task_name
from sim.results.critical_path import CriticalPath, FileSpan, Graph, critical_path
from sim.results.journal import PackedRows
from sim.results.tables import Latency, RecoveryStats
from sim.runtime.context import Context, TaskSnapshot
from sim.storage.ledger import FileId
from sim.storage.requests import Work, schedule_urgent_callback

if TYPE_CHECKING:
    from sim.results.columns import Row
    from sim.results.journal import Entry


# ---- The latency of records from the sources to the vertices without readers, measured during the run.


class RecordLatency:
    """The latency of records from all sources to the vertices without readers.

    `tasks` are the numbers of the tasks of each vertex.  `positions` is the number of records each task has served at the
    time `now` [ns].  `room` is the expected number of later rows of positions, to reserve memory.
    """

    def __init__(self, job: Job, tasks: Sequence[np.ndarray], now: int, positions: np.ndarray, room: int = 0) -> None:
        # the tasks of a vertex have consecutive numbers (N1)
        self._tasks = [slice(int(of_vertex[0]), int(of_vertex[-1]) + 1) for of_vertex in tasks]
        self._copies = {
            v: [(source, float(number)) for source, number in copies.items()]
            for v, copies in enumerate(_copies(job))
            if copies
        }
        initial_curves = {v: [float(curve[0]) for curve in self._curves(v, positions[None])] for v in self._copies}
        self._latency = {v: Latency(now, emitted, served, room) for v, (emitted, served) in initial_curves.items()}

    def means_ms(self, times: np.ndarray, positions: np.ndarray, stride: int) -> Mapping[int, np.ndarray]:
        """Return the mean latency [ms] of the records served in each group of `stride` rows, by vertex without readers.

        `positions` has one row per time in `times` [ns], with the number of records that each task has served.  The
        number of rows is a multiple of `stride`.  -1 means that the vertex served no record in the group.
        """
        means_ns = {
            v: latency.means(times, *self._curves(v, positions), stride) for v, latency in self._latency.items()
        }
        return {v: np.where(means >= 0, means / MS, -1.0) for v, means in means_ns.items()}

    def _curves(self, v: int, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return (records emitted for vertex `v` by its sources, records served by `v`), one entry per row of `positions`."""
        emitted = np.zeros(len(positions))
        for source, copies in self._copies[v]:
            emitted += copies * positions[:, self._tasks[source]].sum(axis=1)
        return emitted, positions[:, self._tasks[v]].sum(axis=1).astype(float)


def _copies(job: Job) -> list[dict[int, Fraction]]:
    """Return, for each vertex, how many records reach it per record of each source (by the number of the source).

    Only vertices that have inputs and no readers have entries.
    """
    copies_of: dict[str, dict[int, Fraction]] = {}
    ends: list[dict[int, Fraction]] = []
    for v, vertex in enumerate(job.vertices):
        counts = {v: Fraction(1)} if vertex.source is not None else {}
        for inlet in vertex.inputs:
            factor = job.fan_out(inlet) * (vertex.parallelism if inlet.shipping.copies else 1)
            for source, copies in copies_of[inlet.upstream].items():
                counts[source] = counts.get(source, Fraction(0)) + copies * factor
        copies_of[vertex.name] = counts
        ends.append(counts if vertex.inputs and vertex.name in job.sinks else {})
    return ends


# ---- The critical paths of a job instance's checkpoints, from its journal and the files in its storage.


class Paths:
    """The critical paths of one job instance.  Create it after the end of the instance: later events are ignored."""

    def __init__(self, context: Context) -> None:
        self.context = context
        layout, job = context.layout, context.scenario.job
        size = context.scenario.checkpoint.subtasks_per_channel_state_file
        barriers = context.scenario.checkpoint.barriers
        timeout_ns = barriers.timeout_ns if barriers.record.has_deadline else None
        self.graph = Graph(
            layout.writer.__getitem__, partial(channels_in, layout), groups(context.hosts, size), timeout_ns
        )
        commits = [
            job.vertex(vertex.committer_of).commit if vertex.committer_of else vertex.commit for vertex in job.vertices
        ]
        self._commits = {
            task: commit.time_ns for task, v in enumerate(layout.vertex) if (commit := commits[v]) is not None
        }

    def of(self, checkpoint: int) -> CriticalPath:
        """Return the critical path of a checkpoint.  Raise KeyError if there was no such checkpoint."""
        return critical_path(
            self.context.stats[checkpoint],
            self.entries_of(checkpoint),
            self.graph,
            self.files,
            self._commits,
            ended_ns=self.context.env.now,
        )

    def entries_of(self, checkpoint: int) -> Sequence[Entry]:
        """Return the journal's entries about a checkpoint, in order of time."""
        return [self.context.journal[place] for place in self._places.get(checkpoint, ())]

    def table(self, only: Collection[str] | None = None) -> pd.DataFrame:
        """Return the table `path` with the critical paths of all checkpoints.  If `only` is given, it has only these columns."""
        return frame(
            "path", (row for number in sorted(self.context.stats) for row in self._rows(self.of(number))), only
        )

    def files(self, task: int, begin_ns: int, end_ns: int) -> Sequence[FileSpan]:
        """Return the files of a task that were being written at some time between `begin_ns` and `end_ns`, by creation time."""
        files, longest_ns = self._files.get(task, ([], 0))
        first = bisect_left(files, begin_ns - longest_ns, key=lambda file: file.created_ns)
        until = bisect_left(files, end_ns, lo=first, key=lambda file: file.created_ns)
        return [file for file in files[first:until] if file.durable_ns is None or file.durable_ns > begin_ns]

    def _rows(self, path: CriticalPath) -> Iterator[Row]:
        names, writers, files = self.context.names, self.context.layout.writer, self.context.storage.files
        for number, part in enumerate((*path.parts, *path.after)):
            yield {
                "id": path.checkpoint,
                "part": part.kind.value,
                **task_name(("", -1) if part.task < 0 else names[part.task]),
                "upstream": "" if part.channel < 0 else "{}[{}]".format(*names[writers[part.channel]]),
                "begin": part.begin_ns - path.begin_ns,
                "duration": part.duration_ns,
                "file": "" if part.file < 0 else "/".join(map(str, files[FileId(part.file)].name)),
                "acknowledged": number >= len(path.parts),
            }

    @cached_property
    def _places(self) -> Mapping[int, Sequence[int]]:
        return self.context.journal.positions()

    @cached_property
    def _files(self) -> dict[int, tuple[list[FileSpan], int]]:
        """The files of each task, by creation time, and the longest time from the creation of one until it was durable [ns]."""
        number = {name: task for task, name in enumerate(self.context.names)}
        of_task: dict[int, list[FileSpan]] = defaultdict(list)
        for stored in self.context.storage.files:
            task = number.get(stored.name[1:3])  # type: ignore[arg-type]  # names of other files have other parts
            if task is not None and (stored.durable_ns is None or stored.durable_ns > stored.created_ns):
                of_task[task].append(FileSpan(stored.id, stored.created_ns, stored.durable_ns))
        return {
            task: (
                files,
                max((file.durable_ns - file.created_ns for file in files if file.durable_ns is not None), default=0),
            )
            for task, files in of_task.items()
        }


def groups(hosts: Sequence[int], size: int) -> list[int]:
    """Return the group of each task.  Tasks of the same group share their channel state files.

    A group has up to `size` consecutive tasks of one TaskManager (max-subtasks-per-channel-state-file).
    """
    members: dict[int, int] = defaultdict(int)
    numbers: dict[tuple[int, int], int] = {}
    group_of = []
    for host in hosts:
        group_of.append(numbers.setdefault((host, members[host] // size), len(numbers)))
        members[host] += 1
    return group_of


# ---- Records that are due in the log of a source, from the segments that the data plane reads, too (rule W1).


def due_records(source: SourceSpec, now: int) -> int:
    """Return the number of records of one subtask that are due until `now` [ns].

    Return 0 for a source without rates, which never has a backlog: it emits as fast as it can.
    """
    i = source.segments.last_until(START_COLUMN, now)
    if i < 0:
        return 0
    segment = source.segments[i]
    due = segment.first + ((now - segment.start_ns + 1) * segment.records - 1) // segment.per_ns + 1
    if i + 1 < len(source.segments):
        due = min(due, source.segments[i + 1].first)
    return due if source.total < 0 else min(due, source.total)


# ---- The usual backlog of a job that runs undisturbed: a mean over at least the last checkpoint interval.
#
# Checkpoints, windows and bursts make queues grow and shrink.  The mean does not depend on the phase at which a failure
# happens, so a job has caught up at the same level wherever in the cycle it failed.

MIN_SAMPLED_NS = 10_000_000_000
"""Minimum time that the samples cover [ns].  They also cover a whole checkpoint interval and a whole window."""
SAMPLES = 21
"""Number of samples in that time.  The error of the mean is about 1/21 of the variation.

With 20, samples would usually be a multiple of the buffer timeout (100 ms) apart.  They would then always meet output
buffers that were just flushed, or always buffers that are just about to be flushed.
"""


class NormalBacklog:
    """Samples of the backlog, taken at regular intervals except while tasks are down, catching up, or about to stop.

    `is_up` returns whether all tasks run.
    """

    def __init__(self, context: Context, is_up: Callable[[], bool]) -> None:
        self.context = context
        self.is_up = is_up
        self.catching_up = 0  # number of restarts whose tasks are still catching up
        self._may_stop = any(action.stop is not None for action in context.scenario.actions)
        # (time [ns], `plane.served()`, `plane.in_flight()`)
        self._samples: deque[tuple[int, np.ndarray, np.ndarray]] = deque(maxlen=SAMPLES)
        scenario = context.scenario
        windows_ns = (vertex.window.size_ns for vertex in scenario.job.vertices if vertex.window is not None)
        self._period_ns = max(MIN_SAMPLED_NS, scenario.checkpoint.interval_ns or 0, *windows_ns) // SAMPLES
        schedule_urgent_callback(context.env, self._sample_later)

    def _sample_later(self) -> None:
        self.context.env.call_in(self._period_ns, self._sample)

    def _sample(self) -> None:
        if not self.catching_up and self.is_up() and not self._is_stopping():
            self._samples.append((self.context.env.now, self.context.plane.served(), self.context.plane.in_flight()))
        self._sample_later()

    def _is_stopping(self) -> bool:
        """Return whether a savepoint that is to stop the job is under way: tasks read nothing, and queues run empty."""
        stats = self.context.stats.values() if self._may_stop else ()
        return any(row.stops and row.status == "IN_PROGRESS" for row in stats)

    def in_log(self, task: int, now: int, emitted: int) -> int:
        """Return the number of records that are due in the log of a task and not emitted; 0 if the task is not a source."""
        source = self.context.log(task)
        return 0 if source is None else max(0, due_records(source, now) - emitted)

    def waiting(self, sources: Sequence[int]) -> float | None:
        """Return the mean number of records waiting in the logs of these tasks, or None if there are no samples."""
        return _mean(
            [sum(self.in_log(task, now, int(served[task])) for task in sources) for now, served, _ in self._samples]
        )

    def in_flight_mean(self, tasks: Sequence[int]) -> float | None:
        """Return the mean number of records in flight between these tasks, or None if there are no samples.

        The tasks must restart together: no channel connects them to other tasks.
        """
        return _mean([int(in_flight[tasks].sum()) for _, _, in_flight in self._samples])


def _mean(counts: Sequence[int]) -> float | None:
    """Return the mean, or None if there are no counts."""
    return sum(counts) / len(counts) if counts else None


# ---- The progress of a restarted job: its first record, the records replayed, and when its backlog is as usual again.

FIRST_RECORD_CHECK_NS = 10_000_000
"""Time between two checks for the first record [ns], and thus the precision of its time."""
MIN_CHECK_NS = 62_000_000
"""Minimum time between two checks whether the job has caught up [ns].

They must not be a multiple of the buffer timeout (100 ms) apart, for the same reason as `LOOKS`: 62 ms visit all phases of
100 ms evenly."""
MAX_CHECK_NS = 1_000_000_000
"""Maximum time between two checks [ns].

It is limited because the rate so far underestimates a job that is still warming up or delayed by checkpoints."""


class CatchUp:
    """The progress of one restart.

    Create it before the tasks are started again, while the data plane still has the positions at which they failed.
    `parts` are the snapshots that the tasks are restored from.
    """

    def __init__(
        self, context: Context, stats: RecoveryStats, parts: dict[int, TaskSnapshot], usual: NormalBacklog
    ) -> None:
        self.context = context
        self.usual = usual
        usual.catching_up += 1
        self.env = context.env
        self.stats = stats
        origin = context.origin if stats.number == 1 else None
        served = context.plane.served() if origin is None else origin.served
        self.sources = [task for task in sorted(parts) if not context.layout.task_gates[task]]
        self.position = {task: int(served[task]) for task in self.sources}  # records served before the failure
        stats.replayed_records = sum(max(0, self.position[task] - parts[task].position.served) for task in self.sources)
        job = context.scenario.job
        ends = [task for task in sorted(parts) if job.vertices[context.layout.vertex[task]].name in job.sinks]
        stats.served_again = sum(max(0, int(served[task]) - parts[task].position.served) for task in ends)
        self.tasks = sorted(parts)
        waiting, in_flight_mean = (
            usual.waiting(self.sources),
            usual.in_flight_mean(self.tasks),
        )  # their readers restart with them
        if origin is not None:  # a job is rescaled to get rid of its backlog, and a new job has no usual one
            waiting = 0.0
        elif waiting is None:  # no samples, because it failed too early: take the backlog at that time
            waiting = float(sum(usual.in_log(task, stats.failed_ns, self.position[task]) for task in self.sources))
        self.waiting = waiting
        if in_flight_mean is None and origin is None:
            in_flight_mean = float(self._in_flight())
        # None if the restore changed the channels, so that there is nothing to compare with, and behind sources without a rate,
        # which fill all channels before and after
        logs = map(context.log, self.sources)
        self.in_flight_mean = in_flight_mean if any(log is not None and log.segments for log in logs) else None
        self.restored = {task: part.position.served for task, part in parts.items()}
        self.readers = [task for task in self.tasks if context.layout.task_gates[task]] or self.sources
        self._watching = False

    def begin(self, tasks: set[int], then: Callable[[], None]) -> None:
        """Start to watch the restarted `tasks`, when the first of their threads starts.  Later calls do nothing.

        Watching ends, and `then` is called, when the tasks have caught up or when one of them has failed again and was
        removed from `tasks`.
        """
        if not self._watching:
            self._watching = True
            self.stats.lag_at_start_ns = max((self._lag_ns(task) for task in self.sources), default=0)
            self.env.process(self._watch(tasks, then))

    def _lag_ns(self, task: int) -> int:
        """Return the time since the record that a restored source emits next was due [ns], 0 if none is due."""
        source, following = self.context.log(task), self.restored[task]
        if source is None or not source.segments or following == source.total:
            return 0
        return max(0, self.env.now - source.due(following))

    def _watch(self, tasks: set[int], then: Callable[[], None]) -> Work[None]:
        yield from self._wait_until_caught_up(tasks)
        self.usual.catching_up -= 1
        then()

    def _wait_until_caught_up(self, tasks: set[int]) -> Work[None]:
        everything, begun_ns = len(tasks), self.env.now
        largest, next_ns = self._distance(), FIRST_RECORD_CHECK_NS
        while True:
            yield self.env.timeout(next_ns)
            if len(tasks) < everything:
                return
            if self.stats.first_record_ns < 0:
                served = self.context.plane.served()
                if any(served[task] > self.restored[task] for task in self.readers):
                    self.stats.first_record_ns = self.env.now
            elif (distance := self._distance()) <= len(self.tasks) and self.stats.running_ns >= 0:
                # up to one record per task is tolerated
                self.stats.caught_up_ns = self.env.now
                return
            else:
                largest = max(largest, distance)
                next_ns = self._next_check_ns(largest, distance, self.env.now - begun_ns)

    def _next_check_ns(self, largest: float, distance: float, spent_ns: int) -> int:
        """Return the time until the next check [ns]: half of the estimated remaining time, within limits.

        `largest` is the largest distance so far, `distance` the current one [records]; `spent_ns` is the time since the start.
        """
        left_ns = int(spent_ns * distance / (largest - distance)) if largest > distance else 2 * spent_ns
        return min(max(MIN_CHECK_NS, left_ns // 2), MAX_CHECK_NS)

    def _distance(self) -> float:
        """Return the number of records that the job still has to catch up with.

        It is the sum of the records that sources have to replay, and of the excess over the usual backlog in logs and
        in channels.
        """
        served = self.context.plane.served()
        behind = sum(max(0, self.position[task] - int(served[task])) for task in self.sources)
        waiting = sum(self.usual.in_log(task, self.env.now, int(served[task])) for task in self.sources)
        in_flight_mean = 0.0 if self.in_flight_mean is None else self._in_flight() - self.in_flight_mean
        return behind + max(0, waiting - self.waiting) + max(0, in_flight_mean)

    def _in_flight(self) -> int:
        """Return the number of records in flight between the restarted tasks: written and not read yet."""
        return int(self.context.plane.in_flight()[self.tasks].sum())


# ---- The table `series`: for each vertex and interval, what it did since the last sample, and the length of its queues.
#
# During the run, a look only copies a few numbers of the data plane.  Many looks are converted to rows at once, because a
# call of NumPy costs the same for few and for many numbers.

SAMPLE_NS = 1_000_000_000
_COPIES_PER_SAMPLE = 5  # copies of the number of records served, per sample (for the latency)
_MAX_BUFFERED_NUMBERS = 1 << 16
"""Maximum numbers buffered before they are converted to rows: little memory compared to the job, much work for one NumPy call."""


class Sampler:
    """The samples of a job instance, one every `SAMPLE_NS`.

    `progress` is called with the simulated time [ns] after each sample.  If `only` is given, the table has only these
    columns.
    """

    def __init__(
        self,
        context: Context,
        progress: Callable[[int], None] | None,
        only: Collection[str] | None = None,
    ) -> None:
        self.context = context
        self.progress = progress
        layout, vertices = context.layout, context.scenario.job.vertices
        # an upper bound: a later job instance has fewer samples
        samples = context.scenario.run.duration_ns // SAMPLE_NS
        self._rows = PackedRows(
            [column.name for column in SERIES if only is None or column.name in only], samples * len(vertices)
        )
        self._vertices = np.array([vertex.name for vertex in vertices], object)
        vertex = np.array(layout.vertex)
        self._tasks = [np.flatnonzero(vertex == v) for v in range(len(vertices))]
        edges = context.spec.edges
        self._readers = [edge.downstream for edge in edges]  # vertex, by edge
        self._writers = [edge.upstream for edge in edges]
        self._record_latency = RecordLatency(
            context.scenario.job, self._tasks, context.env.now, context.plane.served(), samples * _COPIES_PER_SAMPLE
        )
        self._block = (
            max(1, _MAX_BUFFERED_NUMBERS // (len(layout.vertex) * _COPIES_PER_SAMPLE)) * _COPIES_PER_SAMPLE
        )  # maximum looks buffered
        self._times: list[int] = []  # of the buffered looks [ns]
        self._positions: list[np.ndarray] = []  # records served at these times; each array has several rows
        self._sums: list[np.ndarray] = []  # `plane.sums()` at the last sample converted to rows and at each later one
        schedule_urgent_callback(context.env, self._begin)

    def frame(self) -> pd.DataFrame:
        """Return the table `series`.  Call it at the end of the run."""
        self._make_rows()
        return self._rows.frame()

    def _begin(self) -> None:
        self._sum_up()
        self.context.env.poll_every(SAMPLE_NS // _COPIES_PER_SAMPLE, self._sample, self._copies_left)

    def _copies_left(self) -> int:
        """Return the number of looks until the next sample."""
        return _COPIES_PER_SAMPLE - len(self._times) % _COPIES_PER_SAMPLE

    def _sample(self, times: Sequence[int], served: np.ndarray) -> None:
        self._times.extend(times)
        self._positions.append(served)
        if len(self._times) % _COPIES_PER_SAMPLE == 0:
            self._sum_up()
            if len(self._times) == self._block:
                self._make_rows()
            if self.progress is not None:
                self.progress(self.context.env.now)

    def _sum_up(self) -> None:
        self._sums.append(self.context.plane.sums())

    def _make_rows(self) -> None:
        """Convert the buffered samples to rows."""
        samples = len(self._sums) - 1
        if samples < 1:
            return
        times, positions = (
            np.array(self._times[: samples * _COPIES_PER_SAMPLE]),
            np.concatenate(self._positions)[: samples * _COPIES_PER_SAMPLE],
        )
        vertices, at = len(self._vertices), len(self._vertices) * len(VERTEX_COLUMNS)
        sums = np.array(self._sums)
        done = dict(
            zip(VERTEX_COLUMNS, np.moveaxis(sums[:, :at].reshape(samples + 1, vertices, -1), 2, 0), strict=True)
        )
        columns = {
            "time": np.repeat(times[_COPIES_PER_SAMPLE - 1 :: _COPIES_PER_SAMPLE] / SECOND, vertices),
            "vertex": np.tile(self._vertices, samples).tolist(),
            **self._rates({name: np.diff(totals, axis=0).astype(float) for name, totals in done.items()}),
            **self._queues(sums[1:, at:].reshape(samples, -1, len(EDGE_COLUMNS))),
            **self._behind(
                times[_COPIES_PER_SAMPLE - 1 :: _COPIES_PER_SAMPLE].tolist(),
                positions[_COPIES_PER_SAMPLE - 1 :: _COPIES_PER_SAMPLE],
            ),
            "x_latency": self._latency(times, positions),
        }
        self._rows.extend(
            [
                values if isinstance(values, list) else values.reshape(-1)
                for name, values in columns.items()
                if name in self._rows.columns
            ]
        )
        self._times, self._positions, self._sums = [], [], self._sums[-1:]

    # ------------------------------------------------------------------------------------------ columns: a row per sample, vertex by vertex

    def _rates(self, gained: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the columns of rates and time shares from the increases since the previous sample (rows) by vertex (columns)."""
        spent = SAMPLE_NS * np.array([len(tasks) for tasks in self._tasks])
        return {
            "numRecordsInPerSecond": gained["served"] * SECOND / SAMPLE_NS,
            "numBytesOutPerSecond": gained["bytes_out"] * SECOND / SAMPLE_NS,
            "busy": gained["busy_ns"] / spent,
            "idle": gained["idle_ns"] / spent,
            "backPressured": (gained["soft_ns"] + gained["hard_ns"]) / spent,
        }

    def _queues(self, waiting: np.ndarray) -> dict[str, np.ndarray]:
        """Return the queue sizes [bytes] and lengths [buffers] by sample and vertex.

        `waiting` has the values of `EDGE_COLUMNS` by sample and edge.  Input queues belong to the downstream vertex of an edge,
        output queues to the upstream vertex.
        """
        names = {
            "inputQueueSize": self._readers,
            "outputQueueSize": self._writers,
            "inputQueueLength": self._readers,
            "outputQueueLength": self._writers,
        }
        columns = {}
        for (name, vertex), values in zip(names.items(), np.moveaxis(waiting[:, :, [0, 2, 1, 3]], 2, 0), strict=True):
            columns[name] = np.zeros((len(self._vertices), len(waiting)), np.int64)
            np.add.at(columns[name], vertex, values.T)
        return {name: values.T for name, values in columns.items()}

    def _behind(self, times: list[int], positions: np.ndarray) -> dict[str, np.ndarray]:
        """Return the columns `backlog` [records due and not emitted] and `lag` [age of the oldest of them, s].

        Rows are samples, columns are vertices.  Both are 0 for vertices other than sources with rates.
        """
        backlog, lag = (
            np.zeros((len(times), len(self._vertices)), np.int64),
            np.zeros((len(times), len(self._vertices))),
        )
        for v, vertex in enumerate(self.context.spec.vertices):
            source = vertex.source
            if source is None or not source.segments:
                continue
            emitted = positions[:, self._tasks[v]][:, : self.context.scenario.job.vertices[v].emitting]
            due = [due_records(source, now) for now in times]
            backlog[:, v] = np.maximum(np.array(due)[:, None] - emitted, 0).sum(axis=1)
            for i, oldest in enumerate(emitted.min(axis=1).tolist()):
                if oldest < due[i]:
                    lag[i, v] = (times[i] - source.due(oldest)) / SECOND
        return {"backlog": backlog, "lag": lag}

    def _latency(self, times: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """Return the mean latency [ms] by sample and vertex, -1 if unknown."""
        means = np.full((len(times) // _COPIES_PER_SAMPLE, len(self._vertices)), -1.0)
        for v, of_vertex in self._record_latency.means_ms(times, positions, _COPIES_PER_SAMPLE).items():
            means[:, v] = of_vertex
        return means
