"""Requests to the outside that wait for answers beside the task thread (AsyncDataStream).

`sim.recordings.infer.scenario` calls it.  It knows one vertex at a time: its names, its counters and the history of its state.
"""
