"""Creates the tasks of a job instance, at the start and after every restart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction

from sim.protocol.barrier_modes import async_operate, strategy
from sim.protocol.task_checkpointing import TaskCheckpointing
from sim.protocol.task_finishing import TaskEnd
from sim.runtime.context import Checks, Context, JobManagerPort
from sim.runtime.task.epochs import Epochs
from sim.runtime.task.host import TaskHost
from sim.runtime.task.sink import SinkCommitter
from sim.runtime.task.thread import EqualSteps, Slot, TaskThread
from sim.runtime.task_manager import Contention, Processor, TaskManager
from sim.storage.ledger import FileId


class Tasks:
    """All tasks of a job instance, by number."""

    def __init__(self, context: Context) -> None:
        self.context = context
        on_host: dict[int, list[int]] = {}
        for task, host in enumerate(context.hosts):
            on_host.setdefault(host, []).append(task)
        self.managers = {host: TaskManager(context, host, on_host[host]) for host in sorted(on_host)}
        self.contentions: list[Contention] = []
        if (cores := context.scenario.cluster.cores) is not None:
            self._share_cores(cores)
        self._job: JobManagerPort
        self._checks: Checks
        self._hosts: list[TaskHost] = []
        self._steps: dict[int, EqualSteps] = {}  # by vertex number

    def deploy(
        self, job: JobManagerPort, keep_file: Callable[[int, Iterable[int], FileId, int], None], checks: Checks
    ) -> None:
        """Create all tasks.  `keep_file` is called with (checkpoint, tasks, file id, bytes) of each file of channel state."""
        self._job, self._checks = job, checks
        for writer in {writer for manager in self.managers.values() for writer in manager.channel_state.values()}:
            writer.on_file, writer.on_inlined = keep_file, self.context.contents.in_flight_inlined
        self._hosts = [self._create_task(task) for task in self.context.tasks]

    def __getitem__(self, task: int) -> TaskHost:
        return self._hosts[task]

    def __iter__(self) -> Iterator[TaskHost]:
        return iter(self._hosts)

    def __len__(self) -> int:
        return len(self._hosts)

    def end(self, task: int) -> TaskEnd:
        """Return the state machine that finishes a task."""
        return self._hosts[task].ending.machine

    def core_slowdowns(self) -> list[float]:
        """Return, by task, how many times as long its work has taken so far as on idle cores."""
        slowdowns = [1.0] * len(self)
        for contention in self.contentions:
            for task in contention.tasks:
                slowdowns[task] = contention.mean_slowdown
        return slowdowns

    def drops(self, task: int) -> bool:
        """Return whether a task never emits some records, because they wait for a watermark that never arrives."""
        return self._hosts[task].parts.drops

    def at_work(self, task: int) -> bool:
        """Return whether work of the control plane holds the thread of a task."""
        return self._hosts[task].thread.occupied

    def in_use(self) -> Iterator[str]:
        """Yield a description of each thread that is occupied and of each staging area that is not empty."""
        for host in self._hosts:
            vertex, index = self.context.names[host.task]
            if host.thread.occupied and not host.thread.suspended:
                yield f"the thread of {vertex}[{index}] is at work"
            if host.async_thread.at_work:
                yield f"the asynchronous thread of {vertex}[{index}] is at work"
        for manager in self.managers.values():
            if manager.staging.used_bytes:
                yield f"task manager {manager.number} keeps room for {manager.staging.used_bytes} staged bytes"

    def replace(self, task: int) -> None:
        """Replace a restarted task by a new one, without any state of the old one."""
        self._hosts[task].ending.replaced = True
        self._hosts[task] = self._create_task(task)
        self._hosts[task].running = False

    # ------------------------------------------------------------------------------------------ one task

    def _create_task(self, task: int) -> TaskHost:
        """Create a task."""
        context = self.context
        vertex = context.vertex(task)
        manager = self.managers[context.hosts[task]]
        thread = TaskThread(context.plane, task)
        slot = Slot(context, task, vertex, thread, manager, self._job, self._checks)
        return TaskHost(
            slot,
            self._state_machine_steps(task),
            lambda number: self._hosts[number].ending,
            self._committer_of,
        )

    def _state_machine_steps(self, task: int) -> EqualSteps:
        """Return the cache of state-machine steps that the tasks of the same vertex share."""
        vertex, options = self.context.layout.vertex[task], self.context.scenario.checkpoint
        if vertex not in self._steps:
            chosen, gates = strategy(options.barriers), len(self.context.layout.task_gates[task])
            phases = async_operate(chosen.phases) if options.operator_io == "async" else None
            self._steps[vertex] = EqualSteps(TaskCheckpointing.configured(chosen, gates, phases))
        return self._steps[vertex]

    def _share_cores(self, cores: int) -> None:
        """Let the tasks of each machine share its cores.  A machine may run several TaskManagers."""
        cluster = self.context.scenario.cluster
        managers: dict[int, list[int]] = {}
        for manager in self.managers:
            managers.setdefault(cluster.host(manager), []).append(manager)
        for together in managers.values():
            tasks = [task for task, manager in enumerate(self.context.hosts) if manager in together]
            processor = self._processor(tasks, cores)
            for manager in together:
                self.managers[manager].work_on_core = processor.share
            if cluster.tasks_contend:
                self.contentions.append(Contention(self.context, tasks, cores))

    def _processor(self, tasks: list[int], cores: int) -> Processor:
        """Create the processor of a machine, which slows these tasks down while it executes other work."""
        context, on_core = self.context, self.context.scenario.cluster.on_core_share

        def slow(factor: Fraction) -> None:
            for task in tasks:
                self.context.speed.set_factor(task, "processor", factor)

        def busy_ns() -> int:
            return int(int(context.plane.tasks("busy_ns")["busy_ns"][tasks].sum()) * on_core)

        return Processor(context.env, cores, busy_ns, slow)

    def _committer_of(self, vertex: str) -> SinkCommitter:
        """Return the global committer of a vertex.  Raise LookupError if it has none."""
        name = next(row.name for row in self.context.scenario.job.vertices if row.committer_of == vertex)
        epochs = self._hosts[self.context.names.index((name, 0))].parts.of(Epochs)
        if epochs is None or epochs.committer is None:
            raise LookupError(f"no committer takes what {vertex} writes")
        return epochs.committer
