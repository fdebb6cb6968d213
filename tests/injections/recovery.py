"""Bugs of failures: what restarts, when, where, and from what."""

from dataclasses import replace

from sim.protocol.recovery import Deployment, FixedDelay, PendingRestart, Slots
from sim.runtime.jobmanager import recovery_host
from sim.runtime.jobmanager.recovery_host import RecoveryHost
from sim.runtime.task.subtask_state import KeyedState
from sim.storage.filesystem import CheckpointStorage
from tests.injections.injection import Injections
from tests.injections.least_worlds import KILL, chain, reader, sink, source, world

INJECTIONS = Injections("recovery")
add = INJECTIONS.add

STATE = chain(m=reader(state={"size": "40 kB", "backend": "rocksdb"}))
LOSES_A_MACHINE = world(STATE, checkpoint={"local-recovery": True}, faults=({"task-manager": 2, "at": "1 s"},))
PIPELINES = world(
    {
        "s": source(),
        "m": reader(ship="forward"),
        "k": sink(ship="forward"),
    },
    faults=(KILL,),
    restart={"failover": "region"},
)
STUCK = world(
    chain(m=reader(snapshot={"sync": "400 ms"})),
    checkpoint={"interval": "600 ms"},
    faults=({"kill": "k[0]", "at": "800 ms"},),
)
KILLS = tuple({"kill": "m[0]", "at": f"{at} ms"} for at in (500, 900, 1300, 1700))


@add(recovery_host, "regions", PIPELINES)
def other_regions_restart_too(_):
    """A failure restarts tasks that exchange no data with the one that has failed."""
    return lambda tasks, exchanges: (frozenset(range(tasks)),)


@add(FixedDelay, "failed", world(restart={"attempts": 2}, faults=KILLS))
def attempts_are_not_counted(_):
    """The job restarts more often than its strategy allows."""
    return lambda self, now, draw: (self, self.delay_ns)


@add(PendingRestart, "due", STUCK)
def a_restart_does_not_wait_for_cancelled_tasks(_):
    """Tasks are deployed before those that are cancelled have stopped."""
    return lambda self: self.delayed


@add(Slots, "deployment", world(restart={"replacement": "800 ms"}, faults=({"task-manager": 0, "at": "1 s"},)))
def slots_are_there_at_once(_):
    """Tasks are deployed on a task manager that is not there yet."""
    return lambda self, task_managers, now: Deployment(frozenset(), now)


@add(RecoveryHost, "_resume", world(faults=(KILL,)))
def checkpoints_do_not_resume(_):
    """No checkpoint is triggered after a restart."""
    return lambda self: None


@add(CheckpointStorage, "lose_disk", LOSES_A_MACHINE)
def a_lost_disk_is_read(_):
    """The local copies of a lost task manager are restored from."""
    return lambda self, host: None


@add(KeyedState, "_from_local_copy", world(STATE, checkpoint={"local-recovery": True}, faults=(KILL,)))
def an_old_local_copy_is_restored(original):
    """A local copy of an older checkpoint is restored."""

    def copy(self, checkpoint, parts, work_ns):
        (snapshot, _), *_ = parts
        older = [
            row.id
            for row in self.storage.files
            if row.name[:3] == ("local", *self.subtask.name) and row.id != snapshot.local and row.complete
        ]
        snapshot.local = older[0] if older else snapshot.local
        return (yield from original(self, checkpoint, parts, work_ns))

    return copy


@add(RecoveryHost, "_cancel", world(faults=(KILL,)))
def cancelled_tasks_go_on(original):
    """Tasks of the region that has failed go on until they are deployed anew."""

    def cancel(self, command):
        failed = frozenset(task for task in command.tasks if self.tasks[task].stopped)
        original(self, replace(command, tasks=failed))

    return cancel


@add(
    RecoveryHost,
    "task_runs",
    world(
        STATE,
        checkpoint={"interval": "50 ms", "restore-rate": "100 kB/s"},
        storage={"read-bandwidth": "100 kB/s"},
        faults=(KILL,),
    ),
)
def initializing_tasks_count_as_running(original):
    """A job counts as running while tasks initialize."""

    def runs(self, task):
        original(self, task)
        for other in self.tasks:
            other.running = True

    return runs
