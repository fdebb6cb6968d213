"""Equal tasks share the steps of their machines: the answers are those of the machine itself, and it is asked once."""

from sim.model.checkpoint import Barriers
from sim.protocol.barrier_modes import strategy
from sim.protocol.coordinator_messages import Phase
from sim.protocol.options import BarrierOptions
from sim.protocol.task_checkpointing import TaskCheckpointing
from sim.protocol.task_messages import BarrierArrived, PhaseFinished
from sim.runtime.task.thread import EqualSteps

FIRST = TaskCheckpointing.configured(strategy(Barriers("aligned")), 1)


def checkpoint(number, now):
    """The events of a task that meets one barrier."""
    barrier = BarrierArrived(now, 0, number, BarrierOptions(now - 5), first=True, last=True, priority=False)
    phases = (Phase.PRE_BARRIER, Phase.FORWARD_BARRIER, Phase.SYNC, Phase.ASYNC)
    return [barrier, *(PhaseFinished(now + late, number, phase) for late, phase in enumerate(phases))]


def gone_through(machine, on, events):
    commands = []
    for event in events:
        machine, answer = on(machine, event)
        commands.append(answer)
    return machine, commands


def test_the_steps_are_those_of_the_machine():
    """Also where tasks differ in between, and where the same machine hears something else."""
    steps, others = EqualSteps(FIRST), [checkpoint(1, 10), checkpoint(1, 10), checkpoint(1, 12), checkpoint(1, 10)]

    assert [gone_through(FIRST, TaskCheckpointing.on, events) for events in others] == [
        gone_through(FIRST, steps.on, events) for events in others
    ]


def test_equal_tasks_share_their_machine():
    steps = EqualSteps(FIRST)
    early, _ = gone_through(FIRST, steps.on, checkpoint(1, 10))
    second, _ = gone_through(FIRST, steps.on, checkpoint(1, 10))

    assert early is second


def test_tasks_are_equal_again_behind_a_checkpoint():
    steps = EqualSteps(FIRST)
    early, _ = gone_through(FIRST, steps.on, checkpoint(1, 10))
    late, _ = gone_through(FIRST, steps.on, checkpoint(1, 12))

    assert early is late


def test_few_steps_are_remembered():
    """A run of a day makes millions."""
    steps, machine = EqualSteps(FIRST), FIRST
    for number in range(1, 500):
        machine, _ = gone_through(machine, steps.on, checkpoint(number, number * 10))

    assert len(steps._steps) <= 512
