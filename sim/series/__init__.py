"""Series in tables of others: which column holds times and which rates, in what unit, and how their cells are read.

Scenarios, sweeps and traces call it, so that a file means the same to each of them.  It knows no file, and opens none.
"""
