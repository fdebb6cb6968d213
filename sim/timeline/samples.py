"""What threads did and what lay in queues, looked at in steps: the data plane says totals, and their differences are a picture."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from sim.runtime.run.job_instance import JobInstance

STATES = ("processing", "idle", "back-pressured")
"""What the time of a thread is spent on; work for checkpoints counts as processing, as in Flink."""
_COLUMNS = (("busy_ns",), ("idle_ns",), ("soft_ns", "hard_ns"))


@dataclass(frozen=True, slots=True)
class TimelineSample:
    """What threads did and what lay in queues, in one step."""

    time_ns: int
    spent: np.ndarray  # by task and state, since the sample before [ns]
    input_bytes: np.ndarray  # by vertex: received and not read yet
    output_bytes: np.ndarray  # by vertex: written and not sent yet
    in_flight_bytes: int  # in all channels


@dataclass(slots=True)
class Samples:
    """The samples of all job instances between two times [ns].  `attach` is called with each instance."""

    step_ns: int
    begin_ns: int
    end_ns: int
    by_instance: list[list[TimelineSample]] = field(default_factory=list)

    def attach(self, instance: JobInstance) -> None:
        _Looking(self, instance)


class _Looking:
    """The sampler of one job instance."""

    def __init__(self, samples: Samples, instance: JobInstance) -> None:
        self.samples = samples
        self.instance = instance
        self._rows: list[TimelineSample] = []
        samples.by_instance.append(self._rows)
        self._vertex = np.array(instance.layout.vertex)
        self._before = self._spent()
        now = instance.env.now
        self._arm(max(0, samples.begin_ns - now) or samples.step_ns)

    def _arm(self, delay_ns: int) -> None:
        self.instance.env.timeout(delay_ns).callbacks.append(lambda _: self._look())

    def _look(self) -> None:
        now, spent = self.instance.env.now, self._spent()
        if now > self.samples.end_ns:
            return
        channels = self.instance.plane.channels()
        count = len(self.instance.spec.vertices)
        reader, writer = self._vertex[np.array(self.instance.layout.reader)], self._vertex[np.array(self.instance.layout.writer)]
        received = np.bincount(reader, channels["arrived"] - channels["taken"], count)
        unsent = np.bincount(writer, channels["written"] - channels["sent"], count)
        in_flight = int((channels["written"] - channels["taken"]).sum())
        self._rows.append(TimelineSample(now, spent - self._before, received, unsent, in_flight))
        self._before = spent
        self._arm(self.samples.step_ns)

    def _spent(self) -> np.ndarray:
        rows = self.instance.plane.tasks()
        return np.stack([sum(rows[column] for column in columns) for columns in _COLUMNS], axis=1)
