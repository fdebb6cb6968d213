"""The smallest control plane: checkpoints across the seam, no snapshot takes time.

A trigger interrupts the sources; a source between two records forwards the barrier.  Aligned: the last barrier of a
task's gate forwards it and lets the input go on.  Unaligned: the first barrier overtakes the output and captures the
input, the last one ends the capture.
"""

from __future__ import annotations

from benchmarks.workloads import Outcome, Snapshot, Workload
from sim.plane.interface import Marker, Notice, NoticeKind, Trait
from sim.plane.kernel import KernelPlane

__all__ = ["drive", "outcome"]


class Driver:
    def __init__(self, plane: KernelPlane, work: Workload) -> None:
        self.plane = plane
        self.work = work
        self.traits = Trait.PRIORITY if work.unaligned else Trait.BLOCKING
        self.sources = work.spec.vertices[0].parallelism
        self.others = sum(vertex.parallelism for vertex in work.spec.vertices) - self.sources
        self.number = 0
        self.missing = 0  # tasks that have not seen the last barrier of the checkpoint under way
        self.first: dict[int, int] = {}
        self.bytes_out: dict[int, int] = {}
        self.snapshots: list[Snapshot] = []

    def run(self) -> None:
        plane, until, interval = self.plane, self.work.until_ns, self.work.interval_ns
        trigger = interval or until
        while True:
            notice = plane.advance(min(trigger, until))
            if notice.kind == NoticeKind.REACHED_TIME:
                if plane.now >= until:
                    return
                trigger += interval
                self.trigger()
            elif notice.kind == NoticeKind.INTERRUPTED:
                self.forward(notice.task)
            elif notice.kind == NoticeKind.ARRIVED:
                self.on_barrier(notice)

    def trigger(self) -> None:
        if self.missing == 0:
            self.number += 1
            self.missing = self.others
            for task in range(self.sources):
                self.plane.interrupt(task)

    def forward(self, task: int) -> int:
        """The barrier leaves on all outputs; what it overtakes counts as written at once."""
        captured = self.plane.forward(task, Marker(self.number, self.traits))
        if self.work.unaligned:
            self.plane.release_capture(task)
        return captured

    def on_barrier(self, notice: Notice) -> None:
        plane, task = self.plane, notice.task
        if notice.first:
            self.first[task] = notice.time
            if self.work.unaligned:
                self.bytes_out[task] = self.forward(task)
                plane.capture(task, notice.number)
        if notice.last:
            captured = 0
            if self.work.unaligned:
                captured = plane.captured(task)[0]
                plane.release_capture(task)
            else:
                self.forward(task)
                plane.resume(task)
            self.missing -= 1
            row = Snapshot(notice.number, task, self.first[task], notice.time, captured, self.bytes_out.get(task, 0))
            self.snapshots.append(row)


def outcome(plane: KernelPlane, snapshots: list[Snapshot]) -> Outcome:
    """The columns the baselines are held to."""
    rows = plane.tasks()
    columns = [rows[name].tolist() for name in ("served", "bytes_in", "bytes_out", "buffers_in")]
    return Outcome(*columns, snapshots)


def drive(plane: KernelPlane, work: Workload) -> list[Snapshot]:
    """Run the workload on a plane; returns every task's part in every checkpoint."""
    driver = Driver(plane, work)
    driver.run()
    return driver.snapshots
