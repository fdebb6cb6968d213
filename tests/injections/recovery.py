"""Bugs of failures: what restarts, when, where, and from what."""

from dataclasses import replace

from sim.protocol.recovery import PendingRestart
from sim.protocol.restart_strategy import Attempt, Deployment, FixedDelay, Slots
from sim.runtime.jobmanager import recovery_host
from sim.runtime.jobmanager.recovery_host import RecoveryHost
from sim.runtime.task.keyed_state import KeyedState
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


@add(
    recovery_host, "regions", PIPELINES, "A failure restarts tasks that exchange no data with the one that has failed."
)
def other_regions_restart_too(_):
    return lambda tasks, exchanges: (frozenset(range(tasks)),)


@add(
    FixedDelay,
    "failed",
    world(restart={"attempts": 2}, faults=KILLS),
    "The job restarts more often than its strategy allows.",
)
def attempts_are_not_counted(_):
    return lambda self, now, draw: (self, Attempt(self.delay_ns))


@add(PendingRestart, "due", STUCK, "Tasks are deployed before those that are cancelled have stopped.")
def a_restart_does_not_wait_for_cancelled_tasks(_):
    return lambda self: self.delayed


@add(
    Slots,
    "deployment",
    world(restart={"replacement": "800 ms"}, faults=({"task-manager": 0, "at": "1 s"},)),
    "Tasks are deployed on a task manager that is not there yet.",
)
def slots_are_there_at_once(_):
    return lambda self, task_managers, now: Deployment(frozenset(), now)


@add(RecoveryHost, "_resume", world(faults=(KILL,)), "No checkpoint is triggered after a restart.")
def checkpoints_do_not_resume(_):
    return lambda self: None


@add(CheckpointStorage, "lose_disk", LOSES_A_MACHINE, "The local copies of a lost task manager are restored from.")
def a_lost_disk_is_read(_):
    return lambda self, host: None


@add(
    KeyedState,
    "_from_local_copy",
    world(STATE, checkpoint={"local-recovery": True}, faults=(KILL,)),
    "A local copy of an older checkpoint is restored.",
)
def an_old_local_copy_is_restored(original):
    def copy(self, storage, checkpoint, parts, work_ns):
        (snapshot, _), *_ = parts
        older = [
            row.id
            for row in storage.files
            if row.name[:3] == ("local", *self.name) and row.id != snapshot.local and row.complete
        ]
        snapshot.local = older[0] if older else snapshot.local
        return (yield from original(self, storage, checkpoint, parts, work_ns))

    return copy


@add(
    RecoveryHost,
    "_cancel",
    world(faults=(KILL,)),
    "Tasks of the region that has failed go on until they are deployed anew.",
)
def cancelled_tasks_go_on(original):
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
    "A job counts as running while tasks initialize.",
)
def initializing_tasks_count_as_running(original):
    def runs(self, task):
        original(self, task)
        for other in self.tasks:
            other.running = True

    return runs
