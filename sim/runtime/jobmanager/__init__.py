"""The JobManager and what acts from outside: coordinator, recovery, restores, files of snapshots, faults, committed output.

Called by tasks' messages and by timers.  Decides nothing: that is `sim.protocol`'s.
"""
