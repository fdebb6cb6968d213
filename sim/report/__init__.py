"""What `ckptsim report` does: results as one HTML file that needs nothing else.

The command `report` calls it.  It knows tables and figures, and runs nothing itself.
"""
