"""Chance as functions of the seed: streams of numbers, quantile tables, the times of faults.

Setup, storage, hosts and both planes call it.  It knows nouns of the model, and keeps no state between two draws.
"""
