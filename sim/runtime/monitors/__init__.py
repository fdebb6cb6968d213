"""Monitors of a run: each observes events, keeps facts of its own, and gives them to the invariants."""
