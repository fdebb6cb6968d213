"""The account of sources that keep in step: what each has reported and heard, and how much it has read since."""

from __future__ import annotations

from collections.abc import Iterable

from sim.checkers.alignment import LIMITED, WITHIN_LIMIT, LimitedReading, wrong_limit
from sim.checkers.violation import Violation
from sim.metrics.journal import Happening
from sim.runtime.accounts.account import RunAccount, WatchedRun


class AlignmentAccount(RunAccount):
    """Knows the watermarks that the present JobManager has heard, and the limits that each source has."""

    turns = frozenset({Happening.JOB_RESTORED, Happening.TASK_FAILED, Happening.RESCALED, Happening.JOB_MANAGER_LOST})

    def __init__(self, watched: WatchedRun) -> None:
        super().__init__(watched)
        self._watermarks: dict[str, dict[int, int]] = {}  # group -> source task -> watermark [ns]
        self._leader = 0
        self._readings: dict[int, LimitedReading] = {}  # by source task, since its attempt began

    def watermark_reported(self, leader: int, group: str, task: int, watermark_ns: int) -> None:
        self._known_to(leader).setdefault(group, {})[task] = watermark_ns

    def limits_announced(self, leader: int, group: str, drift_ns: int, limit_ns: int) -> None:
        fact = wrong_limit(limit_ns, self._known_to(leader).get(group, {}), drift_ns)
        if fact is not None and self.is_first(LIMITED, group):
            self.found.append(Violation(LIMITED, self.now_ns, f"the sources of group {group}", fact, self.turns_of(-1)))

    def watermark_sampled(self, task: int, watermark_ns: int) -> None:
        self.tell_of_task(WITHIN_LIMIT, task, self._of(task).sample(watermark_ns, self._served(task)))

    def limited(self, task: int, limit_ns: int) -> None:
        self.tell_of_task(WITHIN_LIMIT, task, self._of(task).limit(limit_ns, self._served(task)))

    def restarted(self, checkpoint: int, tasks: Iterable[int]) -> None:
        """Limits are no state."""
        for task in tasks:
            self._readings.pop(task, None)

    def _known_to(self, leader: int) -> dict[str, dict[int, int]]:
        if leader != self._leader:
            self._leader, self._watermarks = leader, {}
        return self._watermarks

    def _of(self, task: int) -> LimitedReading:
        if task not in self._readings:
            source = self.context.scenario.job.vertices[self.context.layout.vertex[task]].source
            alignment = None if source is None else source.watermark.alignment
            self._readings[task] = LimitedReading.of(0 if alignment is None else alignment.buffer)
        return self._readings[task]

    def _served(self, task: int) -> int:
        return int(self.context.plane.served()[task])
