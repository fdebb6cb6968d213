"""What a source shows, as tidy tables: a row per quantity, vertex and checkpoint or sample.

`validation` holds predictions to it.  It judges nothing.
"""
