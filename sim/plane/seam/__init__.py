"""The seam of the data plane: verbs, notices, specifications, the numbering of tasks and channels.

The hosts of `sim.runtime` call its verbs, and both engines implement them.  It knows no engine.
"""
