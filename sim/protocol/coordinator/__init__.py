"""The checkpoint coordinator: when a checkpoint begins, who takes part, who must acknowledge, how it ends.

The JobManager's hosts in `sim.runtime` call it.  It knows tasks by their numbers, and no barrier handler.
"""
