"""Transactional sinks: the writer closes transactions, and the committer commits them, which makes the output visible.

The hosts of operators in `sim.runtime` call it.  It knows checkpoints by their numbers, and no file.
"""
