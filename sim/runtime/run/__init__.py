"""Runs a scenario: the chain of its job instances, each wired from its hosts, and the result.

Commands, sweeps and validation call it.  It knows all hosts, and decides nothing about checkpoints.
"""
