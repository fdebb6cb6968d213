"""Monitors of a run: each observes events, collects facts, and passes them to the invariants."""
