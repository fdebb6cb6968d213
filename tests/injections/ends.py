"""Bugs of the end of a job: final checkpoints, stops with a savepoint, drained or not."""

from dataclasses import replace

from sim.protocol.options import StopMode
from sim.protocol.task_finishing import TaskEnd
from sim.runtime.jobmanager import faults
from sim.runtime.jobmanager.coordinator_host import JobEnd
from sim.runtime.task.host import TaskEnding, TaskHost
from sim.runtime.task.parts import TaskParts
from sim.runtime.task.windows import ProcessingTimeWindows
from tests.injections.injection import Injections
from tests.injections.least_worlds import KILL, chain, reader, sink, source, world

INJECTIONS = Injections("ends")
add = INJECTIONS.add

ENDS = world()
ENDS_IN_TURN = world(
    {
        "s": source(records=60),
        "t": source(),
        "m": reader() | {"input": {"s": "hash", "t": "hash"}, "combine": "union"},
        "k": sink(),
    },
    faults=({"kill": "m[0]", "at": "1500 ms"},),
)
WATERMARK = {"interval": "20 ms", "lateness": "10 ms"}
WINDOWS = chain(s=source(watermark=WATERMARK), m=reader(window={"tumbling": "700 ms", "time": "event"}))
TIMED = chain(m=reader(window={"tumbling": "100 ms", "time": "processing"}))
DRAINED, NOT_DRAINED = (world(WINDOWS, actions=[{"stop": how, "at": "1 s"}]) for how in ("drain", "no-drain"))
STOPPED = world(
    chain(s=source(records=600)),
    checkpoint={"interval": "60 ms"},
    actions=[{"stop": "drain", "at": "1 s"}],
    storage={"file-latency": "80 ms"},
)
ENDED_BEFORE = world(
    {
        "s": source(records=5),
        "m": reader(state={"size": "20 kB"}),
        "l": source(records=250),
        "k": sink() | {"input": {"m": "hash", "l": "hash"}},
    },
    checkpoint={"finish": "naive"},
    faults=({"kill": "l", "at": "1510 ms"},),
)
REQUESTS = world(chain(m=reader(async_io={"latency": "150 ms", "capacity": 20})))


@add(TaskEnd, "durable", ENDS)
def a_task_does_not_wait_for_its_last_checkpoint(_):
    """A task ends without a checkpoint that holds its last output."""
    return lambda self: True


@add(JobEnd, "data_ended", world(checkpoint={"interval": "3 s"}))
def no_final_checkpoint_is_triggered(_):
    """No final checkpoint is triggered when all data has ended."""
    return lambda self, task: self.ended.add(task)


@add(JobEnd, "reset_task", ENDS_IN_TURN)
def a_restarted_task_stays_finished(_):
    """A task that has finished before a restart takes no part in checkpoints after it."""
    return lambda self, task: None


@add(TaskEnd, "_data_ended", NOT_DRAINED)
def every_stop_drains(original):
    """A stop without a drain drains."""
    return lambda self, event: original(self, replace(event, ending=StopMode.DRAIN))


@add(TaskEnd, "_data_ended", DRAINED)
def no_stop_drains(original):
    """A stop with a drain does not let operators finish."""
    return lambda self, event: original(self, replace(event, ending=StopMode.NO_DRAIN))


@add(faults, "request", STOPPED)
def checkpoints_go_on_while_a_job_stops(original):
    """Checkpoints go on while the job stops with a savepoint."""

    def request(context, coordinator, action):
        dispatch = coordinator.dispatch
        coordinator.dispatch = lambda event: None if type(event).__name__ == "SchedulerStopped" else dispatch(event)
        try:
            original(context, coordinator, action)
        finally:
            del coordinator.dispatch

    return request


@add(TaskEnding, "takes_part_in_checkpoint", STOPPED)
def sources_read_on_behind_the_savepoint(original):
    """Sources read on while the job stops with a savepoint."""
    return lambda self, checkpoint, stop, again: original(self, checkpoint, None, again)


@add(TaskParts, "has_pending_outputs", REQUESTS)
def the_end_waits_for_no_answer(_):
    """A task ends without the answers of its requests."""
    return lambda self: False


@add(
    ProcessingTimeWindows,
    "quiesce",
    world(TIMED, actions=[{"stop": "no-drain", "at": "1 s"}], overheads={"close": "300 ms"}),
)
def timers_fire_behind_the_end(_):
    """Timers fire although the job has stopped."""
    return lambda self: None


KILL_AT_THE_END = world(faults=(KILL | {"at": "2050 ms"},))


@add(TaskEnd, "data_ended", KILL_AT_THE_END)
def the_final_checkpoint_is_never_known(_):
    """Snapshots of tasks whose operators have finished count as taken before."""
    return lambda self: False


@add(TaskHost, "download", ENDED_BEFORE)
def a_task_restored_as_finished_goes_on(original):
    """A task that was restored as finished goes on in the snapshots that follow."""

    def download(self, snapshot, union):
        state_bytes = yield from original(self, snapshot, union)
        self._closed = False
        return state_bytes

    return download
