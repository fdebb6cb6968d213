"""Flink's REST API about a job: asked of a live cluster, saved in a folder, or kept by a history server.

`infer` and `observe` call it for a job, the command `import` to fetch and save one.  It knows no scenario.
"""
