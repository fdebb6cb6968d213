"""The checkpoint coordinator: when a checkpoint begins, which tasks take part and must acknowledge, how it ends.

The JobManager's hosts in `sim.runtime` call it.  It knows tasks by their numbers, and no barrier handler.
"""
