"""From a failure to all tasks running again: what fails together, whether and when it restarts, whether that helps.

The JobManager's hosts in `sim.runtime` call it.  It knows no checkpoint but the number that a job returns to.
"""
