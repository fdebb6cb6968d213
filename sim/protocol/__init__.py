"""Flink's checkpointing as pure state machines: an event goes in, the next state and commands come out.

Nothing here takes time, moves data or draws a number.  Every event carries `now` [ns]; timers, uploads and calls are
commands, and whoever carries a command out sends its outcome back as an event::

    coordinator, commands = coordinator.on(event)  # Coordinator.configured(options), one per job
    task, commands = task.on(event)  # TaskCheckpointing.configured(strategy, gates=2), one per subtask

vocabulary.py, task_vocabulary.py     events and commands about checkpoints, a line each; the machines below bring their own
options.py, forced.py                 what a barrier carries; which edges force it to align
timer.py, requests.py, failures.py    the coordinator's clock, queue and counter; coordinator.py joins them
barriers/                             what a task does about barriers, over all its gates
committables.py                       what a transactional sink's writer (writer.py) hands to its committer (committer.py)
snapshot.py                           the phases of one snapshot (phases.py: as data); task.py joins barriers and snapshots
plan.py, pending.py                   who takes part in a checkpoint, and what it still waits for
finishing.py                          how a task ends
regions.py, restart.py, recovery.py   what fails together, when it restarts, and in which order it comes back
shared_state.py, snapshot_store.py    which files a job keeps, and which may go; relocation.py: what can be moved, and what breaks
strategies/                           one page per way of checkpointing
"""
