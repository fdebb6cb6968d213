"""One task and its task manager: threads, snapshots, channel state, the operator's files and transactions, the end.

Called by the plane's notices and by the JobManager's messages.  Decides nothing: that is `sim.protocol`'s.
"""
