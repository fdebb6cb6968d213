"""Recorded and simulated checkpoints explained side by side: whether both name the same leading part.

`ckptsim validate --explain` calls it.  It knows how statistics are read, and the journal that they are held to.
"""
