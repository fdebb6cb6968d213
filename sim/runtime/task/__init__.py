"""One task and its task manager: threads, snapshots, channel state, the operator's files and transactions, the end.

The plane's notices and the JobManager's messages call it.  It knows no JobManager, and decides nothing: that is `sim.protocol`'s.
"""
