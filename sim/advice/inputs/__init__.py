"""Inputs of a job that are not known: the values to try instead, and the questions that their effect leaves.

The report of an advice calls it.  It knows the race and the effects of other values, and not how these are tried.
"""
