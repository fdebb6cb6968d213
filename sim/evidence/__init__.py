"""Predicted beside observed: recordings and histories of real jobs, what is off and by how much, and what that says of other runs.

The commands `validate`, `calibrate`, `import`, `run`, `sweep` and `advise` call it.  It knows recordings and simulates; no run knows it.
"""
