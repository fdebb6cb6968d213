"""Watches a run: samples, record latency, catching up and what checkpoints hold.

Hosts call it as things happen, `run` at the end.  It knows no host, and changes nothing that is simulated.
"""
