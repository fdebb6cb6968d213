"""The sweep file: its words, and the scenarios of all runs that it asks for.

The room `sweep` and the commands call it; `advice` takes its quantities and points.  It runs nothing and knows no results.
"""
