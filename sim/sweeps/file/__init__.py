"""The sweep file: its keys, and the scenarios of all its runs.

The room `sweeps` and the commands call it; `advice` uses its quantities and points.  It runs nothing and knows no results.
"""
