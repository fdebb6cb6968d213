"""The checkpoints of a job in the log of its JobManager.

`infer`, `observe` and `traces` call it.  It knows no scenario.
"""
