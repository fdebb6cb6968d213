"""Foreign traces as typed tables, cut into windows that a sweep replays: a folder or bucket of files in, Parquet out, on Spark.

The command `traces` calls it.  It knows no scenario and simulates nothing.
"""
