"""The fast engine: rows of integers, and a text over them that numba compiles or the interpreter runs.

`sim.plane.build` calls it for a `KernelPlane`; nobody else needs a file of this room.  It knows the seam and not the other engine.
"""
