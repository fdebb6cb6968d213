"""Rates in tables of others: which column holds times and values, in which unit."""
