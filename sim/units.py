"""Quantities as people write them -> integers: ns, bytes, exact rates.  The unit is required.

KiB = 1024, kB = 1000.  Nothing else in the project parses a quantity.
"""
