"""The nouns of a scenario, frozen: job, state, storage, cluster, faults, random streams, and the catalogs of what can be added.

Every room reads them.  They know units, and nothing of time, protocols or files.
"""
