"""The windows of a task, and the watermarks that end them: what they hold is the plane's late outputs, fired when it is let go.

The operator calls each as one of its parts.  It knows the slot of its task, and neither storage nor how state is written.
"""
