"""The operator of one task: a list of parts, a file per feature, called at the moments of a snapshot and of the task's life.

The host of the task calls `operator.py`, which calls the parts in the order of `features.py`.  `part.py` names the moments.
A part knows the slot of its task and the parts before it, and neither the protocol machine nor how state is written.
"""
