"""What Flink's REST API says of a job: asked of a live one, saved in a folder, or kept by a history server.

`infer` and `observe` read the job it tells of, the command `import` fetches and saves.  It knows no scenario.
"""
