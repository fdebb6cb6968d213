"""State backends: what a subtask's state is made of, and which files a snapshot of it writes.

Knows sizes, files and names; how long writing a file takes, and who else writes, is left to storage and runtime.
"""
