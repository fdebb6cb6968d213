"""The windows of a task, and the watermarks that end them: what they hold is the plane's late outputs, fired when it is let go.

`sim.runtime.task.operator_io` calls it.  It knows the slot of its task, and neither snapshots nor storage.
"""
