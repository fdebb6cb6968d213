"""Bugs of the checkpoint coordinator and of a job without a JobManager."""

from dataclasses import replace

from sim.protocol import coordinator
from sim.protocol.checkpoint_requests import PendingCheckpoint, WaitingRequests
from sim.protocol.coordinator import Coordinator, FailureCounter
from sim.protocol.messages import MetadataWritten
from sim.protocol.recovery import JobManagerReturned, Recovery
from sim.runtime.jobmanager.coordinator_host import CoordinatorHost
from tests.injections.injection import Injections
from tests.injections.least_worlds import KILL, chain, reader, source, world

INJECTIONS = Injections("coordinator")
add = INJECTIONS.add

NOW_AND_THEN = chain(m=reader(state={"size": "40 kB"}, snapshot={"async": "250 ms", "probability": "30 %"}))
SLOW_STATE = chain(m=reader(state={"size": "40 kB", "backend": "hashmap"}, snapshot={"async": "250 ms"}))
SLOW = world(SLOW_STATE, checkpoint={"interval": "100 ms"})
EXPIRING = world(NOW_AND_THEN, checkpoint={"timeout": "200 ms"})
WITHOUT = world(faults=({"job-manager": "down-for 250 ms", "at": "1 s"},))
INTOLERANT = world(NOW_AND_THEN, checkpoint={"tolerable-failed": 0, "timeout": "200 ms"}, restart={"attempts": 2})
BACKLOG = world(
    chain(s=source(100, 200, backlog={"records": 100})),
    checkpoint={"interval": "80 ms", "interval-during-backlog": "400 ms"},
)


@add(PendingCheckpoint, "writes_metadata", world(faults=(KILL,)))
def one_acknowledgement_is_not_waited_for(_):
    """A checkpoint is complete with one acknowledgement missing."""
    return lambda self: len(self.acknowledged) >= len(self.plan.wait_for) - 1


@add(CoordinatorHost, "_finalise", world(storage={"metadata-latency": "20 ms"}))
def metadata_is_not_written(_):
    """A checkpoint is complete without its metadata."""

    def finalise(self, checkpoint):
        yield self.env.timeout(self.overheads.complete_ns)
        self.dispatch(MetadataWritten(self.env.now, checkpoint))

    return finalise


@add(WaitingRequests, "choose", SLOW)
def checkpoints_overlap(original):
    """More checkpoints are pending than configured."""
    return lambda self, now, **given: original(self, now, **(given | {"pending": 0}))


@add(WaitingRequests, "choose", world(checkpoint={"interval": "100 ms", "min-pause": "90 ms"}))
def no_pause_is_kept(original):
    """The pause after a completed checkpoint is not kept."""
    return lambda self, now, **given: original(self, now, **(given | {"last_completion_ns": None}))


@add(Coordinator, "_timed_out", EXPIRING)
def no_checkpoint_expires(_):
    """No checkpoint expires."""
    return lambda self, event: (self, ())


@add(FailureCounter, "with_failure", INTOLERANT)
def every_failure_is_tolerated(_):
    """Failed checkpoints never fail the job, whatever is tolerated."""
    return lambda self, checkpoint, reason: (self, False)


@add(Coordinator, "latest_completed", world(checkpoint={"num-retained": 3}, faults=(KILL,)))
def the_oldest_checkpoint_is_restored(_):
    """A job restarts from the oldest retained checkpoint, not the latest."""
    return lambda self: self.retained[0] if self.retained else 0


@add(Coordinator, "interval_in_force_ns", BACKLOG)
def the_interval_of_the_backlog_is_ignored(_):
    """The interval of a backlog is not in force while sources read one."""
    return lambda self: self.interval_ns


@add(Coordinator, "accepts_messages_from", world(faults=({"job-manager": "down-for 250 ms", "at": "2030 ms"},)))
def a_lost_job_manager_hears(_):
    """Messages to a JobManager that is gone arrive."""
    return lambda self, leader: True


@add(Coordinator, "_leader_lost", WITHOUT)
def checkpoints_go_on_without_a_job_manager(_):
    """Checkpoints go on while there is no JobManager."""
    return lambda self, event: (self, ())


@add(
    Recovery,
    "on",
    world(
        restart={"attempts": 2},
        faults=(
            KILL,
            {"job-manager": "down-for 50 ms", "at": "1200 ms"},
            {"kill": "m[1]", "at": "1500 ms"},
            {"kill": "k[1]", "at": "1800 ms"},
        ),
    ),
)
def a_new_job_manager_remembers_failures(original):
    """A new JobManager counts the failures that the one before it has seen."""

    def on(self, event):
        after, commands = original(self, event)
        return (replace(after, strategy=self.strategy) if isinstance(event, JobManagerReturned) else after), commands

    return on


@add(coordinator, "_abort_all", world(SLOW_STATE, faults=(KILL,)))
def pending_checkpoints_survive_a_failure(original):
    """Pending checkpoints go on while the job restarts."""
    del original
    return lambda machine, reason, now: (machine, ())
