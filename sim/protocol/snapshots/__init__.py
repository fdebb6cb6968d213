"""Completed snapshots: which a job holds, which of their files may go, what breaks when something is moved.

The JobManager's hosts in `sim.runtime` call it, and the chain of job instances.  It knows no task and no storage.
"""
