"""Watches a run: samples, record latency, catching up, what checkpoints hold and whether it is true.

Called by the hosts as things happen and by `run` at the end.  Changes nothing that is simulated.
"""
