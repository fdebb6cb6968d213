"""The observations in a source, as tidy tables: a row per quantity, vertex and checkpoint or sample.

`validation` calls it, and compares predictions with its tables.  It knows no prediction.
"""
