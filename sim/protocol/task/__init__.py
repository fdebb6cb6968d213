"""One task's side of checkpoints: its snapshots phase by phase, and its end.

The hosts of tasks in `sim.runtime` call it.  It knows neither the coordinator's state nor other tasks.
"""
