"""The nouns of a scenario, frozen: job, state, storage, cluster, faults, random streams, and the catalogs of what can be added.

It is called from every room.  It knows units, and nothing of time, protocols or files.
"""
