"""The kinds of storage: flat, a distributed file system, an object store, and what these are made of.

`sim.storage.filesystem` calls the one that a scenario names.  It knows bytes, time and space, and no ledger of files.
"""
