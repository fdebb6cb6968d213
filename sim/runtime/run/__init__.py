"""Runs a scenario: the chain of its job instances, each wired from its hosts, and the result.

Called by the command, by sweeps and by validation.  Knows all hosts; decides nothing about checkpoints.
"""
