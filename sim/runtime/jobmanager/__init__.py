"""The JobManager and what acts from outside: coordinator, recovery, restores, files of snapshots, faults, committed output.

Messages of tasks and timers call it.  It knows tasks by their ports, and decides nothing: that is `sim.protocol`'s.
"""
