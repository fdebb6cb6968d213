"""The observations in a source, as tidy tables: a row per quantity, vertex and checkpoint or sample.

`validation` compares predictions with them.  It judges nothing.
"""
