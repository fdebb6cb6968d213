"""Flink's REST API about a job: asked of a live cluster, saved in a folder, or kept by a history server.

`infer` and `observe` read its job, the command `import` fetches and saves.  It knows no scenario.
"""
