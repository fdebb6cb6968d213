"""One checkpoint as an animation: events, and the bytes and barriers in channels over time, for runs side by side.

The description is data.  `sim/results/player.html` draws it.
"""

# A channel is a stream of bytes.  Its offsets, and what the animation shows of them, read from the right:
#
#   written                     W                barrier                consumed
#      |-------- behind --------|--- overtaken ---|-------- ahead ---------|
#   writer                                                              reader
#
# W is `written` when the writer forwarded its barrier.  A barrier that stays in order is at W, so nothing is overtaken.
# One that overtakes is at the end of what was sent, and at the reader's end of the channel as soon as it arrives.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sim.explain.close_up import CloseUp
from sim.explain.explanation import accounts
from sim.plane.interface import channels_in, channels_out
from sim.results.journal import Entry, EventType
from sim.results.tables import CheckpointStats
from sim.results.violations import JournalFormatter
from sim.runtime.context import Context, TaskSnapshot
from sim.runtime.job_instance import JobInstance
from sim.runtime.simulate import simulate

MAX_SUBTASKS = 4
"""Subtasks of a vertex that are shown: those of the first run that acknowledge last."""
STEPS = 120
"""Samples of each run, besides those at its events."""
_RESOLUTION = 250
"""A sample is left out if no size differs from the previous one by this part of the fullest channel."""
_NEVER = 1 << 62
NOT_SENT, IN_CHANNEL, BLOCKED, TAKEN = range(4)
"""States of a barrier.  BLOCKED: it has arrived, and the task does not read on in its channel."""
_SAMPLED = ("written", "sent", "arrived", "consumed", "mark", "held_back", "capturing", "captured_from")


class _AllSampledError(Exception):
    """Ends a run whose samples are complete."""


@dataclass(slots=True)
class PlayedCheckpoint:
    """A checkpoint of a run, and samples of the channels during it, which are taken in another run."""

    run: str
    context: Context
    stats: CheckpointStats
    end_ns: int = field(init=False)
    entries: list[Entry] = field(init=False)
    channels: list[int] = field(default_factory=list)
    times_ns: list[int] = field(default_factory=list)  # of the samples
    samples: list[np.ndarray] = field(default_factory=list)
    parts: dict[int, TaskSnapshot] = field(default_factory=dict)

    def __post_init__(self) -> None:
        ended_ns = max(self.stats.completed_ns, self.stats.failed_ns)
        self.end_ns = self.context.env.now if ended_ns < 0 else ended_ns
        self.entries = [row for row in self.context.journal.entries_of(self.stats.number) if row.time_ns <= self.end_ns]

    @property
    def moments(self) -> np.ndarray:
        """The times of its events, since the trigger [ns]."""
        return np.unique([*(row.time_ns for row in self.entries), self.end_ns]) - self.stats.trigger_ns

    def latest(self) -> set[tuple[str, int]]:
        """Return (vertex, subtask) of the MAX_SUBTASKS of each vertex that acknowledge last, or not at all."""
        names, vertex_of, times = self.context.names, self.context.layout.vertex, self._times(EventType.ACKNOWLEDGED)
        latest_first = np.argsort(-times, kind="stable").tolist()
        return {
            names[task]
            for vertex in set(vertex_of)
            for task in [task for task in latest_first if vertex_of[task] == vertex][:MAX_SUBTASKS]
        }

    def record(self, shown: set[tuple[str, int]], clock: np.ndarray) -> None:
        """Run again until all samples are taken: at the times of the clock, and before and after each event.

        `shown`: (vertex, subtask) of the tasks between which channels are sampled.
        """
        layout, names = self.context.layout, self.context.names
        ends = enumerate(zip(layout.writer, layout.reader, strict=True))
        self.channels = [channel for channel, pair in ends if shown.issuperset(names[task] for task in pair)]
        times = np.unique(np.concatenate([clock, self.moments, self.moments + 1]))
        self.times_ns = (times + self.stats.trigger_ns).tolist()
        with suppress(_AllSampledError):
            simulate(self.context.scenario, check=False, attach=self._attach)
        del self.times_ns[len(self.samples) :]  # the run ended earlier

    def _attach(self, instance: JobInstance) -> None:
        if instance.env.now > self.times_ns[0]:
            return  # it is a checkpoint of an earlier instance
        on_cut_before, times_ns = instance.contents.on_cut, iter(self.times_ns)

        def cut(checkpoint: int, task: int, part: TaskSnapshot) -> None:
            on_cut_before(checkpoint, task, part)
            if checkpoint == self.stats.number:
                self.parts[task] = part

        def take_sample(_: object) -> None:
            self.samples.append(instance.plane.channels(*_SAMPLED)[self.channels])
            schedule()

        def schedule() -> None:
            if (at_ns := next(times_ns, None)) is None:
                raise _AllSampledError
            instance.env.timeout(at_ns - instance.env.now).callbacks.append(take_sample)

        instance.contents.on_cut = cut
        schedule()

    def _times(self, event_type: EventType) -> np.ndarray:
        """Return the time of the first such event of each task [ns], or _NEVER."""
        times = np.full(len(self.context.names), _NEVER)
        for row in reversed(self.entries):
            if row.event_type is event_type:
                times[row.task] = row.time_ns
        return times

    def rows(self) -> np.ndarray:
        """Return samples x channels x (ahead, overtaken, behind, not sent, stored, state of the barrier)."""
        layout = self.context.layout
        writer, reader, edge = (np.array(ends)[self.channels] for ends in (layout.writer, layout.reader, layout.edge))
        offsets = np.zeros((3, len(layout.writer)), np.int64)
        for task, part in self.parts.items():
            outputs = channels_out(layout, task)
            offsets[0, outputs], offsets[1, outputs] = part.position.written, part.position.overtaken
            offsets[2, channels_in(layout, task)] = part.position.captured
        barrier, overtaken, captured = offsets[:, self.channels]
        forwarded = self._times(EventType.BARRIER_FORWARDED)[writer]
        converted = self._times(EventType.OUTPUT_CONVERTED)[writer]
        begun = self._times(EventType.SNAPSHOT_BEGUN)[reader]
        prioritised = self._times(EventType.INPUT_PRIORITISED)[reader]
        kind = self.context.scenario.checkpoint.barriers.record
        overtakes = kind.overtakes and not kind.has_deadline and ~np.isin(edge, list(self.context.forced))

        now, table = np.array(self.times_ns)[:, None], np.stack(self.samples)
        capturing = table["capturing"] == self.stats.number
        is_sent, is_begun, has_arrived = now > forwarded, now > begun, table["mark"] >= self.stats.number
        captures = (captured > 0) | capturing.any(axis=0)
        at_head = has_arrived & (overtakes | (now > converted) | (now > prioritised) | (captures & is_begun))
        out = overtaken * (now > np.where(converted < _NEVER, converted, forwarded))
        end = np.where(is_sent, barrier, table["written"])
        before = np.maximum(end - table["consumed"], 0)
        ahead = np.where(at_head, 0, np.maximum(before - out, 0))
        is_blocked = (table["held_back"] > 0) & (table["mark"] == self.stats.number)
        is_taken = has_arrived & (ahead == 0) & (at_head | is_begun)
        stored = np.where(capturing, table["arrived"] - table["captured_from"], captured) * is_begun + out
        state = np.select([is_blocked, is_taken, is_sent], [BLOCKED, TAKEN, IN_CHANNEL], NOT_SENT)
        behind = table["written"] - np.maximum(end, table["consumed"])
        return np.stack([ahead, before - ahead, behind, table["written"] - table["sent"], stored, state], axis=2)

    def described(self, shown: set[tuple[str, int]], rows: np.ndarray, capacity: int) -> dict[str, Any]:
        """Return the description of the run.  `rows`: see `rows`."""
        layout, names, trigger_ns = self.context.layout, self.context.names, self.stats.trigger_ns
        tasks, formatter = [task for task in self.context.tasks if names[task] in shown], JournalFormatter((), names)
        events, channels = [], []
        for row in self.entries:
            if row.task < 0 or row.task in tasks:
                text = formatter.sentence(row)
                if row.event_type is EventType.BARRIER_ARRIVED:
                    text = (
                        f"{formatter.task(row.task)} takes the barrier of {formatter.task(layout.writer[row.number])}"
                    )
                place = tasks.index(row.task) if row.task >= 0 else -1
                events.append((row.time_ns - trigger_ns, row.event_type.value, place, text))
        for index, channel in enumerate(self.channels):
            sizes = rows[:, index]
            steps = np.column_stack([sizes[:, :-1] * _RESOLUTION // max(capacity, 1), sizes[:, -1]])
            changes = np.diff(steps, axis=0).any(axis=1)
            kept = np.flatnonzero(np.append(True, changes) | np.append(changes, True))
            ends = tasks.index(layout.writer[channel]), tasks.index(layout.reader[channel])
            channels.append({"ends": ends, "at": kept.tolist(), "rows": sizes[kept].tolist()})
        return {
            "name": self.run,
            "checkpoint": self.stats.number,
            "status": self.stats.status,
            "trigger": trigger_ns,
            "end": self.end_ns - trigger_ns,
            "tasks": list(map(formatter.task, tasks)),
            "events": events,
            "times": [at_ns - trigger_ns for at_ns in self.times_ns],
            "channels": channels,
        }


def choose_checkpoints(runs: Mapping[str, CloseUp], checkpoint: int | None = None) -> list[PlayedCheckpoint]:
    """Return a checkpoint of the first run (default: its slowest), and those of the others that are triggered closest in time.

    Raises `NoCheckpointError` if there is no such checkpoint.
    """
    account = accounts(*next(iter(runs.items())), checkpoint)[-1]
    chosen = []
    for run, close_up in runs.items():
        rows = [(one.context, row) for one in close_up.instances for row in one.context.stats.values()]
        if rows:
            nearest = min(rows, key=lambda found: abs(found[1].trigger_ns - account.trigger_ns))
            chosen.append(PlayedCheckpoint(run, *nearest))
    return chosen


def describe(chosen: Sequence[PlayedCheckpoint]) -> dict[str, Any]:
    """Return the animation of checkpoints side by side as JSON-ready data, times in ns since the trigger and sizes in bytes.

    * clock: times at equal steps of the playback.  Half of it is proportional to time, half has as many events per step.
    * capacity: the most bytes that were in one channel
    * hidden: number of subtasks that are not shown
    * runs: name, checkpoint, status, trigger and end; names of tasks; events (time, kind, index of the task or -1, sentence);
      times of samples; channels (indices of writer and reader; `at`: indices of samples; `rows`: see `PlayedCheckpoint.rows`)
    """
    shown = chosen[0].latest()
    moments = np.unique(np.concatenate([played.moments for played in chosen]))
    playback = moments / moments[-1] + np.linspace(0, 1, len(moments))
    clock = np.interp(np.linspace(0, 2, STEPS + 1), playback, moments).astype(np.int64)
    for played in chosen:
        played.record(shown, clock)
    rows = [played.rows() for played in chosen]
    capacity = max(int(sizes[..., :3].sum(axis=2).max(initial=0)) for sizes in rows)
    return {
        "clock": clock.tolist(),
        "capacity": capacity,
        "hidden": len(chosen[0].context.names) - len(shown),
        "runs": [played.described(shown, sizes, capacity) for played, sizes in zip(chosen, rows, strict=True)],
    }
