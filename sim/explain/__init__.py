"""What `ckptsim explain` does: a run again, watched closely, and the critical path of a checkpoint in sentences.

The commands `explain`, `timeline` and `report` call it.  It knows how a run goes, and decides nothing about it.
"""
