"""The windows of a task, and the watermarks that end them: the records they hold are the plane's late outputs.

The operator calls each as one of its parts.  It knows the slot of its task, and neither storage nor how state is written.
"""
