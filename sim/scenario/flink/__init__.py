"""Flink's own configuration keys: read from `flink:` into the document, written from a scenario to paste.

`sim.scenario.study` calls it to read, the advice to write.  It knows where keys go, and not what they do there.
"""
