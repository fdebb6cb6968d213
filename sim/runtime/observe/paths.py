"""The critical paths of a job instance's checkpoints, from its journal and the files that its storage lists."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from sim.metrics.critical_path import CriticalPath, FileSpan, Graph, PathPart
from sim.metrics.frame import frame, task_name
from sim.metrics.path_search import critical_path
from sim.storage.ledger import FileId

if TYPE_CHECKING:
    import pandas as pd

    from sim.metrics.journal import Entry
    from sim.metrics.schema import Row
    from sim.runtime.context import Context


class Paths:
    """The critical paths of one job instance.  Make it when the instance is over: it does not see later events."""

    def __init__(self, context: Context) -> None:
        self.context = context
        layout, job = context.layout, context.scenario.job
        size = context.scenario.checkpoint.subtasks_per_channel_state_file
        barriers = context.scenario.checkpoint.barriers
        timeout_ns = barriers.timeout_ns if barriers.record.has_deadline else None
        self.graph = Graph(layout.writer, layout.reader, groups(context.hosts, size), timeout_ns)
        commits = [job.vertex(vertex.committer_of).commit if vertex.committer_of else vertex.commit for vertex in job.vertices]
        self._commits = {task: commit.time_ns for task, v in enumerate(layout.vertex) if (commit := commits[v]) is not None}

    def of(self, checkpoint: int) -> CriticalPath:
        """The critical path of a checkpoint.  KeyError: there was no such checkpoint."""
        return critical_path(self.context.stats[checkpoint], self.story(checkpoint), self.graph, self.files, self._commits)

    def story(self, checkpoint: int) -> Sequence[Entry]:
        """The journal's entries about a checkpoint, in order."""
        return self.context.journal.at(self._places.get(checkpoint, ()))

    def table(self, only: Collection[str] | None = None) -> pd.DataFrame:
        """All checkpoints that are over; `only`: columns that are asked for."""
        return frame("path", (row for number in sorted(self.context.stats) for row in self._rows(self.of(number))), only)

    def files(self, task: int, begin_ns: int, end_ns: int) -> Sequence[FileSpan]:
        """The files of a task that were open between these times."""
        files, longest_ns = self._files.get(task, ([], 0))
        first = bisect_left(files, begin_ns - longest_ns, key=lambda file: file.created_ns)
        until = bisect_left(files, end_ns, lo=first, key=lambda file: file.created_ns)
        return [file for file in files[first:until] if file.durable_ns is None or file.durable_ns > begin_ns]

    def _rows(self, path: CriticalPath) -> list[Row]:
        parts = [(part, False) for part in path.parts] + [(part, True) for part in path.after]
        return [self._row(path, part, acknowledged) for part, acknowledged in parts]

    def _row(self, path: CriticalPath, part: PathPart, acknowledged: bool) -> Row:
        names, writers = self.context.names, self.context.layout.writer
        return {
            "id": path.checkpoint,
            "part": part.kind.value,
            **task_name(("", -1) if part.task < 0 else names[part.task]),
            "upstream": "" if part.channel < 0 else "{}[{}]".format(*names[writers[part.channel]]),
            "begin": part.begin_ns - path.begin_ns,
            "duration": part.duration_ns,
            "file": "" if part.file < 0 else "/".join(map(str, self.context.storage.files[FileId(part.file)].name)),
            "acknowledged": acknowledged,
        }

    @cached_property
    def _places(self) -> Mapping[int, Sequence[int]]:
        return self.context.journal.places()

    @cached_property
    def _files(self) -> dict[int, tuple[list[FileSpan], int]]:
        """By task, in the order of their creation, and how long writing took at most."""
        number = {name: task for task, name in enumerate(self.context.names)}
        of_task: dict[int, list[FileSpan]] = defaultdict(list)
        for stored in self.context.storage.files:
            task = number.get(stored.name[1:3])  # type: ignore[arg-type]  # names of other files have other parts
            if task is not None and (stored.durable_ns is None or stored.durable_ns > stored.created_ns):
                of_task[task].append(FileSpan(stored.id, stored.created_ns, stored.durable_ns))
        return {
            task: (files, max((file.durable_ns - file.created_ns for file in files if file.durable_ns is not None), default=0))
            for task, files in of_task.items()
        }


def groups(hosts: Sequence[int], size: int) -> list[int]:
    """By task: so many subtasks of a task manager share their files of channel state."""
    members: dict[int, int] = defaultdict(int)
    numbers: dict[tuple[int, int], int] = {}
    found = []
    for host in hosts:
        found.append(numbers.setdefault((host, members[host] // size), len(numbers)))
        members[host] += 1
    return found
