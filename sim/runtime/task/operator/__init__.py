"""The features of operators, a file each: windows, requests, epochs of output.

The host of a task calls them as its parts, at the moments that `sim/runtime/task/part.py` names.
A part knows the slot of its task and the parts before it, and neither the protocol machine nor how state is written.
"""
