"""Watches a run: samples, record latency, catching up, what checkpoints hold and whether it is true.

Hosts call it as things happen, `run` at the end.  It knows no host, and changes nothing that is simulated.
"""
