"""The edges of a job: their names in a scenario, and how many records and bytes each of them carries.

`sim.recordings.infer.scenario` and the import of our own recordings call it.  It knows the graph and its counters, and no scenario.
"""
