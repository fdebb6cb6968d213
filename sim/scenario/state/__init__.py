"""`state:` of a vertex and the keys about it in `checkpoint:`, as they are written, as the model has them, as Flink writes them.

The builders of `job:` and of the scenario call it.  It knows no storage.
"""
