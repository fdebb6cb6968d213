"""The fast engine: rows of integers, and a text over them that LLVM compiles or the interpreter runs.

`sim.plane.build` calls it for a `KernelPlane`; no other room needs a file of this one.  It knows the seam and not the other engine.
"""
