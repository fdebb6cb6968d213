"""`flush:` and `commit:` of a vertex, `staging:` of its checkpoints, as they are written and as the model has them.

The builder of `job:` calls it.  It knows no storage.
"""
