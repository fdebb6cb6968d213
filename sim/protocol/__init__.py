"""Flink's checkpointing as pure state machines: an event goes in, the next state and commands come out.

The hosts of `sim.runtime` call it.  It knows nodes, files and data by their names and numbers only.

Nothing here takes time, moves data or draws a number.  Every event carries `now` [ns]; timers, uploads and calls are
commands.  The host that carries a command out sends its outcome back as an event::

    coordinator, commands = coordinator.on(event)  # Coordinator.configured(options), one per job
    task, commands = task.on(event)  # TaskCheckpointing.configured(strategy, gates=2), one per subtask

vocabulary.py, task_vocabulary.py     events and commands about checkpoints, a line each; the machines below bring their own
reasons.py, machine.py                why a checkpoint fails; what all machines share
phases.py                             the steps of one snapshot as data
options.py, forced.py                 what a barrier carries; which edges force it to align
strategies/                           one page per way of checkpointing
barriers/                             what a task does about barriers, over all its gates
task/                                 the phases of one snapshot, the end of a task; checkpointing.py joins barriers and snapshots
coordinator/                          when a checkpoint begins and how it ends; coordinator.py joins clock, queue, counter and plan
commit/                               what a transactional sink's writer hands to its committer
recovery/                             what fails together, when it restarts, and in which order it comes back
snapshots/                            which snapshots and files a job keeps, which may go, what can be moved
"""
