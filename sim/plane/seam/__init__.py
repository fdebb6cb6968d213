"""The seam of the data plane: verbs, notices, specifications, the numbering of tasks and channels, the check of equality.

The hosts of `sim.runtime` and both engines import it.  It knows no engine.
"""
