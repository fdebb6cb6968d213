"""What the log of a JobManager says of a job's checkpoints.

`infer`, `observe` and `traces` call it.  It knows no scenario.
"""
