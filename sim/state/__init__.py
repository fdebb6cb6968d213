"""State backends: what a subtask's state is made of, and which files a snapshot of it writes.

Hosts of tasks call it.  It knows sizes, files and names.  Storage and runtime decide how long writing takes.
"""
