"""The seam of the data plane: verbs, notices, specifications, the numbering of tasks and channels.

The hosts of `sim.runtime` call its verbs, and the kernel implements them; so does `tests/oracle`.  It knows no engine.
"""
