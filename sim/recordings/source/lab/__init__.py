"""Recordings of our own recorder: a run of a configured job on a real Flink.

The reader of files calls it, `infer` and `validation` read its configuration.  It knows no file and no scenario.
"""
