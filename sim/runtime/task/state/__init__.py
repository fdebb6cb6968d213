"""The state of one subtask: keyed state with its backend, changelog and local copies, and what lies beside it in files of its own.

The host of a task calls it, phase by phase of a snapshot.  It knows no barrier and no notice.
"""
