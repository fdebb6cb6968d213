"""Flink's own configuration keys: read from `flink:` into the document, written from a scenario to paste.

`sim.scenario.study` reads with it, the advice writes with it.  It knows where keys go, and not what they do there.
"""
