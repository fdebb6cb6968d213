"""The kinds of storage: flat, a distributed file system, an object store, and what these are made of.

`sim.storage.filesystem` makes one of them by its name.  They know time and space, and no names of files' owners.
"""
