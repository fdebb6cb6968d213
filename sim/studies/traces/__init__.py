"""Traces of load as typed tables, cut into windows that a sweep replays."""
