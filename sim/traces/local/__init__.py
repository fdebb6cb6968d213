"""Small local traces without Spark and Java: the same tables, the same windows.

The command `traces` calls it where the files are small.  It knows the formats of traces; rooms with the same subject on Spark lie flat.
"""
